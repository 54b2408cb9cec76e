#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The agent for Windows, under Wine, against a control host of this system (control.c).

Goal: the two programs speak to each other: greeting, authentication, HELLO and every order; what Wine
lacks is said, never made up. A wrong key is refused; a boot is told from the next; text and paths are
UTF-8 throughout.
Method: one Wine prefix; a folder stands for a drive, known by its volume's serial number. Waits have
deadlines, none is a measure of speed.

Guards M2.7, M5.2; design.md, section 7.
"""
import hashlib
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from wine import DUT, HOST_TESTS, TOP, WAIT_S, Wine, check, need_windows  # noqa: E402

CONTROL = os.path.join(HOST_TESTS, "control")
PLUGPULL = os.path.join(TOP, "build", "plugpull")
VOLUME = "volume.1A2B3C4D"


class Control:
    def __init__(self, wine, key, *words, port="0"):
        self.port_file = wine.path("port")
        if os.path.exists(self.port_file):
            os.unlink(self.port_file)
        self.process = subprocess.Popen([CONTROL, key, port, self.port_file, wine.dir, *words],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        wine.started.append(self.process)
        while not os.path.exists(self.port_file):
            check("control starts", self.process.poll() is None)
        with open(self.port_file) as f:
            self.port = f.read().strip()

    def answers(self):
        """WORD -> its lines."""
        out, err = self.process.communicate(timeout=3 * WAIT_S)
        check(f"control: {err}{out}", self.process.returncode == 0)
        found = {}
        for block in out.split("== ")[1:]:
            word, _, lines = block.partition("\n")
            found[word] = lines
        return found


def kv(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def talk(wine, key, words, *allow, name="Prüfling", own_key=None):
    control = Control(wine, key, *words)
    agent = wine.start(DUT, "agent", "--control", "127.0.0.1:" + control.port, "--key",
                       "Z:" + (own_key or key).replace("/", "\\"), "--name", name,
                       *(w for a in allow for w in ("--allow", a)))
    try:
        return control.answers()
    finally:
        agent.kill()
        agent.wait()


def make_key(path):
    subprocess.run([PLUGPULL, "key", path], check=True, capture_output=True)
    return path


def test_command_line(wine):
    said = wine.run(DUT, "--version")
    check(f"its version: {said}", said.returncode == 0 and said.stdout.startswith(b"plugpull-dut "))
    check("lines end as elsewhere", b"\r" not in said.stdout)
    said = wine.run(DUT, "agent", "--control", "127.0.0.1", "--key", "Z:\\no\\ключ", "--allow", "D:\\x")
    check(f"UTF-8 in and out: {said}", said.returncode == 2 and "Z:\\no\\ключ".encode() in said.stderr)
    for root in ("D:\\", "D:", "\\\\server\\share", "\\\\.\\PhysicalDrive0"):
        said = wine.run(DUT, "agent", "--control", "127.0.0.1", "--key", "x", "--allow", root)
        check(f"{root} is too much to allow: {said}", said.returncode == 2)


def test_hello(wine, key):
    seen = [kv(talk(wine, key, ["hello", "ping"], VOLUME)["hello"]) for _ in range(2)]
    hello = seen[0]
    with open(DUT, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    check(f"who it is: {hello}", hello["os"] == "windows" and hello["machine"] == "x86_64"
          and hello["name"] == "Prüfling" and hello["sha256"] == digest and hello["allow"] == VOLUME)
    check("Wine is named", re.fullmatch(r"Windows \d+\.\d+\.\d+ \(Wine .+\)", hello["kernel"]))
    check("a boot has one identity", re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
          hello["boot_id"]) and seen[1]["boot_id"] == hello["boot_id"])
    wine.stop_server()
    again = kv(talk(wine, key, ["hello"], VOLUME)["hello"])
    check("the next boot has another", again["boot_id"] != hello["boot_id"])


def test_wrong_key(wine, key):
    other = make_key(wine.path("other.key"))
    control = Control(wine, key, "hello")
    agent = wine.start(DUT, "agent", "--control", "127.0.0.1:" + control.port, "--key", "Z:" + other,
                       "--allow", VOLUME)
    line = agent.stdout.readline().decode()
    check(f"a wrong key is refused: {line}", "REFUSED" in line)
    agent.kill()
    agent.wait()
    control.process.kill()
    control.process.wait()
    os.chmod(other, 0o644)
    said = wine.run(DUT, "agent", "--control", "127.0.0.1", "--key", "Z:" + other, "--allow", VOLUME)
    check(f"a key that others can read is none: {said}", said.returncode == 2
          and b"open to other users" in said.stderr)


def test_identify(wine, key):
    found = talk(wine, key, ["hello", "identify=" + VOLUME, "smart=" + VOLUME, "identify=*",
                             "fails=identify=volume.00000000"], VOLUME)
    drive = kv(found["identify=" + VOLUME])
    check(f"a volume goes by its serial: {drive}", drive["serial"] == VOLUME and drive["name"] == "D:")
    check("what nobody told is not made up", drive["drive_cache"] == "unknown" and drive["fua"] == "no")
    check("and is among all", f"serial={VOLUME}\n" in found["identify=*"])
    check(f"no counters: {found}", found["smart=" + VOLUME].strip() == "")
    check("another serial is no drive", "no volume" in found["fails=identify=volume.00000000"])


def test_dialogue(wine, key, folder):
    """All that a campaign orders, on a folder of the volume."""
    where = "D:/plugpull"
    found = talk(wine, key, [
        "hello", f"target={VOLUME},{where}", "fails=run=fsync", "prove", "fails=prove",
        "prewrite", "sizes", "watch", "run=fsync", "fails=scan", "stop", "scan", "release",
        "prove", "run=open_datasync", "stop", "matrix=fsync", "release", "format",
        f"target=volume.00000001,{where}", "fails=check"], VOLUME)
    check("no run before the proof", "has not been proven" in found["fails=run=fsync"])
    check("one at a time", "release it first" in found["fails=prove"])
    check("another drive is not allowed", "not on this agent's allow list" in found["fails=check"])
    sizes = kv(found["sizes"])
    check(f"the file is there: {sizes}", sizes["file.0"] == str(4 << 20))
    stopped = kv(found["stop"])
    check(f"acks count: {stopped}", stopped["failed"] == "no" and int(stopped["acked"]) >= 200)
    check("no scan beside a run", "stop it first" in found["fails=scan"])
    with open(wine.path("scan.bin"), "rb") as f:
        scan = f.read()
    check("the scan is whole", scan.startswith(b"PPSCAN1\n") and len(scan) ==
          int(kv(found["scan"])["bytes"]))
    check(f"the matrix has a row: {found['matrix=fsync']}", "method=fsync\n" in found["matrix=fsync"])
    check("nothing is formatted", "state=refused" in found["format"])
    check("the target's file is in the folder", os.path.getsize(
        os.path.join(folder, "plugpull", "plugpull.target")) == 4 << 20)


def test_record_files(wine, key, folder, workload):
    """A file for each record, by new names or by renames over older ones."""
    os.mkdir(os.path.join(folder, workload))
    os.unlink(wine.path("ledger.0"))
    found = talk(wine, key, [
        "hello", f"target={VOLUME},D:/{workload}", f"workload={workload}", "prove", "prewrite", "run=fsync",
        "stop", "scan", "release"], VOLUME)
    stopped = kv(found["stop"])
    check(f"{workload}: acks count: {stopped}", stopped["failed"] == "no" and int(stopped["acked"]) >= 200)
    with open(wine.path("scan.bin"), "rb") as f:
        check(f"{workload}: the scan is whole", len(f.read()) == int(kv(found["scan"])["bytes"]))
    names = [n for _, _, files in os.walk(os.path.join(folder, workload)) for n in files]
    base, made = (1024, 0) if workload == "rename" else (2, int(stopped["acked"]))
    check(f"{workload}: a file a record, none beside: {len(names)}, {stopped}", base + made <= len(names)
          <= base + (2 if workload == "rename" else int(stopped["issued"])))
    check(f"{workload}: no probe is left: {names}", "plugpull-probe.tmp" not in names)


def test_service(wine, key):
    """Installed once, it comes back at the next boot before anybody logs on; then it is taken away."""
    words = ["hello", "ping"]
    # Wine ends its services with the last program that is none.
    stays = wine.start("ping", "-n", "300", "127.0.0.1")
    control = Control(wine, key, *words)
    said = wine.run(DUT, "agent", "--control", "127.0.0.1:" + control.port, "--key", "Z:" + key,
                    "--allow", VOLUME, "--name", "a name", "--install")
    check(f"it installs: {said}", said.returncode == 0)
    first = kv(control.answers()["hello"])
    check(f"the service runs: {first}", first["name"] == "a name" and first["allow"] == VOLUME)
    said = wine.run(DUT, "agent", "--control", "127.0.0.1", "--key", "Z:" + key, "--allow", VOLUME,
                    "--install")
    check(f"not twice: {said}", said.returncode == 2 and b"installed already" in said.stderr)
    wine.stop_server()
    control = Control(wine, key, *words, port=control.port)
    stays.wait()
    stays = wine.start("ping", "-n", "300", "127.0.0.1")
    again = kv(control.answers()["hello"])
    check("the next boot starts it", again["name"] == "a name" and again["boot_id"] != first["boot_id"])
    said = wine.run(DUT, "agent", "--uninstall")
    check(f"it goes: {said}", said.returncode == 0)
    said = wine.run(DUT, "agent", "--uninstall")
    check(f"and is gone: {said}", said.returncode == 2 and b"nothing is installed" in said.stderr)
    stays.kill()
    stays.wait()


def main():
    need_windows()
    with Wine() as wine:
        key = make_key(wine.path("agent.key"))
        folder = wine.drive("d", VOLUME[-8:])
        test_command_line(wine)
        test_hello(wine, key)
        test_wrong_key(wine, key)
        test_identify(wine, key)
        test_dialogue(wine, key, folder)
        for workload in ("create", "create-nodir", "rename"):
            test_record_files(wine, key, folder, workload)
        test_service(wine, key)


if __name__ == "__main__":
    main()
