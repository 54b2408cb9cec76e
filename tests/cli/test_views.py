#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: compare, report of several folders, JUnit, HTML and resolutions say of real evidence what they
should, and of spoilt evidence nothing. Method: three campaigns against the fake machine, then the
commands, by exit status and words.

Guards M6.1, M6.5, M8.7, M9.2, M9.4.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lab"))
from fake_rig import PLUGPULL, Rig, check, run_all  # noqa: E402

LIAR, HONEST = ("FAKE1:ignores-both",), ("FAKE1:honest",)


def plugpull(*args, status=None):
    got = subprocess.run([PLUGPULL, *args], capture_output=True, text=True,
                         env=dict(os.environ, NO_COLOR="1", USER="tester"))
    check(f"{args}: exit {got.returncode}\n{got.stdout}{got.stderr}",
          status is None or got.returncode == status)
    return got


class Evidence:
    """A folder of campaigns, gone when done."""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="pp-views-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def make(self, name, drives, flags=(), *args, **keys):
        with Rig(drives, flags) as rig:
            rig.plan(campaign={"name": name, "confirm_boot": "no", **keys})
            rig.run(*args)
            shutil.copytree(rig.out, self.path(name))
        return self.path(name)


def compare():
    """M9.2: an arm stopped at its first loss has no rate; one with a fixed number has."""
    with Evidence() as e:
        stopped = e.make("stopped", LIAR)
        fixed = e.make("fixed", LIAR, (), stop_at_first_loss="no", cuts=4)
        honest = e.make("honest", HONEST, (), "--cuts", "4")
        facts = json.load(open(os.path.join(fixed, "target.json")))
        check(str(facts), facts["stop_at_first_loss"] is False and facts["cuts_fixed"] == 4)
        got = plugpull("compare", stopped, honest, status=2)
        check(got.stdout, "stopped at its first loss" in got.stdout and "p =" not in got.stdout)
        got = plugpull("compare", fixed, honest, status=1)
        check(got.stdout, "lost in 4 of 4 cuts" in got.stdout and "p = 0.029" in got.stdout and
              "A loses in a larger share" in got.stdout)
        got = plugpull("compare", "--json", honest + "#fdatasync", "0/29", status=0)
        pair = json.loads(got.stdout)["comparisons"][0]
        check(str(pair), pair["result"] == "no difference shown" and pair["a"]["cuts"] == 4)
        for args, words in (
                ((fixed, fixed), "the same arm of one campaign"),
                ((fixed + "#rename", honest), "no such arm"),
                ((fixed + "#", honest), "names no arm"),
                ((fixed, "3/2"), "neither a folder nor K/N"),
                ((fixed, e.path("none")), "No such file"),
                ((fixed, e.dir), "is no evidence"),
                ((fixed,), "takes two")):
            got = plugpull("compare", *args, status=2)
            check(got.stderr, words in got.stderr and got.stdout == "")
        # the older form of target.json does not say how an arm stopped
        del facts["stop_at_first_loss"], facts["cuts_fixed"]
        with open(os.path.join(fixed, "target.json"), "w") as f:
            json.dump(facts, f)
        got = plugpull("compare", fixed, honest, status=2)
        check(got.stderr, "was changed" in got.stderr and got.stdout == "")
        got = plugpull("compare", "--unsealed", fixed, honest, status=2)
        check(got.stdout, "does not say whether it was stopped" in got.stdout)


def views():
    """M9.4, M8.7: several folders, every form, every file."""
    with Evidence() as e:
        liar = e.make("liar", LIAR)
        honest = e.make("honest", HONEST, (), "--cuts", "2")
        other = e.make("other", ("FAKE1:honest",), (), "--cuts", "1")
        got = plugpull("report", honest, other, status=2)
        check(got.stdout, "1 drive, 0 with a loss; lost in 0 of 3 cuts" in got.stdout and
              "assumes that the drives" in got.stdout and "campaigns         c/l/v/o" in got.stdout)
        check("one folder has no lot", "lot " not in plugpull("report", honest).stdout)
        whole = json.loads(plugpull("report", "--json", liar, honest, status=1).stdout)
        check(str(whole), whole["format"] == 1 and len(whole["campaigns"]) == 2 and
              whole["lots"][0]["cuts_loss"] == 1 and len(whole["lots"][0]["per_drive"]) == 1)
        within = whole["campaigns"][0]["arms"][0]["records_acked_within_ms"]
        check(str(within), 0 < within["10"] <= within["100"] <= within["1000"])
        copy = e.path("copy")
        shutil.copytree(honest, copy)
        got = plugpull("report", honest, copy, status=2)
        check(got.stderr, "are the same campaign" in got.stderr and got.stdout == "")

        junit, html = e.path("j.xml"), e.path("h.html")
        table = plugpull("judge", liar, status=1).stdout
        check(table, "\n!! WIRING NOT PROVEN: " in table and "UNSEALED" not in table)
        got = plugpull("judge", "--junit", junit, "--html", html, liar, status=1)
        check("the table as well", got.stdout == table)
        suite = ET.parse(junit).getroot().find("testsuite")
        check("a failure", suite.get("failures") == "1" and suite.get("errors") == "0" and
              suite.find("testcase/failure").get("type") == "stale")
        with open(html) as f:
            page = f.read()
        sums = subprocess.run(["sha256sum", "SHA256SUMS"], cwd=liar, capture_output=True, text=True)
        check("the page names the evidence", sums.stdout.split()[0] in page and "BROKEN" in page)
        check("the same each time", plugpull("report", "--html", "-", liar).stdout == page)
        check("one on stdout alone", plugpull("report", "--junit", "-", honest,
              status=2).stdout.startswith("<?xml"))
        for args, words in ((["--html", os.path.join(liar, "r.html")], "inside the evidence"),
                            (["--junit", os.path.join(liar, "cuts", "r.xml")], "inside the evidence"),
                            (["--junit", "-", "--html", "-"], "only one form"),
                            (["--junit", "-", "--json"], "only one form"),
                            (["--html", "/nonexistent/r.html"], "No such file")):
            got = plugpull("judge", *args, liar, status=2)
            check(got.stderr, words in got.stderr and got.stdout == "")
        with open(os.path.join(e.path("copy"), "plan.ini"), "a") as f:
            f.write("; later\n")
        check("refused", plugpull("judge", e.path("copy"), status=2).stdout == "")
        for form, mark in ((), "\n!! UNSEALED: "), (("--json",), '"sealed": false'), (
                ("--csv",), ",0,0,1\n"), (("--html", "-"), ">UNSEALED: "), (
                ("--junit", "-"), ">UNSEALED: "):
            got = plugpull("judge", "--unsealed", *form, e.path("copy"), status=2)
            check(f"{form}: {got.stdout}", mark in got.stdout)
        check("the seal holds", plugpull("judge", liar, status=1).stderr == "")

        # one of two folders is spoilt: no lot, no file, and 2 unless a promise was broken
        os.unlink(os.path.join(other, "cuts", "0001", "FAKE1", "scan.bin"))
        os.unlink(junit)
        got = plugpull("report", "--junit", junit, honest, other, status=2)
        check(got.stderr, "is missing" in got.stderr and "no file is written" in got.stderr and
              not os.path.exists(junit) and "lot " not in got.stdout)
        got = plugpull("report", "--unsealed", "--html", "-", other, status=2)
        check(got.stdout, got.stdout == "" and "scan.bin" in got.stderr)


def resolutions():
    """M6.5: who clears what, and what nobody can."""
    with Evidence() as e:
        unsettled = e.make("open", HONEST, ("unstable",), "--cuts", "1")
        gone = e.make("gone", HONEST, ("drive-gone",), "--cuts", "1")
        lost = e.make("lost", LIAR)

        def resolve(folder, *args, status=2):
            return plugpull("judge", folder, "--resolve", *args, status=status)

        before = plugpull("judge", unsettled, status=2).stdout
        check(before, "open, to be scanned or resolved: cut 1" in before)
        for args, words in ((["1:FAKE1"], "needs --cause"),
                            (["1:FAKE1", "--cause", "  "], "names a cause"),
                            (["1:FAKE1", "--cause", "x" * 200], "names a cause"),
                            (["1", "--cause", "x"], "CUT:DRIVE"),
                            (["+1:FAKE1", "--cause", "x"], "CUT:DRIVE"),
                            (["2:FAKE1", "--cause", "x"], "no trial"),
                            (["1:FAKE2", "--cause", "x"], "no trial"),
                            (["1:FAKE1", "--cause", "x", "--swapped"], "was not found gone")):
            got = resolve(unsettled, *args)
            check(got.stderr, words in got.stderr and got.stdout == "")
        check("nothing was written", plugpull("judge", unsettled).stdout == before)
        got = plugpull("judge", "--cause", "x", unsettled, status=2)
        check(got.stderr, "go with --resolve" in got.stderr)
        got = resolve(unsettled, "1:FAKE1", "--cause", "cable was loose")
        check(got.stdout, "cut 1 cleared by a person: cable was loose (tester)" in got.stdout and
              "open, to be scanned" not in got.stdout)
        check("sealed", plugpull("judge", unsettled, status=2).stderr == "")
        with open(os.path.join(unsettled, "campaign.json")) as f:
            check("campaign.json too", f.read() == plugpull("judge", "--json", unsettled).stdout)
        check("in the page", "cable was loose" in plugpull("judge", "--html", "-", unsettled).stdout)
        check("once", "already" in resolve(unsettled, "1:FAKE1", "--cause", "y").stderr)

        check("words", "only a swap" in resolve(gone, "1:FAKE1", "--cause", "odd").stderr)
        got = resolve(gone, "1:FAKE1", "--cause", "sent back", "--swapped")
        check(got.stdout, "swapped: sent back (tester)" in got.stdout and "UNSAFE" not in got.stdout)
        got = resolve(lost, "1:FAKE1", "--cause", "the cat did it")
        check(got.stderr, "a loss that was confirmed stands" in got.stderr)
        got = resolve(lost, "1:FAKE1", "--cause", "the cat did it", "--swapped")
        check(got.stderr, "a loss that was confirmed stands" in got.stderr)

        # what does not fit its seal gets no new one
        with open(os.path.join(gone, "plan.ini"), "a") as f:
            f.write("\n")
        for more in ([], ["--unsealed"]):
            got = plugpull("judge", gone, *more, "--resolve", "1:FAKE1", "--cause", "x", status=2)
            check(got.stderr, "nothing is resolved" in got.stderr)
        check("still does not fit", plugpull("judge", gone, status=2).stdout == "")
        # a resolution that was altered is an error, not silence
        path = os.path.join(unsettled, "resolutions", "0001-FAKE1.json")
        with open(path) as f:
            text = f.read()
        for bad in ("", text.replace("cable was loose", " "), text.replace("FAKE1", "FAKE2")):
            with open(path, "w") as f:
                f.write(bad)
            for command in ("judge", "report"):
                got = plugpull(command, "--unsealed", unsettled, status=2)
                check(got.stderr, got.stdout == "" and "0001-FAKE1.json" in got.stderr)


TESTS = [(f.__name__, f) for f in (compare, views, resolutions)]

if __name__ == "__main__":
    run_all(TESTS, workers=3)
