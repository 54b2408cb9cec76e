# SPDX-License-Identifier: MIT
"""
What the tests of whole campaigns in the lab's virtual machine stand on: a lab that is a process of
its own, a folder, a plan that names the lab's power switch, and controllers that come and go. Needs
root. Waits have deadlines; none of them is a measure of speed.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_lab_vm import PLUGPULL, TOP, Lab, leftovers, skip  # noqa: E402,F401
sys.path.insert(0, os.path.join(TOP, "tests"))
import janitor  # noqa: E402

WAIT_S = 300
worlds = []  # that are open, for an end that nobody expected

PLAN = {
    "campaign": {"name": "truth", "criterion": "50/50", "write_min_ms": 400, "write_max_ms": 900,
                 "controls": 1, "controls_end": 0, "confirm_boot": "no", "matrix_ms": 0,
                 "stop_at_first_loss": "yes", "voids_max": 5, "seed": 20261130,
                 "unproven": "yes"},
    "machine": {"boot_deadline_s": 60, "poweroff_settle_s": 1, "hold_up_ms": 500,
                "drive_wait_s": 2},
    "pdu": {"profile": "shelly-gen2", "outlets": 1, "off_s": 0, "min_off_s": 0, "min_on_s": 0,
            "cycles_per_hour": "none"},
}


def need_the_lab():
    if os.geteuid():
        skip("needs root for a network namespace of its own")
    for tool in ("qemu-system-x86_64", "nbdkit", "busybox", "ip", "mke2fs", "sha256sum"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            skip(f"no {tool}")
    if not os.access(PLUGPULL, os.X_OK):
        skip(f"no {PLUGPULL}")


def check(what, holds):
    if not holds:
        raise AssertionError(what)


def await_that(what, holds, timeout=WAIT_S, step=0.05):
    until = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > until:
            raise AssertionError("never happened: " + what)
        time.sleep(step)


def section(name, keys):
    return f"[{name}]\n" + "".join(f"{k} = {v}\n" for k, v in keys.items() if v is not None)


def of_mark(mark):
    """Living processes whose environment or arguments hold this mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                words = f.read()
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read()
        except OSError:
            continue
        if (mark.encode() in words or mark.encode() in line) and int(pid) != os.getpid():
            found.append(f"{pid} " + line.replace(b"\0", b" ").decode(errors="replace")[:100])
    return found


class Controller:
    """One `plugpull campaign` process; what it says is read as it comes."""

    def __init__(self, world, *args):
        self.process = subprocess.Popen(
            [PLUGPULL, "campaign", world.plan_path, "--out", world.out, *args], env=world.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines, self.report = [], ""
        self.threads = [threading.Thread(target=self._talk, daemon=True),
                        threading.Thread(target=self._result, daemon=True)]
        for t in self.threads:
            t.start()

    def _talk(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip())

    def _result(self):
        self.report = self.process.stdout.read()

    @property
    def err(self):
        return "\n".join(self.lines)

    def wait(self):
        status = self.process.wait(WAIT_S * 3)
        for t in self.threads:
            t.join(WAIT_S)
        return status

    def kill(self, sig=signal.SIGKILL):
        self.process.send_signal(sig)


class World:
    """drives: SERIAL -> (keys of the plan's drive, the lab's words for it, or None for no drive)."""
    lab_words = ()  # of plugpull lab, for any other rig than the virtual machine

    def __init__(self, drives, arms, **changes):
        self.dir = tempfile.mkdtemp(prefix="pp-vm-")
        janitor.watch(self.dir, "PLUGPULL_TEST_VM")
        self.out, self.plan_path = os.path.join(self.dir, "out"), os.path.join(self.dir, "plan.ini")
        self.env = dict(os.environ, PLUGPULL_TEST_VM=self.dir, NO_COLOR="1")
        self.controllers = []
        self.lab = None
        worlds.append(self)
        words = [w for serial, (_, lab) in drives.items() for w in ("--drive", f"{serial},{lab}")]
        try:
            self.lab = Lab(*self.lab_words, *words, "--work-dir", os.path.join(self.dir, "lab"), "--agent-arg",
                           "--name", "--agent-arg", "lab")
            self.write_plan(drives, arms, changes)
        except BaseException:
            self.close()
            raise

    def write_plan(self, drives, arms, changes):
        info = self.lab.info
        credentials = os.path.join(self.dir, "pdu.credentials")
        with open(credentials, "w", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(f"password = {self.lab.password}\n")
        os.mkdir(os.path.join(self.dir, "pdu"))
        given = {
            "machine": {"name": "lab", "key": info["key_file"],
                        "listen": f'{info["listen_address"]}:{info["listen_port"]}'},
            "pdu": {"url": info["pdu_url"], "credentials": credentials,
                    "identity": info["pdu_id"], "state_dir": os.path.join(self.dir, "pdu")},
        }
        text = "".join(section(name, {**keys, **given.get(name, {}), **changes.get(name, {})})
                       for name, keys in PLAN.items())
        for serial, (keys, _) in drives.items():
            if keys is not None:
                keys = {"serial": serial, "target": "file", "destroy": serial, "size_mib": 8, **keys}
                if keys["target"] == "file":
                    keys.setdefault("format", "ext4")
                text += section("drive " + serial.lower(), keys)
        text += "".join(section(("arms " + name).strip(), keys) for name, keys in arms.items())
        with open(self.plan_path, "w") as f:
            f.write(text)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            for c in self.controllers:
                print(c.err, c.report, sep="\n")
        left = self.close()
        if not kind:
            check(f"nothing is left: {left}", left == [])

    def close(self):
        left = []
        for c in self.controllers:
            if c.process.poll() is None:
                c.kill()
                c.process.wait()
        if self.lab:
            mark = "PLUGPULL_TEST_VM=" + self.dir
            until = time.monotonic() + 60
            while of_mark(mark) and time.monotonic() < until:
                time.sleep(0.05)  # a guard outlives its controller for a moment
            left = of_mark(mark)
            if self.lab.process.poll() is None:
                self.lab.close()
            left += leftovers(self.lab)
        shutil.rmtree(self.dir, ignore_errors=True)
        if self in worlds:
            worlds.remove(self)
        return left

    # ---- runs

    def start(self, *args):
        self.controllers.append(Controller(self, *args))
        return self.controllers[-1]

    def run(self, *args):
        c = self.start(*args)
        c.wait()
        return c

    def load(self, *names):
        with open(os.path.join(self.out, *names)) as f:
            return json.load(f)

    def state(self):
        """Of the last cut, as cut.json has it; None before the first."""
        try:
            return self.load("cuts", max(os.listdir(os.path.join(self.out, "cuts"))),
                             "cut.json")["state"]
        except (OSError, ValueError):
            return None

    def trials(self, serial):
        found = []
        for cut in sorted(os.listdir(os.path.join(self.out, "cuts"))):
            path = os.path.join(self.out, "cuts", cut, serial, "judgement.json")
            if os.path.exists(path):
                with open(path) as f:
                    found.append(json.load(f))
        return found

    def arms(self):
        return {(a["serial"], a["method"], a["workload"]): a
                for a in self.load("campaign.json")["arms"]}

    def check_evidence(self, status):
        """The folder alone says the same, byte for byte, and its sums hold."""
        judged = subprocess.run([PLUGPULL, "judge", "--json", self.out], env=self.env,
                                stdin=subprocess.DEVNULL, capture_output=True, text=True)
        check(f"judge exits {judged.returncode}: {judged.stderr}", judged.returncode == status)
        with open(os.path.join(self.out, "campaign.json")) as f:
            check("judge says what the campaign said", judged.stdout == f.read())
        sums = subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=self.out,
                              capture_output=True, text=True)
        check(f"SHA256SUMS hold: {sums.stdout}", sums.returncode == 0)


def run_all(tests, at_a_time=2):
    """
    Each (name, function) whose name holds a word of the command line, or all; a few at a time: a boot
    is mostly one processor's work.
    """
    wanted = sys.argv[1:]
    failed, lock = [], threading.Lock()
    todo = [t for t in tests if not wanted or any(w in t[0] for w in wanted)]

    def work():
        while True:
            with lock:
                if not todo:
                    return
                name, function = todo.pop(0)
            start = time.monotonic()
            try:
                function()
                print(f"ok: {name} ({time.monotonic() - start:.0f} s)", flush=True)
            except BaseException:  # noqa: B902: one that fails must not stop the others
                with lock:
                    failed.append(name)
                    print(f"FAILED: {name}\n{traceback.format_exc()}", flush=True)

    def end(*_):
        raise SystemExit(130)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    threads = [threading.Thread(target=work, daemon=True) for _ in range(at_a_time)]
    try:
        for t in threads:
            t.start()
        for t in threads:
            while t.is_alive():
                t.join(1)
    finally:
        todo.clear()
        for world in list(worlds):
            world.close()
    sys.exit(1 if failed else 0)
