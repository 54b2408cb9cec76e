#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: the cache policy is a factor of a campaign, and is put back whatever happens. Method: the real
`plugpull campaign` against tests/lab/fake_machine.c, whose drive has a cache that can be switched off
and whose kernel can be told to drop flushes; both are as after a power-on at each boot. DIR/policy
tells what was ordered.

Guards M1.3, M1.4, M1.5, M7.4, M8.2, M8.3 for arms with a policy.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_rig import Rig, check, run_all  # noqa: E402

HONEST = ("FAKE1:honest",)
ALL = "cache-on, cache-off, flushing-off"


def arms(policy=ALL, methods="fdatasync", **more):
    return {"arms": {"methods": methods, "record_bytes": 4096, "policy": policy}, **more}


def changes(rig):
    try:
        with open(os.path.join(rig.dir, "policy")) as f:
            return [line.split(" ", 1)[1] for line in f.read().splitlines()]
    except FileNotFoundError:
        return []


def verdicts(rig, method="fdatasync"):
    return {a["policy_setting"]: a["verdict"] for a in rig.load("campaign.json")["arms"]
            if a["method"] == method}


def outcomes(rig):
    return [(t["policy_setting"], t["method"], t["outcome"]) for t in rig.trials()]


def each_policy():
    """M1.5 policies: measured on an honest drive: on clean, off clean, dropped flushes UNSAFE."""
    with Rig(**arms()) as rig:
        c = rig.run("--cuts", "1")
        got = {s: o for s, _, o in outcomes(rig)}
        check(f"{got}\n{c.err}", got == {"cache-on": "clean", "cache-off": "clean",
                                         "flushing-off": "loss"})
        check("exit 1", c.process.returncode == 1)
        arm = next(a for a in rig.load("campaign.json")["arms"]
                   if a["policy_setting"] == "flushing-off")
        check(f"{arm}", arm["verdict"] == "UNSAFE" and
              any("the kernel did not ask" in r for r in map(str, arm["reasons"])))
        check("same", rig.check_same_judgement() == 1)
        check(f"put back last: {changes(rig)}", changes(rig)[-1] == "restore")
        check("told", "put back as it was found" in c.out)
        run = rig.load("cuts", "0001", "FAKE1", "run.json")
        check(f"{run}", run["policy"] == run["policy_wanted"] != "" and run["setting"] == "cache-on")
        with open(os.path.join(rig.out, "policies", "FAKE1.found")) as f:
            check("found", "policy_before_drive_cache=on\n" in f.read())


def table():
    """M1.3 table: a look at method by policy; direct loses with the cache on and keeps with it off."""
    with Rig(**arms("cache-on, cache-off", "write, direct, fdatasync",
                    campaign={"controls": 1, "controls_end": 0})) as rig:
        c = rig.run("--cuts", "1")
        got = {(s, m): o for s, m, o in outcomes(rig)}
        check(f"{got}", got[("cache-on", "direct")] == "loss" and
              got[("cache-off", "direct")] == "clean")
        check("write loses everywhere", all(o == "loss" for (_, m), o in got.items() if m == "write"))
        rows = [line.split() for line in c.out.splitlines()]
        check(c.out, ["policy:", "cache-on", "cache-off"] in rows)
        check(c.out, ["direct", "LOSES", "KEEPS"] in rows and ["write", "LOSES", "LOSES"] in rows)
        check("80 columns", all(len(line) <= 80 for line in c.out.splitlines()))


def safe_with_cache_off():
    """M7.4 off: SAFE with the cache off, by as many trials of direct as of the arm, and no more."""
    with Rig(**arms("cache-off", campaign={"controls": 1, "controls_end": 1})) as rig:
        c = rig.run()
        check(c.err + c.out, c.process.returncode == 0 and verdicts(rig) == {"cache-off": "SAFE"})
        check("as many", [m for _, m, _ in outcomes(rig)].count("direct") == 5)
        check(c.out, "rests on the write cache being off" in c.out)
        check("same", rig.check_same_judgement() == 0)


def comes_back_different():
    """M1.5 back: after a boot the cache is on again: an event, and it is set anew before the next run."""
    with Rig(**arms("cache-off")) as rig:
        c = rig.run("--cuts", "2")
        run = rig.load("cuts", "0001", "FAKE1", "run.json")
        check(f"{run}", "drive cache off" in run["policy"] and "drive cache on" in run["policy_after"])
        check("event", "came back as 'drive cache on" in c.err and
              "did not survive power-up in 2 cuts" in c.out)
        check(f"clean all the same: {outcomes(rig)}", [o for _, _, o in outcomes(rig)] == ["clean"] * 2)
        check(f"{changes(rig)}", changes(rig).count("set cache-off") == 3)


def slips():
    """M1.5 void: a run under another policy than the arm's counts for nothing."""
    with Rig(HONEST, [], **arms("cache-off")) as rig:
        c = rig.start("--cuts", "1")
        rig.await_that("it has begun", lambda: "set cache-off" in changes(rig))
        rig.flag("policy-slips")
        c.wait()
        t = rig.trials()
        check(f"{t}\n{c.err}", (t[0]["outcome"], t[0]["reason"]) ==
              ("void", "the drive's cache policy is not the arm's"))
        check("remedy", "the write cache came back another way" in c.err)
        check("never SAFE", verdicts(rig) == {"cache-off": "INCONCLUSIVE"})


def built_with_flushes():
    """M2.8 set-up: a target is built with flushes sent, also where the plan only names to drop them."""
    with Rig(HONEST, ["policy-lasts"], **arms("flushing-off")) as rig:
        c = rig.run("--cuts", "2")
        check(f"{outcomes(rig)}\n{c.err}", [o for _, _, o in outcomes(rig)] == ["loss"])
        done = changes(rig)
        # found on, tried; made on for the base, dropped for the run; on again for the base after the loss
        check(f"{done}", done[:3] == ["set flushing-off", "set cache-on", "set flushing-off"])
        check("put back", done[-1] == "restore")


def cannot_be_had():
    """M8.5 n/a: a policy that the drive does not have is N/A, at the start; the others are run."""
    for flag, why in (("policy-no-cache-off", "fake trouble"), ("policy-sticks", "did not take it")):
        with Rig(HONEST, [flag], **arms("cache-on, cache-off")) as rig:
            c = rig.run("--cuts", "1")
            check(f"{verdicts(rig)}\n{c.err}", verdicts(rig)["cache-off"] == "N/A")
            check(c.out, why in c.out)
            check(f"{outcomes(rig)}", [s for s, _, _ in outcomes(rig)] == ["cache-on"])
            check("N/A is not SAFE", c.process.returncode == 2)
            check("same", rig.check_same_judgement() == 2)


def cannot_be_asked():
    """M8.5 asked: a drive that has no word for its policy: all of its arms are N/A, nothing is changed."""
    with Rig(HONEST, ["policy-unread"], **arms("cache-on, cache-off")) as rig:
        c = rig.run("--cuts", "1")
        check(f"{c.err}", verdicts(rig) == {"cache-on": "N/A", "cache-off": "N/A"})
        check("nothing", changes(rig) == [] and rig.cuts() == [] and c.process.returncode == 2)


def refused():
    """M1.5 refused: the machine's owner did not allow it: nothing is cut, no folder is in the way."""
    with Rig(HONEST, ["policy-refused"], **arms("cache-off")) as rig:
        c = rig.run("--cuts", "1")
        check(c.err, c.process.returncode == 2 and "may not be changed here" in c.err)
        check("no folder", not os.path.exists(rig.out) and changes(rig) == [])


def interrupted():
    """M1.5 ^C: what was found is put back after an interrupt, in a run and while the machine is dark."""
    for state in "writing", "booting":
        with Rig(HONEST, ["boot-ms=1000"], **arms("cache-off", campaign={"write_min_ms": 1000,
                 "write_max_ms": 1000})) as rig:
            c = rig.start("--cuts", "3")
            rig.await_that(f"a cut is {state}", lambda: rig.state() == state)
            c.kill(signal.SIGINT)
            check("ends", c.wait() == 2)
            check(f"{state}: {changes(rig)}\n{c.err}", changes(rig)[-1] == "restore" and
                  "put back as it was found" in c.err)
            check("outlet", rig.power() == "on")


def interrupted_in_order():
    """M1.5 ^C between the shutdown and the off of an orderly cycle: the machine gets its power anew."""
    with Rig(**arms("cache-off", machine={"poweroff_settle_s": 2})) as rig:
        c = rig.start("--cuts", "3")
        rig.await_that("it shuts down", lambda: "closed the connection" in c.err)
        c.kill(signal.SIGINT)
        check("ends", c.wait() == 2)
        check(f"{changes(rig)}\n{c.err}", changes(rig)[-1] == "restore" and
              "put back as it was found" in c.err and "NOT put back" not in c.err)
        check("outlet", rig.power() == "on")


def resumed():
    """M1.5 resume: a controller that was killed leaves the policy; who resumes puts back the first."""
    with Rig(**arms("cache-on, cache-off")) as rig:
        c = rig.start("--cuts", "2")
        rig.await_that("a trial", lambda: len(rig.trials()) >= 1)
        c.kill()
        c.wait()
        with open(os.path.join(rig.out, "policies", "FAKE1.found")) as f:
            found = f.read()
        rig.await_that("the outlet is on", lambda: rig.power() == "on")
        c = rig.run("--resume", "--cuts", "2")
        with open(os.path.join(rig.out, "policies", "FAKE1.found")) as f:
            check("the same", f.read() == found)
        check(f"{outcomes(rig)}\n{c.err}", all(
            [s for s, _, o in outcomes(rig) if o == "clean"].count(s) == 2
            for s in ("cache-on", "cache-off")))
        check("put back", changes(rig)[-1] == "restore" and changes(rig).count("restore") == 1)


def resumed_and_interrupted():
    """M1.5 resume, ^C: who resumes puts it back, also where the run that was left is not judged yet."""
    with Rig(**arms("cache-off", campaign={"write_min_ms": 800, "write_max_ms": 800})) as rig:
        c = rig.start("--cuts", "1")
        rig.await_that("writing", lambda: rig.state() == "writing")
        rig.flag("hold-scan")
        rig.await_that("scanning", lambda: rig.state() == "scanning")
        c.kill()
        c.wait()
        rig.unflag_all()
        rig.await_that("the outlet is on", lambda: rig.power() == "on")
        rig.flag("hold-prove")
        c = rig.start("--resume", "--cuts", "1")
        rig.await_that("it goes on", lambda: "cut 1 was left at 'scanning'" in c.err)
        c.kill(signal.SIGINT)
        rig.unflag("hold-prove")
        check("ends", c.wait() == 2)
        check(f"{changes(rig)}\n{c.err}", changes(rig)[-1] == "restore" and
              "put back as it was found" in c.err)


def not_put_back():
    """M1.5 stuck: where it cannot be put back a person is told how, and where it is written."""
    with Rig(HONEST, ["policy-no-restore"], **arms("cache-off")) as rig:
        c = rig.run("--cuts", "1")
        check(c.out, "NOT put back" in c.out and "policy restore" in c.out)
        words = "".join(c.out.split())
        check("where", "policies/FAKE1.found" in words)


def two_drives():
    """M1.1 two drives: each has its own policies in one cut."""
    with Rig(("FAKE1:honest", "FAKE2:ignores-fua"), **arms(
            "cache-on, cache-off", "fdatasync, open_datasync (direct)", drive_d={"size_mib": 2})) as rig:
        rig.plan(extra="[drive e]\nserial = FAKE2\ntarget = file\nformat = ext4\ndestroy = FAKE2\n"
                       "size_mib = 2\n", **arms("cache-on, cache-off",
                                                "fdatasync, open_datasync (direct)"))
        c = rig.run("--cuts", "1")
        got = {(t["policy_setting"], t["method"]): t["outcome"] for t in rig.trials("FAKE2")}
        check(f"FUA is ignored where there is a cache: {got}\n{c.err}", got == {
            ("cache-on", "fdatasync"): "clean", ("cache-on", "open_datasync (direct)"): "loss",
            ("cache-off", "fdatasync"): "clean", ("cache-off", "open_datasync (direct)"): "clean"})
        check("the other drive", all(t["outcome"] == "clean" for t in rig.trials("FAKE1")))


TESTS = [(f.__doc__.split(":")[0] + " " + f.__name__, f) for f in (
    each_policy, table, safe_with_cache_off, comes_back_different, slips, built_with_flushes, cannot_be_had,
    cannot_be_asked, refused,
    interrupted, interrupted_in_order, resumed, resumed_and_interrupted, not_put_back, two_drives)]

if __name__ == "__main__":
    run_all(TESTS, workers=8)
