#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Goal: `plugpull pdu` from outside: https is verified unless a person says otherwise, and no secret is ever
in a command line, a process title, a message, a record, the state folder or a core dump.
Method: the mock switches (tests/pdu/mock_pdu.c), behind a TLS end of this test's own with certificates
made on the spot; all processes of the program and its guard are looked at in /proc while the outlet is
off. Loopback only.
"""
import base64
import glob
import hashlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLUGPULL = os.path.abspath(os.environ.get("PLUGPULL", os.path.join(TOP, "build", "plugpull")))
MOCK = (glob.glob(os.path.join(TOP, "build", "*-release", "tests", "pdu", "mock_pdu")) or [""])[0]
SECRET = "correct-horse-9"
DIALECTS = [("shelly-gen2", "1"), ("shelly-gen1", "1"), ("tasmota", "1"), ("dli-rest", "1"),
            ("netio-json", "1"), ("gude", "1"), ("raritan-jsonrpc", "1"), ("servertech-jaws", "AA1"),
            ("redfish-outlet", "A1"), ("redfish-system", "1"), ("home-assistant", "switch.dut_1"),
            ("esphome", "dut"), ("mystrom", "1"), ("generic-rest", "1"), ("pikvm", "1"),
            ("devantech-eth008", "1"), ("tinycontrol", "1")]


def check(what, holds, seen=""):
    if not holds:
        raise AssertionError("%s: %s" % (what, seen))


class Mock:
    def __init__(self, dialect, password=SECRET):
        words = [MOCK, dialect, "none"] + (["admin:" + password] if password else [])
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def state(self):
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        return [int(n) for n in self.process.stdout.readline().split()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Tls:
    """Ends TLS and hands everything on to a port; counts the connections that got that far."""

    def __init__(self, cert, key, port):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.to, self.passed, self.ended = port, 0, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while not self.ended:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(raw,), daemon=True).start()

    def one(self, raw):
        try:
            raw.settimeout(10)
            with self.context.wrap_socket(raw, server_side=True) as near, \
                    socket.create_connection(("127.0.0.1", self.to)) as far:
                data = near.recv(65536)
                if not data:
                    return
                self.passed += 1
                while b"\r\n\r\n" not in data:
                    data += near.recv(65536)
                head, body = data.split(b"\r\n\r\n", 1)
                want = [int(line.split(b":")[1]) for line in head.split(b"\r\n")
                        if line.lower().startswith(b"content-length:")]
                while want and len(body) < want[0]:
                    more = near.recv(65536)
                    body, data = body + more, data + more
                far.sendall(data)
                while True:
                    answer = far.recv(65536)
                    if not answer:
                        return
                    near.sendall(answer)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


def make_cert(folder, name, subject_alt):
    cert, key = os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", "2", "-subj", "/CN=pdu", "-addext", "subjectAltName=" + subject_alt,
                    "-keyout", key, "-out", cert], check=True, capture_output=True)
    public = subprocess.run(["openssl", "x509", "-in", cert, "-noout", "-pubkey"], check=True,
                            capture_output=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=public, check=True,
                         capture_output=True).stdout
    return cert, key, "sha256//" + base64.b64encode(hashlib.sha256(der).digest()).decode()


def credentials(folder):
    path = os.path.join(folder, "pdu.cred")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write("user = admin\npassword = %s\ntoken = %s\n" % (SECRET, SECRET))
    return path


def words(folder, profile, outlet, url):
    return ["--profile", profile, "--outlet", outlet, "--url", url, "--credentials", credentials(folder),
            "--state-dir", os.path.join(folder, "state")]


def pdu(*args):
    done = subprocess.run([PLUGPULL, "pdu", *args], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_https():
    """A self-signed certificate is the normal case, so each way to trust one, and each not to."""
    with tempfile.TemporaryDirectory() as folder:
        ours = make_cert(folder, "ours", "IP:127.0.0.1")
        named = make_cert(folder, "named", "DNS:pdu.example")
        rows = [
            # served by, options, trusted
            (ours, [], False),
            (ours, ["--pin", ours[2]], True),
            (ours, ["--pin", named[2]], False),
            (ours, ["--pin", named[2], "--insecure"], False),
            (ours, ["--ca", ours[0]], True),
            (ours, ["--ca", named[0]], False),
            (ours, ["--ca", ours[0], "--pin", ours[2]], True),
            (ours, ["--ca", ours[0], "--pin", named[2]], False),
            (named, ["--ca", named[0]], False),
            (named, ["--pin", named[2]], True),
            (named, ["--insecure"], True),
        ]
        for (cert, key, _), options, trusted in rows:
            with Mock("tasmota") as mock, Tls(cert, key, mock.port) as tls:
                code, text = pdu("status", *words(folder, "tasmota", "1",
                                                  "https://127.0.0.1:%d" % tls.port), *options)
                check(str(options), (code == 0) == trusted, (code, text))
                check("nothing was said to who is not trusted", trusted or tls.passed == 0, options)
                check("it is said", ("not verified" in text) == ("--insecure" in options), text)
        with Mock("tasmota") as mock, Tls(ours[0], ours[1], mock.port) as tls:
            code, text = pdu("cycle", *words(folder, "tasmota", "1", "https://127.0.0.1:%d" % tls.port),
                             "--pin", ours[2], "--yes", "--off-time", "1")
            check("a cycle over https", code == 0 and mock.state() == [1, 1, 1], (code, text))
            code, text = pdu("status", *words(folder, "tasmota", "1", "http://127.0.0.1:%d" % tls.port))
            check("http to https is no state", code == 3, (code, text))


def family(pid):
    """The process, its children, and theirs: the guard leads a session of its own."""
    found = [pid]
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) in found:
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


def look_at(pids):
    """Command lines as everybody sees them; whether a core could be dumped."""
    lines = ""
    for pid in pids:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            lines += f.read().replace(b"\0", b" ").decode() + "\n"
        with open("/proc/%d/comm" % pid) as f:
            lines += f.read()
        owner = os.stat("/proc/%d/mem" % pid).st_uid
        with open("/proc/%d/coredump_filter" % pid) as f:
            f.read()
        lines += "owner %d\n" % owner
    return lines


def leaks(folder, text):
    encoded = [SECRET, base64.b64encode(("admin:" + SECRET).encode()).decode()]
    found = [s for s in encoded if s in text]
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            if name == "pdu.cred":
                continue
            with open(path, "rb") as f:
                data = f.read()
            found += [path for s in encoded if s.encode() in data]
    return found


def one_leaks_nothing(dialect, outlet):
    with tempfile.TemporaryDirectory() as folder, Mock(dialect) as mock:
        process = subprocess.Popen(
            [PLUGPULL, "pdu", "cycle", *words(folder, dialect, outlet,
                                              "http://127.0.0.1:%d" % mock.port),
             "--yes", "--off-time", "2", "--record", os.path.join(folder, "record.jsonl")],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline = time.monotonic() + 60
        while mock.state()[0] and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        check("%s goes off" % dialect, mock.state()[0] == 0)
        pids = family(process.pid)
        seen = look_at(pids)
        check("%s: there is a guard" % dialect, len(pids) >= 2 and "guard" in seen, seen)
        # The state folder now, with the journal's entry, and at the end.
        check(dialect, not leaks(folder, seen), leaks(folder, seen))
        text = process.communicate(timeout=120)[0]
        check("%s: done" % dialect, process.returncode == 0 and mock.state()[0] == 1, text)
        check(dialect, not leaks(folder, text), leaks(folder, text))
        with open(os.path.join(folder, "record.jsonl")) as f:
            check("%s has a record" % dialect, len([json.loads(line) for line in f]) >= 4)


def test_no_secret_anywhere():
    # Each takes its ten seconds off, or thirty: all at once.
    with ThreadPoolExecutor(len(DIALECTS)) as pool:
        for done in [pool.submit(one_leaks_nothing, *row) for row in DIALECTS]:
            done.result()


def test_no_core():
    """A process that holds a secret leaves no core, whatever the limits say."""
    with tempfile.TemporaryDirectory() as folder, Mock("shelly-gen2") as mock:
        def allow():
            import resource
            resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        process = subprocess.Popen(
            [PLUGPULL, "pdu", "cycle", *words(folder, "shelly-gen2", "1",
                                              "http://127.0.0.1:%d" % mock.port), "--yes",
             "--off-time", "60"], cwd=folder, preexec_fn=allow, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while mock.state()[0] and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGABRT)
        _, status = os.waitpid(process.pid, 0)
        process.returncode = -1
        check("killed", os.WIFSIGNALED(status))
        check("no core", not os.WCOREDUMP(status) and not glob.glob(folder + "/core*"), status)
        deadline = time.monotonic() + 60
        while not mock.state()[0] and time.monotonic() < deadline:
            time.sleep(0.02)
        check("the guard turned it on", mock.state()[0] == 1)
        while family_of_guard(folder) and time.monotonic() < deadline:
            time.sleep(0.05)


def family_of_guard(folder):
    """A guard that still lingers holds its log."""
    for path in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(path).startswith(folder):
                return True
        except OSError:
            pass
    return False


def test_witness_and_refusals():
    with tempfile.TemporaryDirectory() as folder, Mock("gude") as mock:
        at = words(folder, "gude", "1", "http://127.0.0.1:%d" % mock.port) + ["--yes", "--min-on", "0",
                                                                            "--off-time", "1"]
        code, text = pdu("off", *at, "--alive", "cmd:true", "--hold-up", "1")
        check("contradicted", code == 3 and "did not fall silent" in text and mock.state()[0] == 1, text)
        code, text = pdu("off", *at, "--alive", "cmd:false", "--hold-up", "1")
        check("dead before", code == 2 and mock.state()[0] == 1, text)
        code, text = pdu("off", *at, "--alive", "tcp:127.0.0.1:%d" % mock.port)
        check("the switch itself", code == 2 and "are one" in text and mock.state()[0] == 1, text)
        code, text = pdu("off", *at)
        check("no witness is said", code == 0 and "no witness" in text and mock.state()[0] == 0, text)
        code, text = pdu("on", *at)
        check("on", code == 0 and mock.state()[0] == 1, text)
        code, text = pdu("prove", *at)
        check("prove needs --alive", code == 2 and "--alive" in text, text)
        code, text = pdu("unit", "--state-dir", "/var/lib/plugpull")
        check("a unit", code == 0 and "ExecStart=" in text and
              "pdu recover --state-dir /var/lib/plugpull" in text, text)


def test_words():
    """What a person gets wrong first is told before anything is switched."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "relay.ini")
        text = "[profile]\nname = relay\ntransport = exec\ncuts = mains\noutlet = ^1$\n"
        for request in "off", "on", "status":
            text += "[%s]\nargv = {program} {{id}} %s\n" % (request, request)
        text += "state_regex = ^(on|off)$\non = on\noff = off\n"
        for program, good in (("./relay.sh", False), ("bin/relay", False), ("relay.sh", True),
                              ("/opt/relay", True)):
            with open(name, "w", encoding="ascii") as f:
                f.write(text.format(program=program))
            code, out = pdu("check", name)
            check("a program that the guard finds: " + program, (code == 0) == good, out)
            check("says what to write", good or "whole path" in out, out)
        code, out = pdu("recover", "--state-dir", folder)
        check("an empty journal is told", code == 0 and "journal is empty" in out, out)
        code, out = pdu("prove", "--profile", name, "--outlet", "1", "--alive", "foo", "--state-dir",
                        folder, "--yes")
        check("all ways to ask", code == 2 and "agent:KEYFILE" in out, out)


def main():
    if not MOCK or not os.path.exists(PLUGPULL):
        print("skip: build/plugpull and tests/pdu/mock_pdu are not built; run 'make all tests'")
        sys.exit(77)
    if not shutil.which("openssl"):
        print("skip: no openssl")
        sys.exit(77)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        os.environ.pop(name, None)
    tests = (test_words, test_https, test_witness_and_refusals, test_no_core, test_no_secret_anywhere)
    with ThreadPoolExecutor(len(tests)) as pool:  # mostly they wait for an outlet's time off
        for test, done in [(t, pool.submit(t)) for t in tests]:
            done.result()
            print("ok:", test.__name__)


if __name__ == "__main__":
    main()
