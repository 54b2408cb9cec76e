#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the matrix says that the disk counted is what the drive itself has counted (M10.1).

Method: the lab's rig `loop` with one honest drive, whose plugin counts every command. The matrix
runs in the rig on the raw device; before and after, the drive is asked by the control socket. Then
flushes and writes of the whole command must agree to the one between kernel and drive, and those of
a row must be what the method says. Nobody else uses this drive. Needs root.
"""
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_lab_vm import PLUGPULL, Lab, check, leftovers, skip  # noqa: E402

SERIAL = "COUNTS"
# Flushes an operation, on a raw device without FUA; direct O_DSYNC writes of a device sync twice.
METHODS = (("write", 0, 0), ("direct", 0, 0), ("sync_file_range", 0, 0), ("fdatasync", 1, 1),
           ("fsync", 1, 1), ("fdatasync (direct)", 1, 1), ("msync", 1, 1),
           ("io_uring write+fdatasync", 1, 1), ("RWF_DSYNC", 1, 1),
           ("open_datasync (direct)", 1, 2), ("io_uring RWF_DSYNC (direct)", 1, 2))


def of_kernel(lab, disk):
    words = lab.guest("cat /sys/block/%s/stat" % disk).split()
    return {"writes": int(words[4]), "flushes": int(words[15])}


def of_drive(lab):
    return lab.done("drive %s stat" % SERIAL)["total"]


def main():
    if os.geteuid():
        skip("needs root for the lab")
    for tool in ("ip", "losetup", "curl"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            skip("no " + tool)
    if not os.access(PLUGPULL, os.X_OK):
        skip("no " + PLUGPULL)
    lab = Lab("--rig", "loop", "--dut", "none", "--drive", SERIAL + ",size=64M,cache=32M",
              "--agent-port", "7339")
    try:
        lab.switch(True)
        lab.wait("the machine is up", lambda: lab.ask("state")["machine"])
        lab.wait("the drive is attached", lambda: SERIAL in lab.ask(
            "guest %s identify --all" % PLUGPULL).get("output", ""))
        listed = lab.guest("losetup -a")
        disk = re.search(r"/dev/(loop\d+): [^\n]*%s" % re.escape(lab.run_dir), listed).group(1)
        for method, least, most in METHODS:
            before, drive_before = of_kernel(lab, disk), of_drive(lab)
            out = lab.guest("%s matrix --json -s 1 -o '%s' --destroy %s /dev/%s" %
                            (PLUGPULL, method, SERIAL, disk))
            after, drive_after = of_kernel(lab, disk), of_drive(lab)
            row = json.loads(out)["rows"][0]
            check("%s can be had" % method, row["status"] == "ok")
            for what in ("flushes", "writes"):
                kernel = after[what] - before[what]
                drive = drive_after[what] - drive_before[what]
                if what == "writes":
                    # The kernel counts a flush that was asked for by itself as a write too; the one
                    # that follows an O_DSYNC write in place of FUA is not.
                    empty = after["flushes"] - before["flushes"]
                    check("%s: writes of kernel %d, of drive %d" % (method, kernel, drive),
                          kernel - drive == empty if most < 2 else 0 <= kernel - drive <= empty)
                else:
                    check("%s: flushes of kernel %d, of drive %d" % (method, kernel, drive),
                          kernel == drive)
                check("%s: the row's share, %d" % (method, row["disk_" + what]),
                      row["disk_" + what] <= kernel)
            check("%s: %.3f flushes an operation" % (method, row["flushes_per_op"]),
                  least - 0.02 <= row["flushes_per_op"] <= most + 0.02)
            if least == most and not row["foreign_traffic"]:
                check("%s: %d flushes in %d operations" % (method, row["disk_flushes"], row["ops"]),
                      abs(row["disk_flushes"] - least * row["ops"]) <= 1)
    finally:
        lab.close()
    check("nothing is left behind", not leftovers(lab))


if __name__ == "__main__":
    main()
