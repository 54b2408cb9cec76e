#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Campaigns on the rig `loop` whose machine under test runs the program for Windows, under Wine.

Goal: the same control host, evidence and judge, another system's agent. Wine has FlushFileBuffers as
fsync(2) and ignores FILE_FLAG_WRITE_THROUGH, so on an honest drive `fsync` must be clean and
`open_datasync` UNSAFE, measured, not told: nothing in the code knows it.
Method: docs/examples/lab-windows.ini with a weaker criterion. Needs root, /dev/fuse, loop devices, Wine.

Guards M2.7, M5.2, M7.1, M8.2, M8.3.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from wine import TOP, check, janitor, need_windows, skip  # noqa: E402

PLUGPULL = os.path.join(TOP, "build", "plugpull")
PLAN = os.path.join(TOP, "docs", "examples", "lab-windows.ini")
CAMPAIGN_S = 300


def need_the_rig():
    if os.geteuid():
        skip("needs root for namespaces of its own")
    for node in ("/dev/fuse", "/dev/loop-control"):
        if not os.path.exists(node):
            skip(f"no {node} (modprobe fuse loop)")
    for tool in ("ip", "nsenter", "mke2fs", "setpriv"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            skip(f"no {tool}")
    need_windows()


def plan(folder, serial, **changes):
    """The example with other values; a serial of its own, since loop devices are the whole kernel's."""
    changes = {"serial": serial, "criterion": "99/50", "controls": "1", "controls_end": "0",
               "controls_max": "5", "seed": "1\nconfirm_boot = no", "matrix_ms": "0", "write_min_ms": "200", "write_max_ms": "500",
               **changes}
    with open(PLAN) as f:
        lines = [line if line.split(" = ")[0] not in changes else
                 f"{line.split(' = ')[0]} = {changes[line.split(' = ')[0]]}\n" for line in f]
    path = os.path.join(folder, "plan.ini")
    with open(path, "w") as f:
        f.writelines(lines)
    return path


def run(folder, path):
    out = os.path.join(folder, "out")
    process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", PLUGPULL, "campaign", path, "--out",
                                out], text=True,
                               env=dict(os.environ, PLUGPULL_TEST_RIG=folder),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(*_):
        process.terminate()
        process.wait()
        sys.exit(130)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    try:
        report, talk = process.communicate(timeout=CAMPAIGN_S)
    except subprocess.TimeoutExpired:
        process.terminate()
        report, talk = process.communicate()
    said = f"{talk[-6000:]}\n{report}"
    check(f"exit {process.returncode}: {said}", process.returncode in (0, 1))
    with open(os.path.join(out, "campaign.json")) as f:
        campaign = json.load(f)
    return process.returncode, {a["method"]: a for a in campaign["arms"]}, said, out


def test_write_through_is_not_kept(folder):
    status, arms, said, out = run(folder, plan(folder, "volume.%08X" % os.getpid()))
    wt, flush, ram = arms["open_datasync"], arms["fsync"], arms["write"]
    check(f"open_datasync is UNSAFE here: {said}", wt["verdict"] == "UNSAFE" and wt["records_lost"] > 0)
    check(f"fsync is clean: {said}", flush["verdict"] == "SAFE" and flush["records_lost"] == 0
          and flush["cuts_loss"] == 0 and flush["cuts_clean"] >= 7)
    check(f"the control loses: {said}", ram["verdict"] == "LOSES" and ram["records_lost"] > 0)
    check("a broken promise ends with 1", status == 1)
    check("nothing is open", all(a["cuts_open"] == 0 for a in arms.values()))
    judged = subprocess.run([PLUGPULL, "judge", "--json", out], capture_output=True, text=True)
    with open(os.path.join(out, "campaign.json")) as f:
        check(f"the evidence says the same anywhere: {judged.stderr}",
              judged.returncode == status and judged.stdout == f.read())


def main(test):
    need_the_rig()
    folder = tempfile.mkdtemp(prefix="pp-rigwin-")
    janitor.watch(folder, "PLUGPULL_TEST_RIG", janitor.WAIT_S)
    try:
        test(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(test_write_through_is_not_kept)
