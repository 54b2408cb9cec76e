#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: what a person gets wrong is said clearly, with what to do, before anything is touched; and
evidence that is damaged, cut short or somebody else's never becomes a verdict. Method: plans with
one fault each; a campaign against the fake machine whose evidence is then spoilt file by file.

Guards design.md, sections 5 to 7, and M4.6.
"""
import json
import os
import shutil
import socket
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lab"))
from fake_rig import PLUGPULL, Rig, check, run_all  # noqa: E402

# section, changed keys, what the message must hold; a value of None takes the key away
PLANS = [
    ("campaign", {"criterion": "95"}, ["criterion", "95/90"]),
    ("campaign", {"cuts": 0}, ["cuts is '0'", "1 to 1000000"]),
    ("campaign", {"cuts": "many"}, ["cuts is 'many'"]),
    ("campaign", {"cuts": "-1"}, ["cuts is '-1'"]),
    ("campaign", {"cuts": "5x"}, ["cuts is '5x'"]),
    ("campaign", {"write_min_ms": 900}, ["write_min_ms is above write_max_ms"]),
    ("campaign", {"confirm_boot": "true"}, ["yes or no"]),
    ("campaign", {"frobnicate": 1}, ["[campaign] has no key 'frobnicate'"]),
    ("campaign", {"seed": "dice"}, ["seed is 'dice'"]),
    ("machine", {"listen": "7333"}, ["ADDRESS:PORT"]),
    ("machine", {"listen": "127.0.0.1:99999"}, ["'99999' is no port"]),
    ("machine", {"key": None}, ["key = FILE", "plugpull key"]),
    ("machine", {"key": "/nonexistent/key"}, ["/nonexistent/key"]),
    ("pdu", {"profile": "no-such-switch"}, ["no-such-switch"]),
    ("pdu", {"profile": None}, ["[pdu]"]),
    ("pdu", {"outlets": "1,,2"}, ["empty"]),
    ("pdu", {"password": "hunter2"}, ["no secrets", "credentials = FILE"]),
    ("pdu", {"api_token": "hunter2"}, ["no secrets", "credentials = FILE"]),
    ("pdu", {"url": "http://admin:hunter2@10.0.0.1/"}, ["credentials = FILE"]),
    ("pdu", {"cycles_per_hour": 0}, ["none"]),
    ("drive d", {"serial": None}, ["[drive d] has no serial"]),
    ("drive d", {"destroy": None}, ["would lose all its data", "destroy = FAKE1"]),
    ("drive d", {"destroy": "FAKE"}, ["would lose all its data", "destroy = FAKE1"]),
    ("drive d", {"format": None}, ["format = FS", "uuid = UUID", "path = FOLDER"]),
    ("drive d", {"format": "ext5"}, ["ext4, xfs or btrfs"]),
    ("drive d", {"target": "tape"}, ["file or raw"]),
    ("drive d", {"target": "raw"}, ["is raw"]),
    ("drive d", {"size_mib": "2G"}, ["size_mib is '2G'"]),
    ("arms", {"methods": "fdatasink"}, ["no method 'fdatasink'", "plugpull matrix"]),
    ("arms", {"methods": "fdatasync, fdatasync"}, ["named twice"]),
    ("arms", {"methods": None}, ["names no methods"]),
    ("arms", {"workload": "scribble"}, ["no workload 'scribble'"]),
    ("arms", {"drives": "other"}, ["names a drive that has no section"]),
    ("arms", {"lanes": 0}, ["lanes is '0'"]),
]
EXTRA = [
    ("[spectrum]\n", ["no section [spectrum]"]),
    ("[pdu]\nprofile = x\n", ["there twice"]),
    ("[arms]\nmethods = fsync\n", ["there twice"]),
    ("[drive d]\nserial = X\n", ["there twice"]),
    ("[drive e]\nserial = FAKE1\nformat = ext4\ndestroy = FAKE1\n", ["one serial"]),
    ("lanes = 2\nlanes = 2\n", ["given twice"]),
    ("just some words\n", ["key = value"]),
    ("[arms\n", ["']'"]),
    ("[machine x]\n", ["takes no name"]),
    ("x" * 5000 + "\n", ["longer than"]),
]


def campaign(rig, *args):
    """For what ends by itself, without an agent."""
    return subprocess.run([PLUGPULL, "campaign", rig.plan_path, "--out", rig.out, *args],
                          env=rig.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def readable(got, words, plan=None):
    check(f"exit {got.returncode}: {got.stderr}", got.returncode == 2)
    check(f"nothing on stdout: {got.stdout}", got.stdout == "")
    check(f"{words} in: {got.stderr}", all(w in got.stderr for w in words))
    check(f"no secret is repeated: {got.stderr}", "hunter2" not in got.stderr)
    if plan:
        check(f"names the file: {got.stderr}", "plan.ini" in got.stderr or "plan" in got.stderr or
              "nonexistent" in got.stderr or "profile" in got.stderr)


def bad_plans():
    with Rig() as rig:
        for section, keys, words in PLANS:
            rig.plan(**{section.replace(" ", "_"): keys})
            got = campaign(rig)
            readable(got, words, rig.plan_path)
            rig.out_made = os.path.exists(rig.out)
            if rig.out_made:
                shutil.rmtree(rig.out)
        for extra, words in EXTRA:
            rig.plan(extra)
            readable(campaign(rig), words, rig.plan_path)
            check("nothing was made", not os.path.exists(rig.out))
        rig.write("plan.ini", "\0\1\2binary")
        readable(campaign(rig), ["not a text file"])
        rig.write("plan.ini", "")
        readable(campaign(rig), ["at least one [drive NAME]"])
        os.unlink(rig.plan_path)
        readable(campaign(rig), ["plan.ini", "No such file"])


def dry_run():
    with Rig() as rig:
        got = campaign(rig, "--dry-run")
        check(got.stderr, got.returncode == 0 and "sound" in got.stdout)
        check("touches nothing", not os.path.exists(rig.out) and rig.power() == "on")
        # what the plan's words alone cannot say
        for keys, words in (
                ({"pdu": {"profile": "frob"}}, "no profile 'frob'"),
                ({"pdu": {"profile": "shelly-gen2", "url": "h", "outlets": "x1"}}, "is not an outlet"),
                ({"pdu": {"profile": "pdudaemon", "url": "http://h:16421"}}, "cannot read an outlet back"),
                ({"pdu": {"device_restore_s": 60}}, "no timed restore"),
                ({"pdu": {"credentials": "{dir}/none"}}, "none"),
                ({"pdu": {"cycles_max": 2}}, "cycles_max = 2, but about"),
                ({"machine": {"key": "{dir}/none"}}, "[machine]: "),
                ({"drive d": {"size_mib": 1}, "arms": {"lanes": 64}}, "is too small"),
                ({"arms": {"record_bytes": 1000}}, "multiple of 512"),
                ({"arms": {"methods": "write"}}, "none could become SAFE"),
                ({"campaign": {"cuts": 3}}, "needs 5 clean cuts of an arm")):
            rig.plan(**{k.replace(" ", "_"): v for k, v in keys.items()})
            readable(campaign(rig, "--dry-run"), [words, "problem"])
            check("touches nothing", not os.path.exists(rig.out) and rig.power() == "on")
        rig.plan(campaign={"criterion": "95/90"}, arms={"record_bytes": 512},
                 pdu={"cycles_per_hour": 20})
        got = campaign(rig, "--dry-run")
        check(got.stderr + got.stdout, got.returncode == 0 and "about 29 cuts" in got.stdout and
              "at least 1.4 hours" in got.stderr and "if its blocks have 4096 bytes" in got.stderr)
        rig.plan()
        for args in (["--cuts", "0"], ["--cuts", "x"], ["--frob"], ["--cuts"]):
            check(str(args), campaign(rig, *args).returncode == 2)
        got = subprocess.run([PLUGPULL, "campaign"], capture_output=True, text=True)
        check(got.stderr, got.returncode == 2 and "names no plan" in got.stderr)


def port_in_use():
    with Rig() as rig, socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        rig.plan(machine={"listen": f"127.0.0.1:{s.getsockname()[1]}"})
        readable(campaign(rig), ["in use"])
        check("outlet untouched", rig.power() == "on")


def wrong_key():
    """Both sides say so; the campaign does not begin."""
    with Rig(machine={"boot_deadline_s": 2}) as rig:
        subprocess.run([PLUGPULL, "key", rig.dir + "/other"], check=True, stdout=subprocess.DEVNULL)
        rig.plan(machine={"key": rig.dir + "/other", "boot_deadline_s": 2})
        c = rig.start()
        rig.await_that("control says so", lambda: "turned away" in c.err and "key" in c.err)
        port = next(l for l in c.lines if "listening on" in l).split("listening on ")[1].split()[0]
        # the real agent, with the fake's key, for its own words
        dut = subprocess.Popen([os.path.join(os.path.dirname(PLUGPULL), "plugpull-dut"), "agent",
                                "--control", port, "--key", rig.dir + "/key", "--allow", "NONE"],
                               env=rig.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
        try:
            line = dut.stderr.readline()
            while line and "key" not in line:
                line = dut.stderr.readline()
            check("the agent says so", "key" in line)
        finally:
            dut.kill()
            dut.wait()
            dut.stderr.close()
        c.wait()
        check(c.err, c.process.returncode == 2 and "no agent has connected" in c.err)
        check("no cut", rig.cuts() == [])


def folders():
    """--out that is there, --resume with another plan, --resume of nothing."""
    with Rig() as rig:
        check("a first campaign", rig.run("--cuts", "1").process.returncode == 2)
        readable(campaign(rig, "--cuts", "1"), ["is there already", "--resume", "--out"])
        rig.plan(campaign={"note": "changed"})
        readable(campaign(rig, "--resume"), ["is not the plan", "plan.ini"])
        rig.plan()
        rig.out += ".none"
        readable(campaign(rig, "--resume"), ["no campaign in", "--resume"])
        os.mkdir(rig.out)
        readable(campaign(rig, "--resume"), ["no campaign in", "no plan.ini"])
        readable(campaign(rig, "--cuts", "1"), ["is no campaign", "--out"])
        check("and nothing is put there", os.listdir(rig.out) == [])


def earlier_of_the_plan():
    """M9.3: a loss in the earlier campaign that the plan names stands against SAFE."""
    with Rig(("FAKE1:ignores-both",)) as rig:
        rig.run("--cuts", "1")
        first, rig.out = rig.out, rig.out + ".2"
        rig.plan(campaign={"earlier": first}, drive_d={"force": "yes"})
        c = rig.start("--cuts", "1", "--json")
        c.wait()
        check(c.err + c.out, "earlier" in c.out)


def full_disk():
    """A full disk of the control host: said so, nothing is a verdict, what was there stays."""
    if os.geteuid() != 0:
        print("skip: a full disk needs root (a small tmpfs)")
        return
    with Rig() as rig:
        rig.run("--cuts", "1")
        small = os.path.join(rig.dir, "small")
        os.mkdir(small)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", small], check=True)
        try:
            old, rig.out = rig.out, os.path.join(small, "out")
            shutil.copytree(old, rig.out)
            with open(os.path.join(small, "ballast"), "wb") as f:
                try:
                    while True:
                        f.write(b"x" * 65536)
                        f.flush()
                except OSError:
                    pass
            before = rig.judge().stdout
            c = rig.run("--cuts", "2", "--resume")
            check(c.err, c.process.returncode == 2 and "No space left" in c.err)
            check("outlet is on", rig.power() == "on")
            os.unlink(os.path.join(small, "ballast"))
            for cut in rig.cuts():
                check("the old trial stays", cut != "0001" or rig.trials()[0]["outcome"] == "clean")
            check("judged as before, or not at all", rig.judge().stdout in (before, ""))
            c = rig.run("--cuts", "2", "--resume")
            check(c.err, [t["outcome"] for t in rig.trials()].count("clean") == 2)
        finally:
            subprocess.run(["umount", "-l", small], check=True)


# ---- evidence --------------------------------------------------------------------------------

def files_of(folder):
    return sorted(os.path.relpath(os.path.join(at, f), folder)
                  for at, _, names in os.walk(folder) for f in names)


def spoilt(data):
    """name, bytes (None: the file is gone)."""
    yield "removed", None
    yield "emptied", b""
    yield "halved", data[:len(data) // 2]
    yield "one byte short", data[:-1]
    yield "grown", data + b"\n"
    for i in range(5):
        at = len(data) * i // 5
        if data:
            yield f"bit flipped at {at}", data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]


def damaged_evidence():
    with Rig(("FAKE1:ignores-both",)) as rig:
        rig.run("--cuts", "1")
        check("a loss stands", rig.check_same_judgement() == 1)
        names = files_of(rig.out)
        check("all kinds of files", {"cut.json", "run.json", "acks.ledger", "scan.bin",
                                     "reread-3.bin", "target.json"} <=
              {os.path.basename(n) for n in names})
        for name in names:
            path = os.path.join(rig.out, name)
            with open(path, "rb") as f:
                data = f.read()
            for how, bad in spoilt(data):
                if bad is None:
                    os.unlink(path)
                else:
                    with open(path, "wb") as f:
                        f.write(bad)
                what = f"{name} {how}"
                got = rig.judge()
                check(f"{what}: exit {got.returncode} {got.stdout}",
                      got.returncode == 2 and got.stdout == "" and len(got.stderr) > 20)
                got = rig.judge("--unsealed")
                check(f"{what}, unsealed: exit {got.returncode} {got.stderr}",
                      got.returncode in (1, 2))
                if how == "removed" and os.path.basename(name) in (
                        "run.json", "cut.json", "scan.bin", "reread-3.bin", "target.json"):
                    check(f"{what}, unsealed: {got.stdout}", got.returncode == 2 and
                          got.stdout == "")
                with open(path, "wb") as f:
                    f.write(data)
        check("whole again", rig.judge().returncode == 1)
        os.rename(os.path.join(rig.out, "cuts", "0001"), os.path.join(rig.out, "cuts", "0002"))
        got = rig.judge("--unsealed")
        check(got.stderr, got.returncode == 2 and "missing" in got.stderr)


def foreign_evidence():
    """Ledger, scan or base of another run in a trial's folder; a folder that is none."""
    with Rig() as rig, Rig() as other:
        rig.run("--cuts", "1")
        other.run("--cuts", "1")
        for name in ("cuts/0001/FAKE1/acks.ledger", "cuts/0001/FAKE1/run.json",
                     "cuts/0001/FAKE1/scan.bin"):
            path = os.path.join(rig.out, name)
            shutil.copy(path, path + ".keep")
            shutil.copy(os.path.join(other.out, name), path)
            got = rig.judge("--unsealed")
            check(f"{name}: {got.stdout}", got.returncode != 0 and
                  ("SAFE" not in got.stdout.replace("UNSAFE", "") or got.stdout == "" or
                   "INCONCLUSIVE" in got.stdout))
            check(name, rig.judge().returncode == 2)
            os.replace(path + ".keep", path)
        # what it is that is judged, and no offer to judge it all the same
        cut = os.path.join(rig.out, "cuts", "0001")
        lab = rig.out + ".lab"
        os.mkdir(lab)
        running = os.path.join(rig.dir, "running")
        shutil.copytree(rig.out, running)
        with open(os.path.join(running, "cuts", "0001", "cut.json")) as f:
            facts = json.load(f)
        facts["state"] = "scanning"
        with open(os.path.join(running, "cuts", "0001", "cut.json"), "w") as f:
            json.dump(facts, f)
        killed = os.path.join(rig.dir, "killed")
        shutil.copytree(rig.out, killed)
        os.unlink(os.path.join(killed, "SHA256SUMS"))
        begun = os.path.join(rig.dir, "begun")
        os.makedirs(os.path.join(begun, "cuts"))
        shutil.copy(rig.plan_path, begun)
        for folder, words in ((rig.dir, "is no evidence"), (cut, "is a part of"), (lab, "lab's drives"),
                              (os.path.join(cut, "FAKE1"), "is a part of"), (begun, "only begun"),
                              (running, "--resume"), (killed, "--resume"), ("/nonexistent", "No such"),
                              (rig.plan_path, "is no folder")):
            got = subprocess.run([PLUGPULL, "judge", folder], capture_output=True, text=True)
            readable(got, [words])
            check(got.stderr, "--unsealed" not in got.stderr)
        for folder in (running, killed):
            got = subprocess.run([PLUGPULL, "judge", "--unsealed", folder], capture_output=True,
                                 text=True)
            check(got.stderr + got.stdout, "UNSEALED: " in got.stdout and "--resume" in got.stderr)
        for folder in ("/", rig.dir, "/nonexistent", "/dev/null", rig.plan_path):
            for args in ([], ["--unsealed"]):
                got = subprocess.run([PLUGPULL, "judge", *args, folder], capture_output=True,
                                     text=True)
                readable(got, [])


TESTS = [(f.__name__.replace("_", " "), f) for f in (
    damaged_evidence, bad_plans, dry_run, port_in_use, wrong_key, folders, earlier_of_the_plan,
    full_disk, foreign_evidence)]

if __name__ == "__main__":
    run_all(TESTS, workers=5)
