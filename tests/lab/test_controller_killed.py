#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: whatever moment the controller dies or is interrupted at, the outlet comes on again, the
evidence stays whole, and --resume finishes the campaign with a judgement that `judge` repeats byte
for byte. Method: the fake machine or its switch holds the controller at a state that cut.json
names; then SIGKILL or SIGINT; then the hold is lifted. No step depends on being quick.

Guards M5.1, M5.6, M6.4 and design.md, sections 5 to 7.
"""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_rig import Rig, check, run_all  # noqa: E402

HONEST, LIAR = ("FAKE1:honest",), ("FAKE1:ignores-both",)
LONG = {"campaign": {"write_min_ms": 3000, "write_max_ms": 3000}}
MEDIUM = {"campaign": {"write_min_ms": 800, "write_max_ms": 800}}
OFF = {"pdu": {"off_s": 3}}
DIED = ("void", "controller died before the cut")
CLEAN = ("clean", "")

# state, drives, flags from the beginning, (flag that is raised, at this state), plan, what comes out
KILLED = [
    ("preparing", HONEST, ["hold-smart"], None, {}, [CLEAN]),
    ("writing", HONEST, [], None, LONG, [DIED, CLEAN]),
    ("off-sent", HONEST, [], ("hold-off", "writing"), MEDIUM,
     [("void", "off was not read back"), CLEAN]),
    ("off-read", HONEST, [], None, OFF,
     [("void", "controller died before it had heard the silence"), CLEAN]),
    ("on-sent", HONEST, [], ("hold-on", "writing"), MEDIUM, [CLEAN]),
    ("booting", HONEST, [], ("boot-ms=3000", "writing"), MEDIUM, [CLEAN]),
    ("scanning", HONEST, [], ("hold-scan", "writing"), MEDIUM, [CLEAN]),
    ("re-reading", LIAR, ["hold-reread"], None, {}, [("loss", "")]),
    ("judged", HONEST, [], None, {}, [CLEAN]),
]

# what is held in a set-up, before there is any cut
SETUP = ["hold-identify", "hold-format", "hold-prewrite", "hold-poweroff", "hold-off", "hold-on",
         "hold-scan"]


def raise_flag(rig, text):
    name, _, value = text.partition("=")
    rig.flag(name, value)


def dies(rig, c):
    """SIGKILL; the holds end; the guard must turn the outlet on. It lingers when the resume begins."""
    c.kill(signal.SIGKILL)
    c.process.wait()
    rig.unflag_all()
    rig.await_that("the outlet is on again", lambda: rig.power() == "on")


def ends(rig):
    return [(t["outcome"], t["reason"]) for t in rig.trials()]


def killed(row):
    state, drives, flags, later, plan, wanted = row
    with Rig(drives, flags, **plan) as rig:
        c = rig.start("--cuts", "1")
        if later:
            rig.await_that(later[1], lambda: rig.state() == later[1])
            raise_flag(rig, later[0])
        rig.await_that(state, lambda: rig.state() == state)
        dies(rig, c)
        check(f"was still at {state}", rig.state() == state)
        r = rig.run("--cuts", "1", "--resume")
        check(f"{ends(rig)}\n{r.err}", ends(rig) == wanted)
        status = 1 if wanted[-1][0] == "loss" else 2
        check(f"exit {r.process.returncode}\n{r.err}", r.process.returncode == status)
        check("judge says the same", rig.check_same_judgement() == status)
        check("outlet is on", rig.power() == "on")
        rig.await_that("nothing is left", lambda: rig.processes(besides_machine=True) == [])


NOISE = {"drive_d": {"size_mib": 6},
         "arms": {"methods": "fdatasync", "record_bytes": 4096, "noise": "yes"}}


def killed_with_noise():
    """M7.6: what was lost of the noise is found and read again by whoever resumes."""
    for state, flag, at in (("scanning", "hold-scan", "writing"),
                            ("re-reading", "hold-reread", "writing")):
        with Rig(HONEST, ["no-counters"], **NOISE, **MEDIUM) as rig:
            c = rig.start("--cuts", "1")
            rig.await_that(at, lambda: rig.state() == at)
            rig.flag(flag)
            rig.await_that(state, lambda: rig.state() == state)
            dies(rig, c)
            rig.flag("no-counters")
            r = rig.run("--cuts", "1", "--resume")
            check(f"{ends(rig)}\n{r.err}", ends(rig) == [CLEAN])
            t = rig.trials()[0]
            check(f"{t}", t["noise_lost"] and t["drive_power_witness"] == "lost acked noise")
            check("judge says the same", rig.check_same_judgement() == 2)


def killed_of_two_orders():
    """M1.3: the run is of the arm in its own order, and its records are in that arm's file."""
    with Rig(HONEST, [], **MEDIUM) as rig:
        rig.plan("[arms shuffled]\nmethods = fdatasync\nrecord_bytes = 4096\npattern = random\n",
                 drive_d={"size_mib": 4}, **MEDIUM)
        c = rig.start("--cuts", "1")
        rig.await_that("writing", lambda: rig.state() == "writing")
        rig.flag("hold-scan")
        rig.await_that("scanning", lambda: rig.state() == "scanning")
        dies(rig, c)
        r = rig.run("--cuts", "1", "--resume")
        check(f"{ends(rig)}\n{r.err}", ends(rig) == [CLEAN, CLEAN])
        check("judge says the same", rig.check_same_judgement() == 2)


def killed_in_setup(hold):
    with Rig(HONEST, [hold]) as rig:
        c = rig.start("--cuts", "1")
        where = {"hold-identify": "machine 'fake' is here", "hold-format": "building the target",
                 "hold-prewrite": "building the target", "hold-poweroff": "building the target",
                 "hold-off": "ended (FIN)", "hold-on": "ended (FIN)"}.get(hold, "building")
        rig.await_that(where, lambda: where in c.err)
        if hold in ("hold-off", "hold-on"):
            rig.await_that("the outlet is off", lambda: rig.power() == "off")
        if hold == "hold-scan":
            rig.await_that("it has booted again", lambda: c.err.count("is here") == 2)
        if hold in ("hold-prewrite", "hold-scan", "hold-poweroff"):
            rig.await_that("it is formatted", lambda: os.path.exists(
                os.path.join(rig.out, "setups", "0001", "FAKE1", "setup.json")))
        dies(rig, c)
        check("no cut was made", rig.cuts() == [])
        begun = os.path.exists(os.path.join(rig.out, "target.json"))
        r = rig.run("--cuts", "1", *(["--resume"] if begun else []))
        if not begun:
            check(f"says what to do: {r.err}", r.process.returncode == 2 and "--out" in r.err)
            return
        if hold == "hold-format":
            # The order outlived its controller: nobody knows whose file system that is.
            check(r.err, r.process.returncode == 2 and "force = yes" in r.err)
            return
        check(f"{ends(rig)}\n{r.err}", ends(rig) == [CLEAN])
        check("judge says the same", rig.check_same_judgement() == 2)


def twice():
    """Killed, resumed, killed again in the resumed aftermath, resumed."""
    with Rig(HONEST, [], **MEDIUM) as rig:
        c = rig.start("--cuts", "1")
        rig.await_that("writing", lambda: rig.state() == "writing")
        rig.flag("hold-scan")
        rig.await_that("scanning", lambda: rig.state() == "scanning")
        dies(rig, c)
        rig.flag("hold-prove")
        c = rig.start("--cuts", "1", "--resume")
        rig.await_that("scanning again", lambda: "cut 1 was left at 'scanning'" in c.err)
        dies(rig, c)
        r = rig.run("--cuts", "1", "--resume")
        check(f"{ends(rig)}\n{c.err}\n{r.err}", ends(rig) == [CLEAN])
        check("judge says the same", rig.check_same_judgement() == 2)


def wrote_since():
    """M6.4: something wrote to the target between the cut and the resume: open, not clean."""
    with Rig(HONEST, [], **MEDIUM) as rig:
        c = rig.start("--cuts", "1")
        rig.await_that("writing", lambda: rig.state() == "writing")
        rig.flag("hold-scan")
        rig.await_that("scanning", lambda: rig.state() == "scanning")
        dies(rig, c)
        rig.flag("foreign-run")
        r = rig.run("--cuts", "1", "--resume")
        check(f"{ends(rig)}\n{r.err}", ends(rig)[0] ==
              ("open", "something wrote to the target after the cut"))
        check("judge says the same", rig.check_same_judgement() == 2)


def another_boot(drives, wanted):
    """M6.2: a person boots it again, from the stick perhaps, before the resume: proven it stays."""
    with Rig(drives, [], **MEDIUM) as rig:
        c = rig.start("--cuts", "1")
        rig.await_that("writing", lambda: rig.state() == "writing")
        rig.flag("hold-scan")
        rig.await_that("scanning", lambda: "scanning drive" in c.err)
        dies(rig, c)
        boots = rig.load("cuts", "0001", "cut.json")["boots"]
        check("the new boot is in the evidence", len(boots) == 1)
        for word in "off", "on":
            subprocess.run([rig.fake, "--pdu", rig.dir, "1", word], check=True)
            time.sleep(0.3)
        r = rig.run("--cuts", "1", "--resume")
        check(f"{ends(rig)}\n{r.err}", ends(rig) == [wanted])
        check("judge says the same", rig.check_same_judgement() == r.process.returncode)


def interrupted(rig, c, state, wanted, status=2):
    c.kill(signal.SIGINT)
    c.wait()
    check(f"exit {c.process.returncode}\n{c.err}", c.process.returncode == status)
    check("says so", "interrupted" in c.err and "--resume" in c.err)
    check("outlet is on", rig.power() == "on")
    check("whole and sealed", rig.check_same_judgement() == status)
    rig.await_that("nothing is left", lambda: rig.processes(besides_machine=True) == [])
    rig.unflag_all()
    r = rig.run("--cuts", "1", "--resume")
    check(f"{state}: {ends(rig)}\n{r.err}", ends(rig) == wanted)
    check("judge says the same", rig.check_same_judgement() == r.process.returncode)


def interrupt_at(state, plan, flags, wanted):
    with Rig(HONEST, flags, **plan) as rig:
        c = rig.start("--cuts", "1")
        rig.await_that(state, lambda: rig.state() == state)
        interrupted(rig, c, state, wanted)


def interrupt_again_and_again():
    """Three interrupts of one arm are no three voids in a row: the fourth start goes on."""
    with Rig(HONEST, [], campaign={"write_min_ms": 3000, "write_max_ms": 3000,
                                   "voids_max": 2}) as rig:
        for i in range(3):
            c = rig.start("--cuts", "1", *(["--resume"] if i else []))
            rig.await_that("writing", lambda: len(rig.cuts()) == i + 1 and rig.state() == "writing")
            c.kill(signal.SIGINT)
            c.wait()
            check(c.err, c.process.returncode == 2)
        r = rig.run("--cuts", "1", "--resume")
        check(f"{ends(rig)}\n{r.err}", ends(rig) ==
              [("void", "interrupted by a person")] * 3 + [CLEAN])


def interrupt_after_loss():
    """Exit 1 where a loss stands, interrupted or not (M8.7)."""
    with Rig(LIAR, [], campaign={"stop_at_first_loss": "no", "write_min_ms": 800,
                                 "write_max_ms": 800}) as rig:
        c = rig.start("--cuts", "3")
        rig.await_that("a second cut", lambda: len(rig.cuts()) == 2 and rig.state() == "writing")
        c.kill(signal.SIGINT)
        c.wait()
        check(f"exit {c.process.returncode}\n{c.err}", c.process.returncode == 1)
        check("judge says the same", rig.check_same_judgement() == 1)


def interrupt_before_agent():
    """Nobody there yet: it ends at once, and says that there is nothing to judge."""
    with Rig(HONEST) as rig:
        rig.machine.kill()
        rig.machine.wait()
        c = rig.start("--cuts", "1")
        rig.await_that("listening", lambda: "power switch" in c.err)
        c.kill(signal.SIGINT)
        c.wait()
        check(f"exit {c.process.returncode}\n{c.err}", c.process.returncode == 2)


TESTS = [("killed at " + row[0], lambda row=row: killed(row)) for row in KILLED]
TESTS += [("killed in set-up, " + h, lambda h=h: killed_in_setup(h)) for h in SETUP]
TESTS += [
    ("Ctrl-C while writing", lambda: interrupt_at(
        "writing", LONG, [], [("void", "interrupted by a person"), CLEAN])),
    ("Ctrl-C while off", lambda: interrupt_at("off-read", OFF, [], [CLEAN])),
    ("Ctrl-C while booting", lambda: interrupt_at("booting", {}, ["boot-ms=1500"], [CLEAN])),
]
TESTS += [
    ("M6.2 another boot before the resume, clean", lambda: another_boot(HONEST, CLEAN)),
    ("M6.2 another boot before the resume, a loss", lambda: another_boot(LIAR, ("loss", ""))),
]
TESTS += [(f.__doc__.split(":")[0], f) for f in (
    twice, killed_with_noise, killed_of_two_orders, wrote_since, interrupt_again_and_again,
    interrupt_after_loss, interrupt_before_agent)]

if __name__ == "__main__":
    run_all(TESTS, workers=10)
