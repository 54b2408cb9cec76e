#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: the programs of both systems interoperate byte for byte.
Method: golden.c, built for this system and for Windows (under Wine), makes a greeting's answer, a frame of
each type, a target full of records and damage, and its scan; both must be what is checked in. To renew
that after a change of format: PP_GOLDEN_WRITE=1, and look at what changed.
"""
import hashlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from wine import HOST_TESTS, TOP, WINDOWS_TESTS, Wine, check, need_windows  # noqa: E402

DATA = os.path.join(TOP, "tests", "windows", "data")
TARGET_SUM = os.path.join(DATA, "golden.target.sha256")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def make(run, folder):
    """frames, target, scan as this program makes them."""
    os.mkdir(folder)
    frames, scan = os.path.join(folder, "frames.bin"), os.path.join(folder, "scan.bin")
    for words in (("frames", frames), ("target", folder), ("scan", folder, scan)):
        done = run(*words)
        check(f"golden {words[0]}: {done.stderr}", done.returncode == 0)
    return read(frames), read(os.path.join(folder, "golden.target")), read(scan)


def main():
    need_windows()
    host = os.path.join(HOST_TESTS, "golden")
    with Wine() as wine:
        here = make(lambda *w: subprocess.run([host, *w], capture_output=True, text=True),
                    wine.path("here"))
        there = make(lambda *w: wine.run(os.path.join(WINDOWS_TESTS, "golden.exe"), *w),
                     wine.path("there"))
    digest = hashlib.sha256(here[1]).hexdigest()
    if os.environ.get("PP_GOLDEN_WRITE"):
        for name, data in (("frames.bin", here[0]), ("scan.bin", here[2]),
                           ("golden.target.sha256", digest.encode() + b"\n")):
            with open(os.path.join(DATA, name), "wb") as f:
                f.write(data)
    for which, (frames, target, scan) in (("this system", here), ("Windows", there)):
        check(f"frames of {which}", frames == read(os.path.join(DATA, "frames.bin")))
        check(f"records of {which}", hashlib.sha256(target).hexdigest() ==
              read(TARGET_SUM).decode().strip())
        check(f"scan of {which}", scan == read(os.path.join(DATA, "scan.bin")))


if __name__ == "__main__":
    main()
