#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: one campaign shows which policy of the write cache breaks which method, on a real kernel, and
nobody told it. Method: the lab's virtual machine with two drives whose caches can be switched: an honest
one under all three policies (flushing-off is the kernel's own: "write through" in queue/write_cache), and
one that ignores FUA under two. Each policy is read back from the drive; the drive counts what reached it.
Guards M1.3, M1.5, M8.2.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from vm_rig import World, check, need_the_lab, run_all  # noqa: E402

LAB = "size=192M,cache=8M,destage=0,survive=0,behaviour="
DRIVES = {"POLHONEST": ({}, LAB + "honest"), "POLNOFUA": ({}, LAB + "ignores-fua")}
FUA = "open_datasync (direct)"
ARMS = {
    "honest": {"drives": "polhonest", "methods": "fdatasync",
               "policy": "cache-on, cache-off, flushing-off"},
    "nofua": {"drives": "polnofua", "methods": "fdatasync, " + FUA, "policy": "cache-on, cache-off"},
}
# serial, policy, method: what must come of it
EXPECTED = {
    ("POLHONEST", "cache-on", "fdatasync"): "clean",
    ("POLHONEST", "cache-off", "fdatasync"): "clean",
    ("POLHONEST", "flushing-off", "fdatasync"): "loss",
    ("POLNOFUA", "cache-on", "fdatasync"): "clean",
    ("POLNOFUA", "cache-on", FUA): "loss",
    ("POLNOFUA", "cache-off", "fdatasync"): "clean",
    ("POLNOFUA", "cache-off", FUA): "clean",
}


def test_policies():
    with World(DRIVES, ARMS, campaign={"cuts": 1, "controls": 0}) as world:
        c = world.run()
        got = {}
        for serial in DRIVES:
            for t in world.trials(serial):
                print(f"note: {serial}, {t['policy_setting']}, {t['method']}: {t['outcome']} "
                      f"{t['reason']}, {t['records_acked']} acked, {t['records_lost']} lost", flush=True)
                if t["outcome"] != "void":
                    got[serial, t["policy_setting"], t["method"]] = t["outcome"]
        check(f"{got}\n{c.err}", got == EXPECTED)
        check("a promise was broken", c.process.returncode == 1)
        arms = {(a["serial"], a["policy_setting"], a["method"]): a
                for a in world.load("campaign.json")["arms"]}
        dropped = arms["POLHONEST", "flushing-off", "fdatasync"]
        check(f"the honest drive is not accused: {dropped['reasons']}", dropped["verdict"] == "UNSAFE" and
              any("the kernel did not ask the drive" in str(r) for r in dropped["reasons"]))
        accused = arms["POLNOFUA", "cache-on", FUA]
        check(f"the liar is: {accused['reasons']}", accused["verdict"] == "UNSAFE" and
              not any("did not ask" in str(r) for r in accused["reasons"]))
        for policy, words in (("cache-on", "drive cache on, buffer flushing on"),
                              ("cache-off", "drive cache off, buffer flushing on"),
                              ("flushing-off", "drive cache on, buffer flushing off")):
            arm = arms["POLHONEST", policy, "fdatasync"]
            check(f"{policy} by the drive's own word: {arm['policy']}", arm["policy"].startswith(words))
        rows = [line.split() for line in c.report.splitlines()]
        check(c.report, ["fdatasync", "INCONCLUSIVE", "INCONCLUSIVE", "UNSAFE"] in rows and
              [*FUA.split(), "UNSAFE", "INCONCLUSIVE"] in rows)
        check("both are put back", "".join(c.report.split()).count("putbackasitwasfound") == 2)
        world.check_evidence(1)


if __name__ == "__main__":
    need_the_lab()
    run_all([("policies", test_policies)])
