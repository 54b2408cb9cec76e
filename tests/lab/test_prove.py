#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: the wiring proof with a real agent as the machine's heartbeat, and a campaign that asks for it.
Method: the fake machine and its program-driven outlet (fake_rig.py). `pdu prove --alive agent:` must
prove the right outlet, and must not where the machine keeps its power; a campaign without a proof and
without `unproven = yes` refuses before it cuts; with the proof it runs. `pdu cycle` believes no off
that the machine contradicts. After each, the outlet is on. A machine that fell silent and comes back as
the boot that it was has lived through the off; an outlet that reads off already is not off while the
machine answers.
"""
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_rig import PLUGPULL, Rig, check, run_all  # noqa: E402


def pdu(rig, command, *words):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    rig.set_port(port)
    done = subprocess.run(
        [PLUGPULL, "pdu", command, "--profile", os.path.join(rig.dir, "profile.ini"), "--outlet", "1",
         "--state-dir", os.path.join(rig.dir, "pdu"), "--yes", "--min-on", "0", "--off-time", "1",
         "--alive", "agent:%s@127.0.0.1:%d" % (os.path.join(rig.dir, "key"), port), *words],
        env=rig.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200)
    rig.forget_port()
    return done.returncode, done.stdout + done.stderr


def expect(what, holds, seen):
    check("%s: %s" % (what, seen), holds)


def proof_and_campaign():
    with Rig(campaign={"unproven": "no"}) as rig:
        run = rig.run("--cuts", "1")
        expect("no campaign without a proof", run.process.returncode == 2 and "pdu prove" in run.err,
               run.err)
        check("nothing was cut", rig.cuts() == [])
        check("and nothing stands in the way of the next start", not os.path.exists(rig.out))
        code, text = pdu(rig, "prove", "--back-time", "60")
        expect("proven", code == 0, (code, text))
        check("the outlet is on", rig.power() == "on")
        run = rig.run("--cuts", "1")
        expect("a campaign takes the proof", "pdu prove" not in run.err and len(rig.trials()) == 1,
               run.err)
        check("and its evidence says so", rig.load("target.json")["unproven_wiring"] is False)
        with open(os.path.join(rig.dir, "profile.ini"), "a") as f:
            f.write("; changed\n")
        run = rig.run("--resume")
        expect("a changed profile ends the proof", "expired" in run.err, run.err)


def keeps_its_power():
    with Rig(flags=("pdu-false-off", "in-run")) as rig:
        for command in ("prove", "cycle", "off"):
            code, text = pdu(rig, command, "--hold-up", "2")
            expect(command, code == 3 and "did not fall silent" in text, (code, text))
            check("the outlet is on", rig.power() == "on")


def lives_through():
    with Rig(flags=("lives-through",)) as rig:
        code, text = pdu(rig, "prove", "--hold-up", "5", "--back-time", "60")
        expect("silence alone is no proof", code == 3 and "ran on" in text, (code, text))
        check("the outlet is on", rig.power() == "on")


def reads_off_and_answers():
    with Rig(flags=("pdu-false-off", "pdu-told-off", "in-run")) as rig:
        code, text = pdu(rig, "off")
        expect("off", code == 3 and "answers" in text, (code, text))
        check("nothing was switched", rig.power() == "on")


if __name__ == "__main__":
    run_all([("proof and campaign", proof_and_campaign), ("keeps its power", keeps_its_power),
             ("lives through", lives_through), ("reads off and answers", reads_off_and_answers)], 2)
