#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plugpull matrix from outside: layouts, refusals, exit statuses, and that nothing stays behind.

Method: runs the program (PLUGPULL, default build/plugpull) in a folder of its own. The pg layout is
compared with tests/cli/data/pg_test_fsync.txt, and with pg_test_fsync itself where that is
installed (PG_TEST_FSYNC, else the PATH and Debian's place). No figure is judged.
"""
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
PLUGPULL = os.environ.get("PLUGPULL", os.path.join(TOP, "build", "plugpull"))
RATE = re.compile(r"^(.{38}) *[0-9]+\.[0-9]{3} ops/sec  {0,6}[ 0-9]{6} usecs/op$")


def pg_test_fsync():
    found = [os.environ.get("PG_TEST_FSYNC"), shutil.which("pg_test_fsync")]
    found += sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_test_fsync"))
    return next((f for f in found if f), None)


def skeleton(text):
    """The layout without its figures; a line whose figures are not in their columns stays as it is."""
    lines = []
    for line in text.splitlines():
        line = re.sub(r"^[0-9]+ seconds? per test$", "# seconds per test", line)
        if RATE.match(line):
            # 38 for the label, 13 for the rate (wider if it must be), then fixed text
            line = line[:38] + "#"
        lines.append(line)
    return lines


class Matrix(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="plugpull-test-")

    def tearDown(self):
        left = os.listdir(self.folder)
        shutil.rmtree(self.folder)
        self.assertEqual(sorted(left), sorted(getattr(self, "expected_left", [])))

    def run_matrix(self, *args, **kwargs):
        return subprocess.run([PLUGPULL, "matrix", *args], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)

    def test_pg_layout(self):
        result = self.run_matrix("--format", "pg", "-s", "1")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        with open(os.path.join(HERE, "data", "pg_test_fsync.txt"), encoding="ascii") as f:
            golden = f.read().splitlines()
        # Where direct I/O is refused the rows say n/a*: then only the real program can be the model.
        if "n/a*" not in result.stdout:
            self.assertEqual(skeleton(result.stdout), golden)
        program = pg_test_fsync()
        if not program:
            self.skipTest("compared with the stored layout only: no pg_test_fsync here")
        real = subprocess.run([program, "-s", "1", "-f", os.path.join(self.folder, "pg")],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(real.returncode, 0, real.stderr)
        self.assertEqual(skeleton(result.stdout), skeleton(real.stdout))

    def test_table(self):
        result = self.run_matrix("-s", "1", "-o", "fdatasync", "--only", "open_sync (direct)", ".")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertRegex(lines[0], r"^method +promise +ops/s +p50 +p99 +flush/op$")
        self.assertRegex(lines[1], r"^fdatasync +media +[0-9.]+ ")
        self.assertRegex(lines[2], r"^open_sync \(direct\) +")
        for line in lines[:3]:
            self.assertLessEqual(len(line), 80)

    def test_json(self):
        result = self.run_matrix("-s", "1", "-o", "fsync", "-o", "direct", "--json", "-f", "new.tmp")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        whole = json.loads(result.stdout)
        self.assertEqual(whole["format"], 1)
        self.assertEqual([r["method"] for r in whole["rows"]], ["direct", "fsync"])
        self.assertEqual(whole["rows"][1]["promise"], "media")
        self.assertGreater(whole["rows"][1]["latency_ns_p99"], 0)

    def test_axes(self):
        result = self.run_matrix("-s", "1", "-o", "write", "-o", "fdatasync", "--workload",
                                 "append,create", "--block", "4k", "--threads", "1,2", "--wide")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        headings = re.findall(r"(?m)^(\w+), 4096 bytes, (\d) threads?$", result.stdout)
        self.assertEqual(headings, [("append", "1"), ("append", "2"), ("create", "1"),
                                    ("create", "2")])
        self.assertEqual(len(re.findall(r"(?m)^fdatasync +media +[0-9.]+ ", result.stdout)), 4)
        self.assertIn("FUA/op", result.stdout)

    def test_auto(self):
        result = self.run_matrix("--duration", "auto", "-o", "write", "--json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        row = json.loads(result.stdout)["rows"][0]
        self.assertEqual(row["settled"], row["elapsed_ns"] < 30e9)
        self.assertGreaterEqual(row["elapsed_ns"], 2e9)

    def test_throughput(self):
        result = self.run_matrix("--no-methods", "-s", "1", "--size", "8M", "--json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        rows = json.loads(result.stdout)["rows"]
        self.assertEqual(len(rows), 8)
        for row in rows:
            if row["status"] == "ok":
                self.assertGreater(row["bytes_per_s"], 0)

    def test_assess_reads_what_matrix_prints(self):
        for form in ("json", "pg"):
            result = self.run_matrix("-s", "1", "--format", form)
            done = subprocess.run([PLUGPULL, "assess", "-"], input=result.stdout, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"^-: (json|pg_test_fsync), \d+ figures, ")

    def test_assess_fits_a_terminal(self):
        done = subprocess.run([PLUGPULL, "assess", "--rpm", "7200", "-"], input="fdatasync: 3065 ops/s\n",
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertIn("  rotation: fdatasync: 3065 syncs", done.stdout)
        self.assertLessEqual(max(len(line) for line in done.stdout.splitlines()), 80)
        done = subprocess.run([PLUGPULL, "assess", "-"], input="method  promise\n", text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertIn("--json", done.stderr)

    def test_assess_errors(self):
        for args, text in (([], "expected a 'FILE'"), (["nowhere"], "No such file"),
                           (["--bogus"], "unknown option"), (["--link"], "no value"),
                           (["--link", "fast", "list"], "expected the like of"),
                           (["bad"], "line 2: ")):
            for name, body in (("list", "fsync: 100/s\n"), ("bad", "fsync: 100/s\nfsink: 1\n")):
                with open(os.path.join(self.folder, name), "w", encoding="ascii") as f:
                    f.write(body)
            self.expected_left = ["list", "bad"]
            done = subprocess.run([PLUGPULL, "assess", *args], cwd=self.folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertIn(text, done.stderr)

    def test_usage_errors(self):
        for args, text in ((["-s", "0"], "seconds"), (["-s", "1x"], "seconds"),
                           (["-s"], "no value"), (["--bogus"], "unknown option"),
                           (["-x"], "unknown option"), (["-o", "fsyn"], "no method 'fsyn'"),
                           (["--format", "p"], "no format 'p'"), (["a", "b"], "second target"),
                           (["--format", "pg", "-o", "fsync"], "--only"),
                           (["--format", "pg", "--block", "4k"], "--block"),
                           (["--format", "pg", "--throughput"], "--throughput"),
                           (["--block", "4q"], "no size"), (["--block", "4k,,8k"], "no size"),
                           (["--block", "100"], "multiple of 512"), (["--block", "2M"], "up to"),
                           (["--threads", "0"], "1 to 64"), (["--threads", "65"], "1 to 64"),
                           (["--workload", "rename"], "no workload 'rename'"),
                           (["--workload", "app"], "no workload 'app'"),
                           (["--duration", "soon"], "seconds"), (["--size", "0"], "no size"),
                           (["--compressible", "101"], "0 to 100"),
                           (["--destroy", "X", "f"], "is for devices")):
            result = self.run_matrix(*args)
            self.assertEqual((result.returncode, result.stdout), (2, ""), args)
            self.assertIn(text, result.stderr)

    def test_help_and_version(self):
        for option in ("--help", "-?"):
            result = self.run_matrix(option)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("--secs-per-test N", result.stdout)
        self.assertRegex(self.run_matrix("-V").stdout, r"^plugpull matrix \(plugpull\) ")

    def test_existing_file_is_kept(self):
        path = os.path.join(self.folder, "mine")
        with open(path, "w", encoding="ascii") as f:
            f.write("mine")
        self.expected_left = ["mine"]
        for args in (["mine"], ["--format", "pg", "-f", "mine"]):
            result = self.run_matrix(*args)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn("exists", result.stderr)
            with open(path, encoding="ascii") as f:
                self.assertEqual(f.read(), "mine")

    def test_signals_remove_the_file(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([PLUGPULL, "matrix", "-s", "600"], cwd=self.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
                # Its first table line says that the signals are caught and the file is there.
                self.assertIn("method", p.stdout.readline())
                self.assertEqual(len(os.listdir(self.folder)), 1)
                p.send_signal(number)
                self.assertIn("stopped", p.communicate()[1])
                self.assertEqual(p.returncode, 2)
            self.assertEqual(os.listdir(self.folder), [])

    def test_closed_pipe_removes_the_file(self):
        with subprocess.Popen([PLUGPULL, "matrix", "-s", "1"], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            p.stdout.readline()
            p.stdout.close()
            self.assertIn("cannot write the result", p.stderr.read())
            self.assertEqual(p.wait(), 2)

    def test_no_room(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        result = self.run_matrix(preexec_fn=limit)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("cannot write", result.stderr)

    def test_no_folder(self):
        result = self.run_matrix("nowhere/file")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("No such file or directory", result.stderr)


if __name__ == "__main__":
    if not os.access(PLUGPULL, os.X_OK):
        print("skipped: '%s' is not built" % PLUGPULL)
        sys.exit(77)
    unittest.main()
