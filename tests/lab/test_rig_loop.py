#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The lab's rig `loop`, end to end.

Goal: what its verdicts rest on, then the verdicts themselves, on real file systems.
(1) The machine: a cut is silent and loses what the drive's behaviour says and nothing else; a boot has an
    identity and an uptime of its own; other ends are told apart from a cut; nothing is left behind, also
    when the lab is killed; two labs do not see each other. Nothing survives by luck and nothing destages
    by itself there, so each outcome is certain.
(2) The matrix: drives of three behaviours, each with ext4, xfs, btrfs and raw, one machine, one cut for all;
    the table is printed. Each arm gets the verdict that it deserves, and nothing else is lost.
Needs root, /dev/fuse and loop devices. Waits have deadlines; none of them is a measure of speed.

Guards M2.7, M2.8, M5.1, M5.2, M5.3, M6.3, M7.1 to M7.4, M8.2, M8.6; design.md, sections 1 and 6.
"""
import json
import os
import re
import shutil
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_lab_vm import PLUGPULL, WAIT_S, Lab, check, end_of, leftovers, skip  # noqa: E402
from vm_rig import World, run_all  # noqa: E402

LOOP = ("--rig", "loop")


def need_the_rig():
    if os.geteuid():
        skip("needs root for namespaces of its own")
    for node in ("/dev/fuse", "/dev/loop-control"):
        if not os.path.exists(node):
            skip(f"no {node} (modprobe fuse loop)")
    for tool in ("ip", "nsenter", "curl", "mke2fs", "mkfs.xfs", "mkfs.btrfs", "sha256sum"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            skip(f"no {tool}")
    if not os.access(PLUGPULL, os.X_OK):
        skip(f"no {PLUGPULL}")


# ---- the machine -------------------------------------------------------------------------------

# Device, behaviour, what survives a cut of a synced and an unsynced write.
DRIVES = [
    ("HON", "honest", True, False),
    ("LIE", "ignores-flush", False, False),
    ("PLP", "protected", True, True),
    ("FUA", "ignores-fua", True, False),
]
SYNCED, UNSYNCED = 0, 8  # blocks of 4096 bytes


def node(lab, n):
    """The loop device of drive n, by its backing file; "" if there is none."""
    name = lab.guest(f"grep -slx {lab.run_dir}/d{n}/disk /sys/block/loop*/loop/backing_file; true")
    return "/dev/" + name.split("/")[3] if name else ""


def put(lab, n, block, letter, flags):
    lab.guest(f"head -c 4096 /dev/zero | tr '\\0' {letter} | dd of={node(lab, n)} bs=4096 "
              f"seek={block} iflag=fullblock oflag={flags} 2>/dev/null")


def get(lab, n, block):
    return lab.guest(f"dd if={node(lab, n)} bs=4096 skip={block} count=1 iflag=direct 2>/dev/null"
                     " | head -c 1 | tr '\\0' 0")


def smart(lab, n):
    log = json.loads(lab.guest(f"smartctl -j -x {node(lab, n)}"))
    health = log["nvme_smart_health_information_log"]
    return log["serial_number"], health["power_cycles"], health["unsafe_shutdowns"]


def boot_id(lab):
    return lab.guest("cat /proc/sys/kernel/random/boot_id")


def uptime_s(lab):
    return float(lab.guest("cut -d' ' -f1 /proc/uptime"))


def watch(lab):
    """A connection from the machine to this host that has carried something."""
    listener = socket.create_server((lab.info["listen_address"], 0))
    port = listener.getsockname()[1]
    lab.guest("(exec 3<>/dev/null; bash -c 'exec 3<>/dev/tcp/"
              f"{lab.info['listen_address']}/{port}; while echo x >&3; do sleep 0.02; done') "
              "</dev/null >/dev/null 2>&1 &")
    listener.settimeout(WAIT_S)
    connection, _ = listener.accept()
    listener.close()
    connection.settimeout(WAIT_S)
    check("the machine's words arrive", connection.recv(1) == b"x")
    return connection


def options(prefix=""):
    """Loop devices are the whole kernel's: labs that run at one time need serials of their own."""
    words = list(LOOP)
    for serial, behaviour, *_ in DRIVES:
        words += ["--drive", f"{prefix}{serial},behaviour={behaviour},size=64M,destage=0,survive=0"]
    return words + ["--dut", "none"]


def of(lab):
    """What there is of this lab on this host: processes, network, folder, loop devices."""
    mark = os.path.basename(lab.run_dir)
    found = leftovers(lab)
    for name in os.listdir("/sys/block"):
        try:
            with open(f"/sys/block/{name}/loop/backing_file") as f:
                if mark + "/" in f.read():
                    found.append(name)
        except OSError:
            pass
    return found


def test_identity(lab):
    host = open("/proc/sys/kernel/random/boot_id").read().strip()
    first = boot_id(lab)
    check("a boot has an identity of its own", re.fullmatch(r"[0-9a-f-]{36}", first)
          and first != host)
    check("and an uptime of its own", uptime_s(lab) < float(open("/proc/uptime").read().split()[0]))
    check("the first process is its init",
          "loop-boot" in lab.guest("tr '\\0' ' ' </proc/1/cmdline"))
    check("nothing of it is mounted on the host", not [line for line in open("/proc/self/mounts")
                                                       if lab.run_dir in line])
    for n, (serial, *_) in enumerate(DRIVES):
        queue = f"/sys/block/{node(lab, n)[5:]}/queue"
        check(f"{serial}: write back, no FUA", lab.guest(
            f"cat {queue}/write_cache {queue}/fua").split("\n") == ["write back", "0"])
    found = lab.guest(f"{PLUGPULL} identify --all")
    check("a drive goes by its serial", all(re.search(rf"serial +{d[0]}\n", found) for d in DRIVES))


def test_cut(lab):
    for n in range(len(DRIVES)):
        put(lab, n, SYNCED, "S", "direct,dsync")
        put(lab, n, UNSYNCED, "U", "direct")
    seen = lab.done("drive HON stat")["since_power_on"]
    check("FLUSH arrives, FUA does not", seen["fua_writes"] == 0 and seen["flushes"] >= 1)
    check("an honest drive has something to lose", lab.done("drive HON stat")["dirty_bytes"] >= 4096)
    check("it draws power", lab.status()["apower"] > 10)
    before, connection = boot_id(lab), watch(lab)
    lab.switch(False)
    check("reads back off, no watts",
          lab.status()["output"] is False and lab.status()["apower"] == 0)
    check("the machine is gone", not lab.ask("state")["machine"])
    check("its loop devices too", not [d for d in of(lab) if d.startswith("loop")])
    check("the wire is silent", end_of(connection, 3) == "silent")
    start = time.monotonic()
    lab.switch(True)
    check("a new boot", boot_id(lab) != before and uptime_s(lab) <= time.monotonic() - start)
    for n, (serial, behaviour, synced, unsynced) in enumerate(DRIVES):
        check(f"{behaviour}: synced {'kept' if synced else 'lost'}",
              get(lab, n, SYNCED) == ("S" if synced else "0"))
        check(f"{behaviour}: unsynced {'kept' if unsynced else 'lost'}",
              get(lab, n, UNSYNCED) == ("U" if unsynced else "0"))
        check(f"{serial}: its counters say so", smart(lab, n) == (serial, 2, 1))
    check("still silent after the boot", end_of(connection, 1) == "silent")
    connection.close()


def test_orderly(lab):
    before = smart(lab, 1)
    put(lab, 1, UNSYNCED, "V", "direct")
    lab.guest(f"mkfs.ext4 -qF {node(lab, 0)} && mkdir -p /run/m && mount {node(lab, 0)} /run/m && "
              "echo kept >/run/m/f && (sleep 1000 </run/m/f >/dev/null 2>&1 &)")
    lab.guest("(sleep 0.2; poweroff) </dev/null >/dev/null 2>&1 &")
    lab.wait("a machine that powers off ends", lambda: not lab.ask("state")["machine"])
    check("the outlet stays on, and shows it", lab.status()["output"] and lab.status()["apower"] < 5)
    lab.switch(False)
    lab.switch(True)
    check("an orderly power-off keeps all, also on a liar", get(lab, 1, UNSYNCED) == "V")
    check("and unmounts what was still open", lab.guest(
        f"e2fsck -fn {node(lab, 0)} >/dev/null 2>&1 && mkdir -p /run/m && mount -o ro {node(lab, 0)} "
        "/run/m && cat /run/m/f; umount /run/m") == "kept")
    check("and is no unsafe shutdown", smart(lab, 1) == ("LIE", before[1] + 1, before[2]))


def boots_anew(lab, first):
    """Whether the machine answers in another boot; one that is just going down cuts the question off."""
    if not lab.ask("state")["machine"]:
        return False
    answer = lab.ask("guest cat /proc/sys/kernel/random/boot_id")
    return answer["ok"] and answer["status"] == 0 and answer["output"].strip() != first


def test_reset(lab):
    for how in ("reset", "guest (sleep 0.2; reboot) </dev/null >/dev/null 2>&1 &"):
        before, first = smart(lab, 1), boot_id(lab)
        put(lab, 1, UNSYNCED, "W", "direct")
        lab.done(how)
        lab.wait(f"{how}: another boot", lambda: boots_anew(lab, first))
        check("no power cycle", smart(lab, 1) == before)
        check("and nothing lost", get(lab, 1, UNSYNCED) == "W")


def test_mounted_cut(lab):
    """File systems that are busy at the cut, three times in a row: none may hold up the next boot, or
    be taken for still mounted (xfs, btrfs), and what was synced is there."""
    for kind, n, size in (("xfs", 0, None), ("btrfs", 2, None)):
        lab.done(f"swap {DRIVES[n][0]} {DRIVES[n][0]} {320 << 20}")
    lab.switch(False)
    lab.switch(True)
    for kind, n in (("xfs", 0), ("btrfs", 2)):
        lab.guest(f"mkfs.{kind} -qf {node(lab, n)}")
    for i in range(3):
        for kind, n in (("xfs", 0), ("btrfs", 2)):
            dev = node(lab, n)
            seen = lab.guest(
                f"mkdir -p /run/{kind} && mount -t {kind} {dev} /run/{kind} && "
                f"(cat /run/{kind}/s 2>/dev/null || echo first) && echo {i} >/run/{kind}/s && "
                f"sync /run/{kind}/s /run/{kind} && "
                f"dd if=/dev/zero of=/run/{kind}/junk bs=64k count=50 2>/dev/null")
            check(f"{kind}, cut {i}: {seen}", seen == (str(i - 1) if i else "first"))
        lab.switch(False)
        lab.switch(True)


def test_not_a_cut(lab):
    """The negative control of the silence: a machine whose process dies says FIN or RST."""
    connection = watch(lab)
    lab.done("kill-machine")
    check("a killed machine is heard", end_of(connection, 30) in ("FIN", "RST"))
    connection.close()


def test_changed_hardware(lab):
    lab.done("swap LIE OTHER 67108864")
    lab.done("remove FUA")
    lab.switch(False)
    lab.switch(True)
    check("another drive in its place", smart(lab, 1)[0] == "OTHER")
    check("one gone", node(lab, 3) == "")


def test_same_serial(lab, other):
    lab.switch(True)
    same = Lab(*options("N"))  # opens, since the other has no power yet
    other.switch(True)
    answer = same.rpc("Switch.Set", id=0, on=True)
    check("a machine does not start among drives of another's names", "error" in answer)
    check("it closes with 0", same.close() == 0)


def test_killed(lab, other):
    lab.guest(f"mkfs.ext4 -qF {node(lab, 0)} && mkdir -p /run/m && mount {node(lab, 0)} /run/m && "
              "(while echo x; do :; done >/run/m/f &)")
    check("there is something to leave behind", len(of(lab)) > 6)
    lab.process.kill()
    lab.process.wait()
    lab.wait("nothing is left by a lab that was killed", lambda: of(lab) == [])
    check("its neighbour lives", other.guest("echo yes") == "yes" and len(of(other)) > 6)
    other.process.send_signal(signal.SIGINT)
    check("and ends by ^C", other.process.wait(WAIT_S) == 0)
    other.wait("taking its own with it", lambda: of(other) == [])


def test_swept():
    """A lab whose guard was killed with it leaves things behind; the next one to start removes them."""
    lab = Lab(*options())
    lab.switch(True)
    lab.guest("true")
    guard = [p for p in filter(str.isdigit, os.listdir("/proc"))
             if lab.run_dir.encode() in cmdline(p) and b"plugpull-lab-guard" in cmdline(p)]
    check("it has one guard", len(guard) == 1)
    os.kill(int(guard[0]), signal.SIGKILL)
    lab.process.kill()
    lab.process.wait()
    check("something is left", [d for d in of(lab) if d.startswith("loop")] != [])
    other = Lab(*options("N"))
    lab.wait("the next lab sweeps it", lambda: of(lab) == [])
    check("and ends well", other.close() == 0)


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""


def machine():
    lab = Lab(*options())
    try:
        start = time.monotonic()
        lab.switch(True)
        lab.guest("true")
        print(f"note: {time.monotonic() - start:.2f} s from power-on to a ready machine")
        test_identity(lab)
        test_cut(lab)
        test_orderly(lab)
        test_reset(lab)
        test_mounted_cut(lab)
        test_changed_hardware(lab)
        test_not_a_cut(lab)
        check("it closes with 0", lab.close() == 0)
        check("nothing is left", of(lab) == [])
    finally:
        if lab.process.poll() is None:
            lab.close()
    labs = Lab(*options()), Lab(*options("N"))
    try:
        test_same_serial(*labs)
        test_killed(*labs)
    finally:
        for left in labs:
            if left.process.poll() is None:
                left.close()
    test_swept()


# ---- the matrix ----------------------------------------------------------------------------------

BEHAVIOURS = {"HON": "honest", "LIE": "ignores-flush", "PLP": "protected", "GRO": "ignores-flush"}
SYSTEMS = {"EXT4": "128M", "XFS": "320M", "BTRFS": "160M", "NOCOW": "160M", "RAW": "64M"}
LAB_KEYS = "cache=4M,destage=256K,survive=50,size="
MEDIA = ("fdatasync", "fsync", "open_datasync (direct)")
# Four trials an arm; five of `direct` at the arms' pace, all of which must lose for the others to be
# SAFE (M7.3), and some more for a busy host.
CRITERION = {"criterion": "93/50", "write_min_ms": 200, "write_max_ms": 500, "controls": 3,
             "controls_max": 8}
TRIALS = 4
# On a busy host a shutdown takes its time; one that is cut short is no base to start from.
MACHINE = {"hold_up_ms": 800, "poweroff_settle_s": 3}
NOT_ASKED = "the kernel did not ask the drive"
rows = []  # of the table, from all worlds


class LoopWorld(World):
    lab_words = LOOP


def drive(serial):
    behaviour, system = serial.split("-")
    keys = {"size_mib": 24 if behaviour in ("NAM", "GRO") else 4, "format": system.lower()}
    if system == "RAW":
        keys = {"size_mib": 4, "target": "raw"}
    elif system == "NOCOW":  # btrfs that writes in place
        keys.update(format="btrfs", mount_options="nodatacow")
    elif behaviour == "NOB":
        keys["mount_options"] = "nobarrier"
    elif behaviour == "PLP":
        keys["cache"] = "protected"
    if behaviour == "PLP" and system == "RAW":
        keys["cache"] = "protected"
    return keys, f"{LAB_KEYS}{SYSTEMS[system]},behaviour={BEHAVIOURS.get(behaviour, 'honest')}"


def arms_of(serials, methods, workload="overwrite"):
    return {"methods": ", ".join(methods), "workload": workload,
            "drives": ", ".join(s.lower() for s in serials)}


def deserved(serial, method, workload):
    """The verdict, and a reason that it must give; None where what happens is only reported."""
    behaviour, system = serial.split("-")
    if workload == "create-nodir":
        return None
    if method == "write":
        return "LOSES", ""
    if method == "direct":
        # Copy on write: the last transaction is what a cut leaves, whatever the drive keeps.
        return "KEEPS" if behaviour == "PLP" and system != "BTRFS" else "LOSES", ""
    if behaviour in ("LIE", "GRO"):
        return "UNSAFE", ""
    if behaviour == "NOB":
        return "UNSAFE", NOT_ASKED
    if behaviour == "PLP" and system != "BTRFS":
        return "SAFE", "rests on protection"
    if system == "BTRFS":
        return "INCONCLUSIVE", "rig too blind"
    # Controls keep pace with what overwrites; files that grow or are renamed are slower.
    return "SAFE" if workload == "overwrite" else ("SAFE", "INCONCLUSIVE"), ""


def check_world(world, serials, methods_on, trials):
    arms = world.arms()
    for serial, method, workload in methods_on:
        a = arms[serial, method, workload]
        rows.append((serial, workload, method, a))
        what = f"{serial}, {method} on {workload}: {a['verdict']} {a['reasons']}"
        want = deserved(serial, method, workload)
        if want is None:
            check(what, a["verdict"] in ("LOSES", "KEEPS"))
            continue
        verdict, reason = want
        check(what, a["verdict"] in (verdict if isinstance(verdict, tuple) else (verdict,))
              and any(reason in r for r in a["reasons"] or [""]))
        if a["verdict"] == "INCONCLUSIVE" and workload == "overwrite":
            check(f"{what}: for no other reason", all("rig too blind" in r for r in a["reasons"][:1]))
        lost = a["verdict"] in ("UNSAFE", "LOSES")
        check(f"{what}: lost {a['records_lost']}", (a["records_lost"] > 0) == lost)
        check(f"{what}: {a['cuts_clean']} clean", lost or a["cuts_clean"] >= (1 if method == "direct" else
                                                                        trials))
        check(f"{what}: none open", a["cuts_open"] == 0)
    for serial in serials:
        for t in world.trials(serial):
            if t["records_lost"] == 0 and t["outcome"] == "clean":
                check(f"{serial}: its counters prove the power loss", t["drive_lost_power"])


def run_world(serials, arms, status=1, trials=TRIALS, **campaign):
    with LoopWorld({s: drive(s) for s in serials}, arms, campaign={**CRITERION, **campaign},
                   machine=MACHINE) as world:
        start = time.monotonic()
        c = world.run()
        check(f"exit {c.process.returncode}: {c.err[-2000:]}", c.process.returncode == status)
        cuts = len(os.listdir(os.path.join(world.out, "cuts")))
        print(f"note: {cuts} cuts of {len(serials)} drives, {time.monotonic() - start:.0f} s")
        methods_on = [(s, m, a["workload"]) for a in arms.values() for s in serials
                      for m in a["methods"].split(", ") if s.lower() in a["drives"].split(", ")]
        check_world(world, serials, methods_on, trials)
        world.check_evidence(status)
        return world.arms()


def in_place():
    """File systems that write in place, and none: there `direct` shows the drive's cache (M7.2)."""
    serials = [f"{b}-{s}" for b in ("HON", "LIE") for s in ("EXT4", "RAW")]
    run_world(serials, {"": arms_of(serials, ("write", "direct") + MEDIA)})


def others():
    serials = [f"{b}-{s}" for b in ("HON", "LIE") for s in ("XFS", "BTRFS")] + ["HON-NOCOW"]
    arms = run_world(serials, {"": arms_of(serials, ("write", "direct") + MEDIA)})
    gone = [arms["LIE-BTRFS", m, "overwrite"]["records_lost_by_class"] for m in MEDIA]
    check(f"M6.3: a btrfs that does not mount after the cut is a loss: {gone}",
          any("fs-gone" in g for g in gone))


def protected():
    serials = [f"PLP-{s}" for s in ("EXT4", "XFS", "BTRFS", "RAW")]
    run_world(serials, {"": arms_of(serials, ("write", "direct") + MEDIA)}, status=2, trials=1,
              criterion="50/50", controls=2, controls_max=2)


def names():
    """Files that grow, and files that come and go, by name; and the kernel told not to ask."""
    honest = ["NAM-EXT4", "NAM-XFS", "NAM-BTRFS"]  # no serial twice among labs at one time
    serials = honest + ["GRO-EXT4", "NOB-EXT4"]
    run_world(serials, {
        "nob": arms_of(["NOB-EXT4"], ("fdatasync",)),
        "append": arms_of(honest + ["GRO-EXT4"], ("fdatasync",), "append"),
        "fallocated": arms_of(honest, ("fdatasync",), "fallocated"),
        "create": arms_of(honest, ("fdatasync",), "create"),
        "nodir": arms_of(honest, ("fdatasync",), "create-nodir"),
        "rename": arms_of(honest, ("fdatasync",), "rename")},
        trials=3, criterion="87/50", controls_max=1, controls_end=0)


def print_table():
    print("note: drive, workload, method: verdict (cuts clean/loss/void) lost of acked, by class")
    for serial, workload, method, a in sorted(rows, key=lambda r: r[:3]):
        print(f"note: {serial:9} {workload:12} {method:22} {a['verdict']:12} "
              f"({a['cuts_clean']}/{a['cuts_loss']}/{a['cuts_void']}) {a['records_lost']} of "
              f"{a['records_acked']} {a['records_lost_by_class'] or ''}")


if __name__ == "__main__":
    need_the_rig()
    try:
        run_all([("M7.3 drives whose file system writes in place", in_place),
                 ("M6.3 other file systems", others),
                 ("M4 names and sizes of files", names), ("M7.4 protected caches", protected),
                 ("M5 the machine", machine)], at_a_time=3)
    finally:
        print_table()
