# SPDX-License-Identifier: MIT
"""
What a test leaves goes when the test goes, however that happens (tests/janitor.h is the same for programs).

A process of a session of its own waits for the test's end, be it by SIGKILL. Then it ends every process
whose environment has VARIABLE=FOLDER, or something in that folder, and removes the folder. For a test in sh:

    janitor.py watch FOLDER VARIABLE PID &
    janitor.py end FOLDER VARIABLE
"""
import glob
import os
import select
import shutil
import signal
import subprocess
import sys
import time

WAIT_S = 60  # for what must end; never a measure of speed


def processes_of(mark):
    """Pids of living processes whose environment holds this mark."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as f:
                if mark.encode() in f.read():
                    with open(path.replace("environ", "stat")) as s:
                        if s.read().rsplit(")", 1)[1].split()[0] not in "ZX":
                            found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


def kill(folder, variable):
    """Who was alive when it was looked for."""
    found = [pid for pid in processes_of(f"{variable}={folder}") if pid != os.getpid()]
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return found


def end(folder, variable, patience_s=0):
    """
    Until none is left: who was just born missed the first round, and may write while we remove.
    Patience is for those that end by themselves and have things to put away.
    """
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and processes_of(f"{variable}={folder}"):
        time.sleep(0.2)
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        left = kill(folder, variable)
        shutil.rmtree(folder, ignore_errors=True)
        if not left and not os.path.exists(folder):
            break
        time.sleep(0.05)


def watch(folder, variable, patience_s=0):
    """From now on: what is left of this process's folder ends with this process."""
    subprocess.Popen([sys.executable, __file__, "watch", folder, variable, str(os.getpid()),
                      str(patience_s)], start_new_session=True, stdin=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main(what, folder, variable, pid=None, patience_s=0):
    if what == "watch":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        try:
            select.select([os.pidfd_open(int(pid))], [], [])
        except ProcessLookupError:
            pass
    end(folder, variable, int(patience_s))


if __name__ == "__main__":
    main(*sys.argv[1:])
