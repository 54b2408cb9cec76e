# SPDX-License-Identifier: MIT
"""
What the controller's tests stand on: the real `plugpull campaign` against tests/lab/fake_machine.c,
with a power switch of profile `exec` that is the same program. No VM, no root; a folder, a port and
a state directory of its own for each rig, so that any number run side by side.
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests"))
import janitor  # noqa: E402

PLUGPULL = os.environ.get("PLUGPULL", os.path.join(TOP, "build", "plugpull"))
WAIT_S = 90  # for what must happen; never a measure of speed

PROFILE = """[profile]
name = fake
title = the fake machine's switch
transport = exec
cuts = mains
outlet = ^[a-z0-9]+$
settle_ms = 0
verify_timeout_ms = 1500

[off]
argv = {fake} --pdu {dir} {{id}} off

[on]
argv = {fake} --pdu {dir} {{id}} on

[status]
argv = {fake} --pdu {dir} {{id}} status
state_regex = ^(on|off|pending)$
on = on
off = off
pending = pending
"""

PLAN = {
    "campaign": {"name": "fake", "criterion": "95/50", "write_min_ms": 200, "write_max_ms": 300,
                 "controls": 0, "controls_end": 0, "confirm_boot": "no", "matrix_ms": 0,
                 "voids_max": 1, "seed": 1, "unproven": "yes"},
    "machine": {"listen": "127.0.0.1:0", "key": "{dir}/key", "boot_deadline_s": 20,
                "poweroff_settle_s": 0, "hold_up_ms": 400, "drive_wait_s": 1},
    "pdu": {"profile": "{dir}/profile.ini", "outlets": "1", "off_s": 0, "min_off_s": 0,
            "min_on_s": 0, "cycles_per_hour": "none", "state_dir": "{dir}/pdu"},
    "drive d": {"serial": "FAKE1", "target": "file", "format": "ext4", "destroy": "FAKE1",
                "size_mib": 2},
    "arms": {"methods": "fdatasync", "record_bytes": 4096},
}


def skip(why):
    print("skip:", why)
    sys.exit(77)


def fake_machine():
    given = os.environ.get("FAKE_MACHINE")
    found = [given] if given else sorted(glob.glob(os.path.join(TOP, "build", "*-release", "tests",
                                                                "lab", "fake_machine")))
    if not found or not os.path.exists(found[0]) or not os.path.exists(PLUGPULL):
        skip("build/plugpull and tests/lab/fake_machine are not built; run 'make all tests'")
    return found[0]


class Controller:
    """One `plugpull campaign` process; stderr is read as it comes."""

    def __init__(self, rig, *args):
        self.rig = rig
        rig.forget_port()
        self.process = subprocess.Popen(
            self.command(*args), env=rig.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        rig.controllers.append(self)
        self.lines = []
        self.out = ""
        self.threads = [threading.Thread(target=self._talk), threading.Thread(target=self._result)]
        for t in self.threads:
            t.start()

    def command(self, *args):
        return [PLUGPULL, "campaign", self.rig.plan_path, "--out", self.rig.out, *args]

    def _talk(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            if "listening on " in line:
                self.rig.set_port(int(line.split("listening on ")[1].split()[0].rsplit(":")[1]))

    def _result(self):
        self.out = self.process.stdout.read()

    @property
    def err(self):
        return "\n".join(self.lines)

    def wait(self, timeout=WAIT_S):
        self.process.wait(timeout)
        for t in self.threads:
            t.join(timeout)
        return self.process.returncode

    def kill(self, sig=signal.SIGKILL):
        self.process.send_signal(sig)


RIGS = set()
stopping = threading.Event()


class Rig:
    def __init__(self, drives=("FAKE1:honest",), flags=(), **changes):
        self.fake = fake_machine()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.dir = tempfile.mkdtemp(prefix="pp-fake-", dir=os.environ.get("TMPDIR") or memory)
        self.out = os.path.join(self.dir, "out")
        self.plan_path = os.path.join(self.dir, "plan.ini")
        self.mark = "PLUGPULL_TEST_RIG=" + self.dir
        janitor.watch(self.dir, "PLUGPULL_TEST_RIG")
        self.env = dict(os.environ, PLUGPULL_TEST_RIG=self.dir, NO_COLOR="1")
        self.controllers = []
        self.machine = None
        RIGS.add(self)
        os.mkdir(os.path.join(self.dir, "flag"))
        os.mkdir(os.path.join(self.dir, "pdu"))
        self.write("power", "on\n")
        self.write("profile.ini", PROFILE.format(fake=self.fake, dir=self.dir))
        subprocess.run([PLUGPULL, "key", os.path.join(self.dir, "key")], check=True,
                       stdout=subprocess.DEVNULL)
        self.plan(**changes)
        for name in flags:
            self.flag(*name.split("=", 1)) if "=" in name else self.flag(name)
        words = [w for d in drives for w in ("--drive", d)]
        if stopping.is_set():
            self.close()
            raise KeyboardInterrupt
        self.machine = subprocess.Popen([self.fake, "--dir", self.dir, *words], env=self.env,
                                        stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Only what this rig started: its children, and guards that carry its mark."""
        RIGS.discard(self)
        if not os.path.isdir(self.dir):
            return
        self.unflag_all()
        for c in self.controllers:
            if c.process.poll() is None:
                c.process.kill()
                c.process.wait()
        deadline = time.monotonic() + 20
        while (self.processes(besides_machine=True) and time.monotonic() < deadline and
               not stopping.is_set()):
            time.sleep(0.05)
        for pid in self.processes(besides_machine=True):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.machine:
            self.machine.kill()
            self.machine.wait()
        for c in self.controllers:
            for t in c.threads:
                t.join(5)
            c.process.stdout.close()
            c.process.stderr.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- the files that it consists of

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)

    def plan(self, extra="", **changes):
        text = ""
        for section, keys in PLAN.items():
            changed = changes.get(section.replace(" ", "_"), {})
            text += f"[{section}]\n"
            for key, value in {**keys, **changed}.items():
                if value is not None:
                    text += f"{key} = {str(value).format(dir=self.dir)}\n"
        self.write("plan.ini", text + extra)

    def set_port(self, port):
        self.write("port", f"{port}\n")

    def forget_port(self):
        try:
            os.unlink(os.path.join(self.dir, "port"))
        except FileNotFoundError:
            pass

    def flag(self, name, value=""):
        with open(os.path.join(self.dir, "flag", name), "w") as f:
            f.write(str(value))

    def unflag(self, name):
        try:
            os.unlink(os.path.join(self.dir, "flag", name))
        except (FileNotFoundError, NotADirectoryError):
            pass

    def unflag_all(self):
        for name in os.listdir(os.path.join(self.dir, "flag")):
            self.unflag(name)

    def power(self):
        with open(os.path.join(self.dir, "power")) as f:
            return f.read().strip()

    def processes(self, besides_machine=False):
        return [p for p in janitor.processes_of(self.mark)
                if not (besides_machine and self.machine and p == self.machine.pid)]

    # ---- runs

    def start(self, *args):
        return Controller(self, *args)

    def run(self, *args):
        c = self.start(*args)
        c.wait()
        return c

    def judge(self, *args):
        return subprocess.run([PLUGPULL, "judge", *args, self.out], env=self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def load(self, *names):
        with open(os.path.join(self.out, *names)) as f:
            return json.load(f)

    def cuts(self):
        try:
            return sorted(os.listdir(os.path.join(self.out, "cuts")))
        except FileNotFoundError:
            return []

    def trials(self, serial="FAKE1"):
        found = []
        for cut in self.cuts():
            path = os.path.join(self.out, "cuts", cut, serial, "judgement.json")
            if os.path.exists(path):
                with open(path) as f:
                    found.append(json.load(f))
        return found

    def arm(self, method, serial="FAKE1"):
        return next(a for a in self.load("campaign.json")["arms"]
                    if a["method"] == method and a["serial"] == serial)

    def state(self):
        """Of the newest cut; "" where there is none."""
        for cut in reversed(self.cuts()):
            try:
                return self.load("cuts", cut, "cut.json")["state"]
            except (FileNotFoundError, json.JSONDecodeError):
                return ""
        return ""

    def await_that(self, what, holds, timeout=WAIT_S):
        deadline = time.monotonic() + timeout
        while not holds():
            if time.monotonic() > deadline or stopping.is_set():
                raise AssertionError(f"never: {what}")
            time.sleep(0.003)

    def check_same_judgement(self):
        """judge gives byte for byte what the campaign wrote, and the seal holds."""
        again = self.judge("--json")
        with open(os.path.join(self.out, "campaign.json")) as f:
            if again.stdout != f.read():
                raise AssertionError(f"judge and campaign differ: {again.stderr}{again.stdout}")
        sums = subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=self.out,
                              capture_output=True, text=True)
        if sums.returncode:
            raise AssertionError("seal: " + sums.stdout + sums.stderr)
        return again.returncode


def check(what, holds):
    if not holds:
        raise AssertionError(what)


def interrupt(*_):
    raise KeyboardInterrupt


def timed(f):
    began = time.monotonic()
    f()
    return time.monotonic() - began


def run_all(tests, workers):
    """tests: (name, function). Prints a line each, exits 0 or 1; Ctrl-C and TERM clean up."""
    from concurrent.futures import ThreadPoolExecutor
    wanted = sys.argv[1:]
    tests = [t for t in tests if not wanted or any(w in t[0] for w in wanted)]
    signal.signal(signal.SIGTERM, interrupt)
    bad = 0
    pool = ThreadPoolExecutor(workers)
    futures = [(name, pool.submit(timed, f)) for name, f in tests]
    try:
        for name, future in futures:
            try:
                print(f"ok: {name} ({future.result():.0f} s)")
            except Exception as e:  # noqa: one failure must not hide the others
                bad += 1
                print("FAIL:", name, "\n  ", str(e).replace("\n", "\n   "))
            sys.stdout.flush()
    finally:
        for sig in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sig, signal.SIG_IGN)
        for _, future in futures:
            future.cancel()
        if sys.exc_info()[0]:
            stopping.set()
            for rig in list(RIGS):
                rig.close()
        pool.shutdown()
    sys.exit(1 if bad else 0)
