#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: a test that is interrupted leaves nothing: no folder, no guard that tries for ever to reach a switch
that went with the test, no machine. Method: programs of tests/pdu and tests/unit and a rig of tests/lab in a
TMPDIR of this test's own; SIGINT, SIGTERM and SIGKILL as soon as their folder, and the process that they
start where they have one, is there.
"""
import glob
import os
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WAIT_S = 60  # for what must happen; never a measure of speed


def program(name):
    found = sorted(glob.glob(os.path.join(TOP, "build", "*-release", "tests", name)))
    if name.endswith(".py"):
        return [sys.executable, os.path.join(TOP, "tests", name)]
    if not found:
        print(f"skip: tests/{name} is not built; run 'make tests'")
        sys.exit(77)
    return [found[0]]


def below(pid):
    """Pids of all living descendants."""
    parents = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                rest = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if rest[0] not in "ZX":
            parents.setdefault(int(rest[1]), []).append(int(path.split("/")[2]))
    found, todo = [], [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def is_program(pid, name):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return os.path.basename(f.read().split("\0")[0]) == name
    except OSError:
        return False


def await_that(what, holds):
    deadline = time.monotonic() + WAIT_S
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}")
        time.sleep(0.005)


def interrupted(name, sig, starts=None):
    with tempfile.TemporaryDirectory(prefix="pp-interrupted-") as folder:
        test = subprocess.Popen(program(name), env=dict(os.environ, TMPDIR=folder),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        try:
            await_that("a folder", lambda: os.listdir(folder) or test.poll() is not None)
            if starts:
                await_that(starts, lambda: test.poll() is not None or
                           any(is_program(p, starts) for p in below(test.pid)))
            if test.poll() is not None:
                raise AssertionError(f"{name} ended before it could be interrupted")
            left = below(test.pid)
            test.send_signal(sig)
            test.wait(WAIT_S)
        finally:
            if test.poll() is None:
                test.kill()
                test.wait()
        await_that("no process is left", lambda: not any(alive(p) for p in left))
        await_that("no folder is left", lambda: not os.listdir(folder))
    print(f"ok: {name}, signal {sig.name}")


if __name__ == "__main__":
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        interrupted("pdu/test_guard", sig, "plugpull")
        interrupted("unit/test_identify", sig)
        interrupted("lab/test_prove.py", sig, "fake_machine")
