#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: a plug pulled by a person, without a plan to write: `listen` says when, judges, and can go on;
`write` and `verify` are the machine's end and go when the listener has gone. Method: the fake machine
with its plug in this test's hands; the real agent against a listener that orders nothing but to look,
for a serial that no drive has.

Guards M5.5 and design.md, section 5.
"""
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_rig import PLUGPULL, Controller, Rig, check, run_all  # noqa: E402

DUT = PLUGPULL + "-dut"


class Listener(Controller):
    """`plugpull listen`, its lines read as they come."""

    def __init__(self, rig, *args):
        self.words = [PLUGPULL, "listen", "--key", os.path.join(rig.dir, "key"), "--address",
                      "127.0.0.1:0", "--out", rig.out, *args]
        super().__init__(rig)

    def command(self):
        return self.words


def pulled(rig, c, trials):
    """Does as it is told until there are so many trials, then Ctrl-C; how often it was told."""
    done, stopped = 0, False
    while c.process.poll() is None:
        asked = [line for line in list(c.lines) if "NOW: " in line or "still no agent" in line]
        for line in asked[done:]:
            if "still no agent" in line:  # it was interrupted with the machine shut down
                rig.write("power", "off\n")
                time.sleep(1)
            rig.write("power", "off\n" if "pull the machine" in line else "on\n")
        done = len(asked)
        if not stopped and len(rig.trials()) >= trials:
            stopped = True
            c.kill(signal.SIGINT)
        time.sleep(0.02)
    c.wait()
    return done


def by_hand():
    """A set-up's cycle and a first cut, each asked for; then on with it, and the next cut."""
    with Rig(("FAKE1:ignores-both",)) as rig:
        c = Listener(rig, "--destroy", "FAKE1", "--size-mib", "4", "FAKE1")
        told = pulled(rig, c, 1)
        check(c.err + c.out, c.process.returncode == 2 and told >= 4 and "interrupted" in c.err)
        check(c.err, [t["outcome"] for t in rig.trials()] == ["loss"])
        check("M5.5", rig.load("cuts", "0001", "cut.json")["by_hand"] is True)
        check("the plug", "the machine's plug is in your hands" in c.out)
        with open(rig.out + ".ini") as f:
            check("the plan stays", "profile = by-hand" in f.read())
        check("same", rig.check_same_judgement() == 2)
        again = Listener(rig, "--destroy", "FAKE1", "FAKE1")
        again.wait()
        check(again.err, again.process.returncode == 2 and "--resume" in again.err)
        more = Listener(rig, "--resume")
        pulled(rig, more, 2)
        check(more.err, len(rig.trials()) == 2 and "cut 1," not in more.err)


def words():
    with Rig() as rig:
        for args, says in (([], "names no drive"), (["A", "/b", "c"], "takes a serial"),
                           (["FAKE1"], "would lose all its data"), (["FAKE1", "b\nx = 1"], "one line"),
                           (["--resume", "FAKE1"], "name no target"), (["--frob"], "bad option"),
                           (["--method", "frob", "--destroy", "FAKE1", "FAKE1"], "no method 'frob'"),
                           (["--out", ""], "--out is empty")):
            c = Listener(rig, *args)
            c.wait()
            check(f"{args}: {c.err}", c.process.returncode == 2 and says in c.err and c.out == "")
            check("nothing is left", not os.path.exists(rig.out) and
                  not os.path.exists(rig.out + ".ini"))
        for command, option in (("write", "--to"), ("verify", "--from")):
            for program in (PLUGPULL, DUT):
                for args, says in (([], "address is missing"), ([option, "127.0.0.1"], "no target"),
                                   ([option, "host", "S"], "numeric address"),
                                   ([option, "127.0.0.1", "--key", "/nonexistent", "S"], "key"),
                                   ([option, "127.0.0.1", "/"], "'/'"), (["--frob"], "bad option")):
                    got = subprocess.run([program, command, *args], env=rig.env, capture_output=True,
                                         text=True, stdin=subprocess.DEVNULL)
                    check(f"{command} {args}: {got.stderr}", got.returncode == 2 and
                          says in got.stderr and got.stdout == "")


def real_agent():
    """Connects, is asked for a drive that is not there, and goes when the listener is gone."""
    for command, option in (("write", "--to"), ("verify", "--from")):
        with Rig() as rig, socket.socket() as s:
            rig.machine.kill()  # the fake one must not answer
            rig.machine.wait()
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
            s.close()
            listener = Listener(rig, "--address", f"127.0.0.1:{port}", "NO-SUCH-SERIAL", rig.dir)
            agent = subprocess.Popen([DUT, command, option, f"127.0.0.1:{port}", "--key",
                                      os.path.join(rig.dir, "key"), rig.dir], env=rig.env,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
            try:
                out, err = agent.communicate(timeout=90)
            finally:
                if agent.poll() is None:
                    agent.kill()
                    agent.wait()
            listener.wait()
            check(listener.err, listener.process.returncode == 2 and "NO-SUCH-SERIAL" in listener.err)
            check(f"{out}{err}", agent.returncode == 0 and "connected to control" in err and
                  "this is the end" in err)


if __name__ == "__main__":
    run_all([("M5.5 by hand", by_hand), ("words", words), ("real agent", real_agent)], 3)
