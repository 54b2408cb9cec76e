#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The other way round from test_rig_windows.py: a drive that ignores flushes must be caught by the program
for Windows too, `fsync` UNSAFE, and an orderly shutdown by Windows' own command keeps the base whole.

Guards M2.8, M8.2.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_rig_windows import main, plan, run  # noqa: E402
from wine import check  # noqa: E402


def test_a_liar_is_caught(folder):
    status, arms, said, _ = run(folder, plan(folder, "volume.%08X" % os.getpid(),
                                             behaviour="ignores-flush", methods="write, direct, fsync"))
    check(f"fsync is UNSAFE: {said}", arms["fsync"]["verdict"] == "UNSAFE" and status == 1
          and arms["fsync"]["records_lost"] > 0)
    check("the base outlives an orderly power cycle", "does not keep" not in said)


if __name__ == "__main__":
    main(test_a_liar_is_caught)
