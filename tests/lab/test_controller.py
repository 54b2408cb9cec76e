#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: the controller and the judge say the right thing of every way in which a cut can go wrong, and
of what comes after it. Method: the real `plugpull campaign` drives tests/lab/fake_machine.c through
a power switch of profile `exec`; each row makes one trouble and names what must come of it in
judgement.json and by exit status. Each run is a folder and a port of its own, several at a time.

Guards M1.1, M1.5, M2.3, M2.8, M4.7, M5.1 to M5.3, M5.6, M6.1 to M6.5, M7, M8.2, M8.7.
"""
import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_rig import Rig, check, run_all  # noqa: E402

SLOW_WRITE = {"campaign": {"write_min_ms": 700, "write_max_ms": 700}}
NO_BOOT = {"machine": {"boot_deadline_s": 1}}
LIAR = ("FAKE1:ignores-both",)

# name, drives, flags, changes of the plan, exit, outcome, reason, what else judgement.json must say
HONEST = ("FAKE1:honest",)
ONE_CUT = [
    ("M5 an honest drive, a proven cut", HONEST, [], {}, 2, "clean", "",
     {"proven": True, "exposed": True, "records_lost": 0,
      "drive_power_witness": "its own counters"}),
    ("M5.1 silent before the off", HONEST, ["silent-after=100"], SLOW_WRITE, 2, "void",
     "died before the cut", {"proven": False}),
    ("M5.1 closed its connection before the off", HONEST, ["fin-after=100"], SLOW_WRITE, 2, "void",
     "died before the cut", {}),
    ("M5.1 lives after the off", HONEST, ["ups"], {}, 2, "void", "lived after the off", {}),
    ("M5.1 the switch reads off and is on", HONEST, ["pdu-false-off"], {}, 2, "void",
     "lived after the off", {}),
    ("M5.1 the switch says ok and does nothing", HONEST, ["pdu-lies"], {}, 2, "void",
     "off was not read back", {}),
    ("M5.1 pending is not off", HONEST, ["pdu-pending"], {}, 2, "void", "off was not read back", {}),
    ("M5.1 a late RST proves nothing", HONEST, ["late-rst"], {}, 2, "clean", "", {"proven": True}),
    ("M5.2 rebooted by itself", HONEST, ["reboot-after=100"], SLOW_WRITE, 2, "void",
     "rebooted by itself before the cut", {}),
    ("M5.2 the same boot after the on", HONEST, ["same-boot"], {}, 2, "void",
     "the machine did not lose power (same boot)", {}),
    ("M5.2 up for longer than the power", HONEST, ["uptime-large"], {}, 2, "void",
     "booted before power was back", {}),
    ("M5.3 the drive kept its power", HONEST, ["keeps-power"], {}, 2, "void",
     "drive kept its power", {}),
    ("M5.3 a drive without counters", HONEST, ["no-counters"], {}, 2, "clean", "",
     {"drive_lost_power": False}),
    ("M5.6 acked data missing after a void cut", LIAR, ["uptime-large"], {}, 2, "void",
     "booted before power was back", {"proven": False}),
    ("M2.3 an I/O error", HONEST, ["io-error-after=100"], {}, 2, "void", "I/O error", {}),
    ("M6.1 the drive is gone", HONEST, ["drive-gone"], {}, 1, "loss", "", {"proven": True}),
    ("M6.1 another drive in its place", HONEST, ["drive-changed"], {}, 1, "loss", "", {}),
    ("M6.1 gone for two boots, then back", HONEST, ["drive-gone=2"], {}, 2, "clean", "", {}),
    ("M6.1 there, but answers no read", HONEST, ["unreadable"], {}, 2, "open",
     "the drive is there but answers no read", {}),
    ("M6.3 M7.5 file system damaged in two boots", HONEST, ["fs-damaged"], {}, 1, "loss", "",
     {"drive_lost_power": True, "drive_power_witness": "its own counters"}),
    ("M7.5 the drive is not there to count", HONEST, ["drive-gone"], {}, 1, "loss", "",
     {"drive_lost_power": False}),
    ("M6.3 file system damaged in one boot", HONEST, ["fs-damaged=1"], {}, 2, "clean", "", {}),
    ("M6.3 file system not available", HONEST, ["fs-unavailable"], {}, 2, "open",
     "fake trouble: fs-unavailable", {}),
    ("M6.3 mounts, and the check finds damage", HONEST, ["check-damaged"], {}, 2, "clean", "",
     {"fs_damaged": True}),
    ("M4.7 a re-read finds what the first read missed", HONEST, ["unstable"], {}, 2, "open",
     "unstable: a re-read found what the first read missed", {"unstable": 1}),
    ("M8.2 a liar loses", LIAR, [], {}, 1, "loss", "", {"proven": True}),
    ("M8.2 a liar loses, an RST comes late", LIAR, ["late-rst"], {}, 1, "loss", "", {}),
]


def one_cut(row):
    name, drives, flags, changes, status, outcome, reason, more = row
    with Rig(drives, flags, **changes) as rig:
        c = rig.run("--cuts", "1")
        t = rig.trials()
        check(f"one trial: {c.err}", len(t) == 1)
        got = (t[0]["outcome"], t[0]["reason"], c.process.returncode)
        check(f"{got}\n{c.err}", got == (outcome, reason, status))
        for key, value in more.items():
            check(f"{key} is {t[0][key]}", t[0][key] == value)
        check("judge says the same", rig.check_same_judgement() == status)
        check("outlet is on", rig.power() == "on")
        if outcome == "void":
            check(f"stops with a reason: {c.err}", f"were void on drive d ('{reason}')" in c.err)
            check("no void is counted as a cut", rig.arm("fdatasync")["cuts_void"] == 1 and
                  rig.arm("fdatasync")["cuts_clean"] == 0)
        if outcome == "loss":
            check("UNSAFE", rig.arm("fdatasync")["verdict"] == "UNSAFE")
            check("all or some of it", 0 < t[0]["records_lost"] <= t[0]["records_acked"])
        else:
            check("never SAFE", rig.arm("fdatasync")["verdict"] == "INCONCLUSIVE")


def not_exposed():
    """M8.1: a cut that had nothing to lose is not called clean, in no form and in no line."""
    with Rig(HONEST, ["idle-after=100"], **SLOW_WRITE) as rig:
        c = rig.run("--cuts", "1")
        check(c.err, "kept, not exposed: last ack too old" in c.err and ": clean" not in c.err)
        arm = rig.arm("fdatasync")
        check(str(arm), (arm["cuts_clean"], arm["cuts_unexposed"]) == (0, 1))
        check(c.out, "- 1 not exposed: last ack too old (1)" in c.out)
        check("same", rig.check_same_judgement() == 2)


def lost_classes():
    """M6.1, M6.3: everything acked is lost, under the right name, and the drive is left alone."""
    for flags, label in (["drive-gone"], "device-gone"), (["fs-damaged"], "fs-gone"):
        with Rig(HONEST, flags) as rig:
            rig.run("--cuts", "1")
            t = rig.trials()[0]
            check(str(t["lost_by_class"]), t["lost_by_class"] == {label: t["records_acked"]})


NOISE = {"drive_d": {"size_mib": 6},
         "arms": {"methods": "fdatasync", "record_bytes": 4096, "noise": "yes"}}


def noise():
    """M7.6, M7.5: lost acked noise is the drive's word where it has no counter, and no loss of the arm."""
    for drives, flags, lost in ((HONEST, ["no-counters"], True),
                                (("FAKE1:protected",), ["no-counters"], False)):
        with Rig(drives, flags, **NOISE) as rig:
            c = rig.run("--cuts", "1")
            t = rig.trials()[0]
            check(f"{t}\n{c.err}", t["outcome"] == "clean" and t["noise_records_acked"] > 0)
            check(f"{t}", t["noise_lost"] == lost and t["drive_lost_power"] == lost)
            check(f"{t}", t["drive_power_witness"] == ("lost acked noise" if lost else ""))
            check("judge says the same", rig.check_same_judgement() == 2)


def void_blocks_safe():
    """M5.6, M8.3: the trial is void, and what is missing after it stands against SAFE."""
    with Rig(LIAR, ["uptime-large"]) as rig:
        rig.run("--cuts", "1")
        t, arm = rig.trials()[0], rig.arm("fdatasync")
        check("data is missing", t["outcome"] == "void" and t["records_lost"] > 0)
        check("named", any("void" in str(r) and "missing" in str(r) for r in arm["reasons"]))
        check("the bound counts it", arm["loss_bound_95"] == 1 or arm["loss_bound_95"] >= 0.95)


def orderly_shutdown():
    """M5.3: a live counter of unsafe shutdowns that stays behind by more than one cut."""
    with Rig() as rig:
        c = rig.start("--cuts", "5")
        rig.await_that("a first trial", lambda: len(rig.trials()) >= 1)
        rig.flag("orderly")
        c.wait()
        ends = [(t["outcome"], t["reason"]) for t in rig.trials()]
        check(f"{ends}", ends[0][0] == "clean" and ends[-1] == ("void", "orderly shutdown"))
        check(f"one cut of lag: {ends}", [e[0] for e in ends].count("clean") in (2, 3))
        check("same", rig.check_same_judgement() == 2)


def no_boot():
    """M6.2: open, paused with the outlet on; when the machine is back, resume judges that cut."""
    with Rig(HONEST, ["no-boot"], **NO_BOOT) as rig:
        c = rig.run("--cuts", "1")
        t = rig.trials()
        check(c.err, [x["outcome"] for x in t] == ["open"] and t[0]["reason"] == "no-boot")
        check(c.err, c.process.returncode == 2 and "no-boot" in c.err and "--resume" in c.err)
        check("outlet is on", rig.power() == "on")
        check("cycled three times", rig.load("cuts", "0001", "cut.json")["power_cycles"] == 3)
        check("same", rig.check_same_judgement() == 2)
        rig.unflag("no-boot")
        c = rig.run("--cuts", "1", "--resume")
        check(c.err, [x["outcome"] for x in rig.trials()] == ["clean"])
        check("same", rig.check_same_judgement() == 2)


def scan_drops():
    """M6.2: a scan that did not end judges nothing; resume makes another."""
    with Rig(HONEST, ["scan-drops=1"]) as rig:
        c = rig.run("--cuts", "1")
        check(c.err, c.process.returncode == 2 and "paused" in c.err)
        t = rig.trials()
        check("open", [(x["outcome"], x["reason"]) for x in t] == [("open", "not scanned")])
        check("same", rig.check_same_judgement() == 2)
        c = rig.run("--cuts", "1", "--resume")
        check(c.err, [x["outcome"] for x in rig.trials()] == ["clean"])
        check("same", rig.check_same_judgement() == 2)


def three_voids():
    """M5.6: three in a row for one reason stop it with the remedy; mended, it goes on."""
    with Rig(HONEST, ["uptime-large"], campaign={"voids_max": 3}) as rig:
        c = rig.run("--cuts", "2")
        check(c.err, [t["outcome"] for t in rig.trials()] == ["void"] * 3)
        check(c.err, "3 trials in a row were void" in c.err and c.process.returncode == 2)
        rig.unflag("uptime-large")
        c = rig.run("--cuts", "2", "--resume")
        check(c.err, [t["outcome"] for t in rig.trials()] == ["void"] * 3 + ["clean"] * 2)
        check("same", rig.check_same_judgement() == 2)


def two_drives():
    """M1.1: one dead drive voids no other's trial."""
    extra = "[drive e]\nserial = FAKE2\ntarget = raw\ndestroy = FAKE2\nsize_mib = 2\n"
    with Rig(("FAKE1:honest", "FAKE2:honest"), ["drive-gone.FAKE2"]) as rig:
        rig.plan(extra)
        c = rig.run("--cuts", "1")
        check(c.err, rig.trials()[0]["outcome"] == "clean")
        check(c.err, rig.trials("FAKE2")[0]["outcome"] == "loss" and c.process.returncode == 1)
        check("same", rig.check_same_judgement() == 1)
    # M4.7: FAKE1 has been scanned, and is to be read again, when FAKE2 wants another boot.
    with Rig(("FAKE1:ignores-both", "FAKE2:honest"), ["fs-damaged.FAKE2=1"]) as rig:
        rig.plan(extra.replace("raw", "file\nformat = ext4"))
        c = rig.run("--cuts", "1")
        check(c.err, rig.trials()[0]["outcome"] == "loss" and c.process.returncode == 1)
        check(c.err, rig.trials("FAKE2")[0]["outcome"] == "clean")
        check("same", rig.check_same_judgement() == 1)
    with Rig(("FAKE1:honest", "FAKE2:honest"), ["shared"]) as rig:
        rig.plan(extra)
        c = rig.run("--cuts", "1")
        check(c.err, c.process.returncode == 2 and "cannot be in one plan" in c.err)
        check("nothing was cut", not rig.cuts())


def base_not_whole():
    """M2.8: a base that does not outlive an orderly power cycle is not used."""
    with Rig(HONEST, ["base-broken"]) as rig:
        c = rig.run("--cuts", "1")
        check(c.err, c.process.returncode == 2 and "no base to judge from" in c.err)
        check("nothing was cut", not rig.cuts())


def by_hand():
    """M5.5: a person pulls the plug; the drive's own counters prove it, or nothing does."""
    for flags, outcome, reason in ([], "clean", ""), (["no-counters"], "void", "cut by hand, and no "
                                                      "counter of the drive says so"):
        with Rig(HONEST, flags, pdu={"profile": "by-hand", "off_s": 1}) as rig:
            c = rig.start("--cuts", "1")
            done = 0
            while c.process.poll() is None:
                asked = [line for line in list(c.lines) if "NOW: " in line]
                for line in asked[done:]:
                    rig.write("power", "on\n" if "plug the machine in" in line else "off\n")
                done = len(asked)
                time.sleep(0.02)
            c.wait()
            got = [(t["outcome"], t["reason"]) for t in rig.trials()]
            check(f"{got}\n{c.err}", got == [(outcome, reason)])
            check("asked for the set-up's cycle and for the cut", done == 4)
            check("same", rig.check_same_judgement() == 2)


def late():
    """M2.8: what is damaged or gone before the next run belongs to the trial before it."""
    with Rig(HONEST, ["late-damaged=1"]) as rig:
        c = rig.run("--cuts", "2")
        flags = [t["fs_damaged"] for t in rig.trials()]
        check(f"{flags}\n{c.err}", flags == [True, False] and "belongs to cut 1" in c.err)
        check("built anew", rig.load("cuts", "0002", "FAKE1", "run.json")["base"].startswith("setups/"))
        check("same", rig.check_same_judgement() == 2)
    with Rig(HONEST, ["late-gone"]) as rig:
        c = rig.run("--cuts", "2")
        t = rig.trials()
        check(c.err, [x["outcome"] for x in t] == ["loss"] and c.process.returncode == 1)
        check(c.err, t[0]["lost_by_class"] == {"device-gone": t[0]["records_acked"]})
        check("same", rig.check_same_judgement() == 1)


def policy():
    """M1.5: read back before the run and after the boot; a change is told and kept."""
    with Rig(HONEST, ["policy"]) as rig:
        c = rig.run("--cuts", "1")
        run = rig.load("cuts", "0001", "FAKE1", "run.json")
        check("kept", (run["policy"], run["policy_after"]) ==
              ("write back, fua", "write back, no fua"))
        check(c.err, "came back as 'write back, no fua'" in c.err)


def wakes():
    """Power on wake: the plan's magic packet is sent after each on, and not before."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        s.settimeout(5)
        mac = "52:54:00:12:34:56"
        with Rig(pdu={"wake": f"wol {mac}@127.0.0.1:{s.getsockname()[1]}"}) as rig:
            c = rig.run("--cuts", "1")
            check(c.err, [t["outcome"] for t in rig.trials()] == ["clean"])
            check("the packet", s.recv(200) == b"\xff" * 6 + bytes.fromhex(mac.replace(":", "")) * 16)


METER = (("state_regex = ^(on|off|pending)$", "state = /state\nwatts = /watts"),
         ("cuts = mains", "cuts = mains\nwatts_period_ms = 50"))


def with_meter(rig):
    with open(os.path.join(rig.dir, "profile.ini")) as f:
        text = f.read()
    for old, new in METER:
        text = text.replace(old, new)
    rig.write("profile.ini", text)


def settles_early():
    """Power meter: an orderly cycle goes on once the load that was there is gone."""
    with Rig(flags=["meter"], machine={"poweroff_settle_s": 3600}) as rig:
        with_meter(rig)
        c = rig.run("--cuts", "1")
        check(c.err, [t["outcome"] for t in rig.trials()] == ["clean"])
    # one that never saw a load cannot see it go: the time is waited for
    with Rig(flags=["meter", "meter-dead"], machine={"poweroff_settle_s": 2}) as rig:
        with_meter(rig)
        began = time.monotonic()
        rig.run("--cuts", "1")
        check("not at once", time.monotonic() - began >= 2)


def unarmed():
    """Power guard: without a guard that confirms there is no off."""
    with Rig(**SLOW_WRITE) as rig:
        c = rig.start("--cuts", "1")
        rig.await_that("writing", lambda: rig.state() == "writing")
        os.unlink(os.path.join(rig.dir, "flag", "pdu-asked-off"))  # of the orderly cycle
        guards = [p for p in rig.processes(besides_machine=True) if p != c.process.pid and b"guard" in
                  open(f"/proc/{p}/cmdline", "rb").read()]
        check(f"one guard: {guards}", len(guards) == 1)
        os.kill(guards[0], signal.SIGKILL)
        c.wait()
        check(c.err, "guard of the power switch" in c.err and "pdu-asked-off" not in
              os.listdir(os.path.join(rig.dir, "flag")))
        check("void", [t["outcome"] for t in rig.trials()] == ["void"] and rig.power() == "on")


def no_more_cycles():
    """Power limit: the campaign pauses, with the limit named, before it cuts once too often."""
    with Rig(pdu={"cycles_max": 2}) as rig:
        c = rig.run("--cuts", "5")
        check(c.err, c.process.returncode == 2 and "no more cuts: outlet '1' has been cut 2 times; 2 "
              "are allowed" in c.err)
        check("as many as allowed", [t["outcome"] for t in rig.trials()] == ["clean"] * len(rig.cuts()))
        c = rig.run("--resume")
        check(c.err, c.process.returncode == 2 and "2 are allowed" in c.err)
        check("the outlet is on", rig.power() == "on")


def proof_file():
    """Power proof: the plan's file is the one that is asked for."""
    with Rig(campaign={"unproven": "no"}, pdu={"proof": "{dir}/here.json"}) as rig:
        c = rig.run("--cuts", "1")
        check(c.err, c.process.returncode == 2 and "here.json" in c.err and rig.cuts() == [])


def honest_is_safe():
    """M7, M8.3: enough clean cuts and controls that lose: SAFE, exit 0, order as M1.4 says."""
    with Rig(HONEST, campaign={"controls": 4, "controls_end": 1, "voids_max": 3}) as rig:
        c = rig.run()
        check(c.err + c.out, c.process.returncode == 0)
        check("SAFE", rig.arm("fdatasync")["verdict"] == "SAFE")
        check("write LOSES", rig.arm("write")["verdict"] == "LOSES")
        check("direct LOSES", rig.arm("direct")["verdict"] == "LOSES")
        order = [t["method"] for t in rig.trials()]
        first = order.index("fdatasync")
        check(f"controls first: {order}", "direct" in order[:first] and "write" in order[:first])
        check(f"and last: {order}", order[-1] in ("write", "direct"))
        check("same", rig.check_same_judgement() == 0)
        check("nothing left behind", rig.processes(besides_machine=True) == [])


def liar_is_unsafe():
    """M8.2: one loss is enough, and the campaign stops that arm at it."""
    with Rig(LIAR, campaign={"controls": 1}) as rig:
        c = rig.run()
        check(c.err + c.out, c.process.returncode == 1)
        check("UNSAFE", rig.arm("fdatasync")["verdict"] == "UNSAFE")
        check("once", [t["method"] for t in rig.trials()].count("fdatasync") == 1)
        check("same", rig.check_same_judgement() == 1)


def confirm_boot():
    """M4.7: the last re-read is after another boot where the plan allows it."""
    with Rig(LIAR, campaign={"confirm_boot": "yes"}) as rig:
        c = rig.run("--cuts", "1")
        run = rig.load("cuts", "0001", "FAKE1", "run.json")
        check(c.err, run["rereads"] == 3 and run["reread_other_boot"])
        check("loss", rig.trials()[0]["outcome"] == "loss")


TESTS = [("M7, M8.3 an honest drive is SAFE", honest_is_safe),
         ("M8.2 a liar is UNSAFE", liar_is_unsafe)]
TESTS += [(row[0], lambda row=row: one_cut(row)) for row in ONE_CUT]
TESTS += [(f.__doc__.split(":")[0] + " " + f.__name__, f) for f in (
    not_exposed, lost_classes, noise, void_blocks_safe, orderly_shutdown, no_boot, scan_drops, three_voids, two_drives,
    base_not_whole, by_hand, late, policy, confirm_boot, wakes,
    settles_early, unarmed, no_more_cycles, proof_file)]

if __name__ == "__main__":
    run_all(TESTS, workers=10)
