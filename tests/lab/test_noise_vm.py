#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: noise beside the records (M7.6) reaches the drive, is acked, is never synced, and what of it a
drive forgets proves that this very cut took the drive's power (M7.5), while a drive whose cache is
protected forgets none; and no loss of noise is ever a loss of the arm. Method: a campaign in the lab's
virtual machine, on files and on a raw device, with an arm that a flush keeps safe.
Guards M1.3, M7.5, M7.6.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from vm_rig import World, check, need_the_lab, run_all  # noqa: E402

LAB = "size=192M,cache=4M,destage=0,survive=0,behaviour="
DRIVES = {
    "HONEST": ({"size_mib": 32}, LAB + "honest"),
    "RAW": ({"size_mib": 32, "target": "raw"}, LAB + "honest"),
    "PLP": ({"size_mib": 32, "cache": "protected"}, LAB + "protected"),
}
ARMS = {"": {"methods": "fdatasync", "noise": "yes"}}


def check_trial(serial, t, witness):
    what = f"{serial}, {t['method']}, cut {t['cut']}"
    print(f"note: {what}: {t['outcome']}, {t['records_acked']} acked; noise "
          f"{t['noise_records_acked']} acked, {t['noise_records_lost']} lost; power by "
          f"'{t['drive_power_witness']}'", flush=True)
    check(f"{what}: noise was acked", t["noise_records_acked"] > 0)
    if serial == "PLP":
        check(f"{what}: a protected cache forgets none", not t["noise_records_lost"])
    elif t["method"] == "direct":  # nobody flushed: all of it is lost, or nearly
        check(f"{what}: noise was lost", t["noise_records_lost"] > 0)
    check(f"{what}: lost noise is a proof", t["noise_lost"] == (t["noise_records_lost"] > 0))
    if t["method"] == "fdatasync":
        check(f"{what}: and no loss of the arm", t["outcome"] == "clean")
    if t["noise_lost"]:
        check(f"{what}: the witness is {witness}", t["drive_power_witness"] == witness)


def judged(world, serial):
    """A busy host may hold up a heartbeat and so make a trial void: that is no matter of noise."""
    return [t for t in world.trials(serial) if t["outcome"] != "void"]


def test_noise():
    with World(DRIVES, ARMS, campaign={"cuts": 1}) as world:
        c = world.run()
        for serial in DRIVES:
            trials = judged(world, serial)
            check(f"three trials of {serial}: {c.err}", len(trials) >= 3)
            for t in trials:
                check_trial(serial, t, "its own counters")
        check("arms of noise are told apart",
              all(a["noise"] for a in world.load("campaign.json")["arms"]))
        world.check_evidence(c.process.returncode)
        # The same of drives that count nothing.
        for folder, _, names in os.walk(os.path.join(world.out, "cuts")):
            for name in names:
                if name in ("drive-before.json", "drive-after.json"):
                    with open(os.path.join(folder, name), "w") as f:
                        f.write("{}\n")
        world.run("--resume")
        lost = 0
        for serial in DRIVES:
            for t in judged(world, serial):
                check_trial(serial, t, "lost acked noise")
                lost += t["noise_lost"]
        check("noise was lost on both honest drives", lost >= 2)


if __name__ == "__main__":
    need_the_lab()
    run_all([("noise", test_noise)])
