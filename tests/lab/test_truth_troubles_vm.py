#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: in a real machine, too, what is not a proven cut is void, what cannot be looked at is open, and
a drive that does not come back is a loss; a controller that is killed leaves the outlet on and its
evidence whole; nothing of the lab is left behind, however it ends. Method: one cut each on an honest
drive; the trouble is made through the lab's own control socket while the controller is at a state
that cut.json names. tests/lab/test_controller.py has many more troubles, with a machine that is faked.

Guards M4.7, M5.1, M5.2, M6.1, M6.2, M6.4 and design.md, section 7.
"""
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from vm_rig import (PLUGPULL, TOP, World, await_that, check, need_the_lab, of_mark,  # noqa: E402
                    run_all)

LAB = "size=128M,cache=4M,destage=256K,survive=50,behaviour=honest"
ONE = {"D": ({}, LAB)}
ARM = {"": {"methods": "fdatasync", "workload": "overwrite"}}
QUICK = {"controls": 0, "voids_max": 1}
LONG = {**QUICK, "write_min_ms": 4000, "write_max_ms": 4000}


def world(campaign, **more):
    return World(ONE, ARM, campaign=campaign, **more)


def at(w, state):
    await_that(f"{state}, is {w.state()}", lambda: w.state() == state, step=0.002)


def in_full_swing(w):
    """The run has begun, and its acks arrive."""
    at(w, "writing")
    ledger = os.path.join(w.out, "cuts", "0001", "D", "acks.ledger")
    start = os.path.getsize(ledger)
    await_that("acks", lambda: os.path.getsize(ledger) > start + 1000, step=0.01)


def one_trial(w, c, outcome, reason, status):
    got = [(t["outcome"], t["reason"]) for t in w.trials("D")]
    check(f"{got}, exit {c.process.returncode}: {c.err}",
          got == [(outcome, reason)] and c.process.returncode == status)
    w.check_evidence(status)
    check("the outlet is on", w.lab.ask("state")["outlet"])


def made_while_writing(trouble, outcome, reason, status=2, campaign=LONG, mend=None, **more):
    def test():
        with world(campaign, **more) as w:
            c = w.start("--cuts", "1")
            in_full_swing(w)
            answer = w.lab.ask(trouble)
            # The campaign cuts as soon as it hears of it, perhaps before the machine has answered.
            check(f"{trouble}: {answer}", answer["ok"] or answer["error"] == "the machine went away")
            if mend:
                await_that("it ends", lambda: c.process.poll() is not None)
            c.wait()
            if mend:
                w.lab.done(mend)
                w.lab.switch(True)
            one_trial(w, c, outcome, reason, status)
    return test


def no_boot():
    """M6.2: open, paused with the outlet on; when the machine boots again, resume judges that cut."""
    with world({**QUICK, "write_min_ms": 1500, "write_max_ms": 1500},
               machine={"boot_deadline_s": 6}) as w:
        c = w.start("--cuts", "1")
        in_full_swing(w)
        w.lab.done("no-boot 1")
        c.wait()
        one_trial(w, c, "open", "no-boot", 2)
        w.lab.done("no-boot 0")
        w.lab.switch(False)
        w.lab.switch(True)
        c = w.run("--cuts", "1", "--resume")
        one_trial(w, c, "clean", "", 2)


def killed(state, ends):
    def test():
        with world(QUICK, pdu={"off_s": 1}) as w:
            c = w.start("--cuts", "1")
            at(w, state)
            c.kill()
            c.wait()
            if state != "booting":
                check("it was killed in time", w.state() == state)
            await_that("the guard turns the outlet on", lambda: w.lab.ask("state")["outlet"])
            c = w.run("--cuts", "1", "--resume")
            got = [(t["outcome"], t["reason"]) for t in w.trials("D")]
            check(f"{got}, exit {c.process.returncode}: {c.err}",
                  got == ends and c.process.returncode == 2)
            w.check_evidence(2)
    return test


def lab_in_the_plan(sig):
    """A campaign with a [lab] of its own that is interrupted or killed takes all of it along."""
    def test():
        with open(os.path.join(TOP, "docs", "examples", "lab-honest.ini")) as f:
            plan = f.read()
        with tempfile.TemporaryDirectory(prefix="pp-vm-") as folder:
            path, out = os.path.join(folder, "plan.ini"), os.path.join(folder, "out")
            with open(path, "w") as f:
                f.write(plan)
            mark = "PLUGPULL_TEST_VM=" + folder
            before = things()
            c = subprocess.Popen([PLUGPULL, "campaign", path, "--out", out], text=True,
                                 env=dict(os.environ, PLUGPULL_TEST_VM=folder),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE)
            try:
                for line in c.stderr:
                    if "is here" in line:
                        break
                check("there is a lab", len(of_mark(mark)) >= 4)
                c.send_signal(sig)
                c.communicate()
            finally:
                c.kill()
                c.wait()
            await_that(f"nothing is left: {of_mark(mark)}", lambda: of_mark(mark) == [], 60)
            check("it ended as it should", c.returncode == (-9 if sig == signal.SIGKILL else 2))
            await_that(f"no namespace, cable or run folder: {things() - before}",
                       lambda: not ours(things() - before, c.pid), 60)
    return test


def things():
    return {f for d in ("/run/netns", "/sys/class/net", "/tmp") if os.path.isdir(d)
            for f in os.listdir(d)}


def ours(names, pid):
    """Names carry the pid of the lab; others' labs come and go beside us."""
    return [n for n in names if f"-{pid}-" in n]


if __name__ == "__main__":
    need_the_lab()
    run_all([
        ("M5.2 a machine that reboots by itself", made_while_writing(
            "reset", "void", "died before the cut")),
        ("M5.1 a writer that is killed while its machine lives", made_while_writing(
            "kill-agent", "void", "died before the cut")),
        ("M5.1 a switch that answers 200 and does nothing", made_while_writing(
            "pdu ignores", "void", "off was not read back", mend="pdu none")),
        ("M6.1 another drive in its place", made_while_writing(
            "swap D OTHER", "loss", "", status=1)),
        ("M6.1 a drive that is gone", made_while_writing("remove D", "loss", "", status=1)),
        ("M6.2 no-boot", no_boot),
        ("M6.4 killed at off-sent", killed("off-sent", [("void", "off was not read back"),
                                                        ("clean", "")])),
        ("M6.4 killed at booting", killed("booting", [("clean", "")])),
        ("a lab in the plan, ^C", lab_in_the_plan(signal.SIGINT)),
        ("a lab in the plan, killed", lab_in_the_plan(signal.SIGKILL)),
    ])
