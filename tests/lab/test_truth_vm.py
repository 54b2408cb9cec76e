#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: the verdicts of a whole campaign are what the lab's drives deserve, and nothing else. Method:
two machines with a drive of each behaviour, one cut for all drives of a machine, one or two trials
an arm, the lab's drives as in docs/examples. The controller is told nothing of what the drives do. Then: the
flushes in the ledger are those that the drive itself counted; judge repeats the result from the
folder; nothing is left.

Guards M2.1, M5.3, M7.1 to M7.4, M8.2, M8.4, M8.6 and design.md, section 6.
"""
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from vm_rig import World, check, need_the_lab, run_all  # noqa: E402

LAB = "size=192M,cache=4M,destage=256K,survive=50,behaviour="
FUA = "open_datasync (direct)"  # on a pre-written file: a FUA write and no flush
MEDIA = ("fdatasync", "fsync", FUA)
DRIVES = {
    "HONEST": ({}, LAB + "honest"),
    "NOFLUSH": ({}, LAB + "ignores-flush"),
    # Nothing survives by luck here: what a file that grows loses is a single block (see append).
    "NOFUA": ({}, "size=192M,cache=4M,destage=0,survive=0,behaviour=ignores-fua"),
    "NEITHER": ({}, LAB + "ignores-both"),
    "HIDDEN": ({}, LAB + "hidden-cache"),
    "PLP": ({"cache": "protected"}, LAB + "protected"),
    "PLPQUIET": ({}, LAB + "protected"),
    "RAW": ({"target": "raw"}, LAB + "honest"),
    "RAWNOFUA": ({"target": "raw"}, LAB + "ignores-fua"),
}
FILES = [s for s in DRIVES if not s.startswith("RAW")]


def arms_of(drives, **methods):
    return {"methods": ", ".join(methods["methods"]), "workload": methods.get("on", "overwrite"),
            "drives": ", ".join(drives)}


VOLATILE = {
    "": arms_of(["honest", "noflush", "neither", "hidden"], methods=("write", "direct") + MEDIA),
    "nofua": arms_of(["nofua"], methods=("write", "direct", "fdatasync", FUA)),
    "append": arms_of(["nofua"], methods=("fdatasync", FUA), on="append"),
}
OTHERS = {
    "": arms_of(["plp", "plpquiet"], methods=("write", "direct") + MEDIA),
    "raw": arms_of(["raw", "rawnofua"], methods=("direct", FUA)),
}

# What each arm deserves: its verdict; a reason that it must give.
CLEAN, UNSAFE, LOSES, KEEPS = "INCONCLUSIVE", "UNSAFE", "LOSES", "KEEPS"
NOT_ASKED = "the kernel did not ask the drive"
NOTHING = "nothing was at risk"
DESERVED = {
    "HONEST": {m: (CLEAN, "") for m in MEDIA},
    "NOFLUSH": {"fdatasync": (UNSAFE, ""), "fsync": (UNSAFE, ""), FUA: (CLEAN, "")},
    "NOFUA": {"fdatasync": (CLEAN, ""), FUA: (UNSAFE, "")},
    "NEITHER": {m: (UNSAFE, "") for m in MEDIA},
    "HIDDEN": {m: (UNSAFE, NOT_ASKED) for m in MEDIA},
    "PLP": {m: ("SAFE", "rests on protection") for m in MEDIA},
    "PLPQUIET": {m: (CLEAN, NOTHING) for m in MEDIA},
    # Linux adds a flush to a raw O_DSYNC write, so it says nothing about FUA (M8.4).
    "RAW": {FUA: (CLEAN, "via flush")},
    "RAWNOFUA": {FUA: (CLEAN, "via flush")},
}


class Watch(threading.Thread):
    """Asks a drive for its own count of flushes, again and again: [(asked, heard, flushes)]."""

    def __init__(self, world, serial):
        super().__init__(daemon=True)
        self.world, self.serial, self.seen, self.stop = world, serial, [], False

    def run(self):
        while not self.stop:
            asked = time.monotonic_ns()
            try:
                answer = self.world.lab.ask(f"drive {self.serial} stat")
            except (OSError, AssertionError):
                answer = {"ok": False}
            if answer["ok"]:
                self.seen.append((asked, time.monotonic_ns(),
                                  answer["since_power_on"]["flushes"]))
            time.sleep(0.1)


def check_flushes(world, watch):
    """Between the first ack and the last frame, to within what a beat may lag behind."""
    compared = 0
    for t in world.trials(watch.serial):
        if t["method"] not in ("fdatasync", "fsync"):
            continue
        cut = world.load("cuts", f"{t['cut']:04}", "cut.json")
        before = [s for s in watch.seen if s[1] < cut["t_run_ns"]]
        after = [s for s in watch.seen if cut["t_run_ns"] < s[0] < cut["t_off_sent_ns"]]
        if not before or not after or t["syncs"] < 20:
            continue
        drive = after[-1][2] - before[-1][2]
        took = after[-1][0] - cut["t_run_ns"]
        # What was flushed between our last look and the cut, and within one late beat of it.
        slack = 10 + t["flushes"] * (t["t_last_ns"] - after[-1][0] + 30e6) / max(took, 30e6)
        print(f"note: {t['method']}, cut {t['cut']}: {t['syncs']} syncs, ledger {t['flushes']} "
              f"flushes, drive {drive}, slack {slack:.0f}")
        check(f"the ledger's {t['flushes']} flushes are the drive's {drive} within {slack:.0f}",
              abs(t["flushes"] - drive) <= slack)
        compared += 1
    check("flushes were compared", compared >= 2)


def check_arm(arms, serial, method, verdict, reason, workload="overwrite"):
    a = arms[serial, method, workload]
    what = f"{serial}, {method} on {workload}: {a['verdict']} {a['reasons']}"
    check(what + f", deserved {verdict} '{reason}'", a["verdict"] == verdict and
          any(reason in r for r in a["reasons"] or [""]))
    check(f"{what}: lost {a['records_lost']}",
          (a["records_lost"] > 0) == (verdict in (UNSAFE, LOSES)))
    check(f"{what}: has trials, none open",
          a["cuts_clean"] + a["cuts_loss"] > 0 and a["cuts_open"] == 0)
    return a


def check_all(world, serials):
    arms = world.arms()
    for serial in serials:
        for method, (verdict, reason) in DESERVED[serial].items():
            a = check_arm(arms, serial, method, verdict, reason)
            if verdict == UNSAFE and reason != NOT_ASKED:
                check(f"{serial}, {method}: the drive is accused",
                      not any(NOT_ASKED in r for r in a["reasons"]))
        if serial in FILES:
            check_arm(arms, serial, "write", LOSES, "")
        check_arm(arms, serial, "direct", KEEPS if serial.startswith("PLP") else LOSES, "")
        for t in world.trials(serial):
            # A busy host starves the machine now and then; such a trial is made again.
            check(f"{serial}: void only for noise: {t['reason']}",
                  t["outcome"] != "void" or t["reason"] == "died before the cut")
            # Counters are read after the scan, which a file system that is gone does not get.
            if t["outcome"] != "void" and "fs-gone" not in t["lost_by_class"]:
                check(f"{serial}: its counters prove the power loss", t["drive_lost_power"] and
                      t["drive_power_witness"] == "its own counters")
    world.check_evidence(1 if serials[0] == "HONEST" else 2)
    return arms


def volatile():
    serials = ["HONEST", "NOFLUSH", "NOFUA", "NEITHER", "HIDDEN"]
    with World({s: DRIVES[s] for s in serials}, VOLATILE) as world:
        watch = Watch(world, "HONEST")
        watch.start()
        c = world.run("--cuts", "2")
        watch.stop = True
        watch.join()
        check(f"exit {c.process.returncode}: {c.err}", c.process.returncode == 1)
        append(world, check_all(world, serials))
        check_flushes(world, watch)


def others():
    serials = ["PLP", "PLPQUIET", "RAW", "RAWNOFUA"]
    with World({s: DRIVES[s] for s in serials}, OTHERS) as world:
        c = world.run("--cuts", "1")
        check(f"exit {c.process.returncode}: {c.err}", c.process.returncode == 2)
        check_all(world, serials)


def append(world, arms):
    """
    A file that grows: ext4 commits its size by a journal block that is written with FLUSH and FUA.
    The flush takes the data down; a drive that ignores FUA keeps the commit block itself in its cache
    until the next flush. So there fdatasync loses too: what the last commit made known, and no more.
    """
    for method in ("fdatasync", FUA):
        a = arms["NOFUA", method, "append"]
        lost = [t["records_lost"] for t in world.trials("NOFUA")
                if (t["method"], t["workload"]) == (method, "append")]
        print(f"note: append, {method}, on a drive that ignores FUA: {a['verdict']}, lost {lost} of "
              f"{a['records_acked']} acked, {a['records_lost_by_class']}")
        check(f"at most the last record: {lost}", all(n <= 1 for n in lost))
        check(f"labelled: {a['reasons']}",
              method != FUA or any("via flush" in r for r in a["reasons"]))


if __name__ == "__main__":
    need_the_lab()
    run_all([("M7.4, M8.4 protected caches and raw drives", others),
             ("M7, M8 honest drives and liars", volatile)], at_a_time=1)
