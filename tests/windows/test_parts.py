#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: paths, codes, command lines, waits, files and authentication of the program for Windows keep the
contracts of their headers. Method: parts_win.c, under Wine, in a folder of its own.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from wine import WINDOWS_TESTS, Wine, check, need_windows  # noqa: E402


def main():
    need_windows()
    with Wine() as wine:
        folder = wine.path("files")
        os.mkdir(folder)
        done = wine.run(os.path.join(WINDOWS_TESTS, "parts_win.exe"), "Z:" + folder, timeout=120)
        check(f"{done.stdout.decode()}{done.stderr.decode()}", done.returncode == 0)
        check("nothing is left of it", os.listdir(folder) == [])


if __name__ == "__main__":
    main()
