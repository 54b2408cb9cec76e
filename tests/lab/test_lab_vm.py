#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The lab's rig `vm`, end to end.

Goal: what the campaign's verdicts rest on. A cut is silent, and loses what the drive's behaviour
says and nothing else; every way of stopping that is not a cut is told apart from one; nothing is
left behind, also when the lab is killed.
Method: `plugpull lab` with one drive of each behaviour, no agent. The PDU is worked by curl as any
client would, the guest by the lab's control socket. Nothing survives by luck (survive=0) and
nothing destages by itself (destage=0), so each outcome is certain.
Guards M5.1 (silence; a dead machine is not a dead writer), M5.3 (counters), M7.1, M7.2.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLUGPULL = os.environ.get("PLUGPULL", os.path.join(TOP, "build", "plugpull"))
WAIT_S = 120  # for what must happen; never a measure of speed


def skip(why):
    print("skip:", why)
    sys.exit(77)


def check(what, holds):
    if not holds:
        raise AssertionError(what)
    print("ok:", what)


class Lab:
    def __init__(self, *args):
        self.process = subprocess.Popen([PLUGPULL, "lab", "--until-eof", *args],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("the lab did not start")
        self.info = json.loads(line)
        self.run_dir = os.path.dirname(self.info["password_file"])
        with open(self.info["password_file"]) as f:
            self.password = f.read().strip()
        self.namespace = self.ask("state")["namespace"]

    def ask(self, command):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(WAIT_S)
            s.connect(self.info["control_socket"])
            s.sendall(command.encode() + b"\n")
            answer = b""
            while not answer.endswith(b"\n"):
                part = s.recv(65536)
                if not part:
                    raise AssertionError(f"no answer to '{command}'")
                answer += part
        return json.loads(answer)

    def done(self, command):
        answer = self.ask(command)
        if not answer["ok"]:
            raise AssertionError(f"{command}: {answer}")
        return answer

    def guest(self, command):
        answer = self.done("guest " + command)
        if answer["status"]:
            raise AssertionError(f"guest: {command}: {answer}")
        return answer["output"].strip()

    def http(self, path, body=None, password=None, user="admin"):
        """Status and JSON; the password goes by standard input, never on a command line."""
        config = f'url = "{self.info["pdu_url"]}{path}"\n'
        if password:
            config += f'digest\nuser = "{user}:{password}"\n'
        if body:
            text = json.dumps(body).replace('"', '\\"')
            config += f'header = "Content-Type: application/json"\ndata = "{text}"\n'
        out = subprocess.run(["curl", "-sS", "-w", "\n%{http_code}", "-K", "-"], input=config,
                             capture_output=True, text=True, check=True).stdout
        text, code = out.rsplit("\n", 1)
        return int(code), json.loads(text) if text else None

    def rpc(self, method, **params):
        code, answer = self.http("/rpc", {"id": 5, "method": method, "params": params},
                                 self.password)
        if code != 200:
            raise AssertionError(f"{method}: {code} {answer}")
        return answer

    def switch(self, on, **more):
        answer = self.rpc("Switch.Set", id=0, on=on, **more)
        if "result" not in answer:
            raise AssertionError(answer)

    def status(self):
        return self.rpc("Switch.GetStatus", id=0)["result"]

    def wait(self, what, holds):
        until = time.monotonic() + WAIT_S
        while not holds():
            if time.monotonic() > until:
                raise AssertionError("never happened: " + what)
            time.sleep(0.05)
        print("ok:", what)

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_S)


def leftovers(lab):
    found = []
    if lab.namespace in subprocess.run(["ip", "netns"], capture_output=True, text=True).stdout:
        found.append("namespace")
    if f'pp{lab.namespace.split("-")[2]}h' in os.listdir("/sys/class/net"):
        found.append("cable")
    if os.path.exists(lab.run_dir):
        found.append("run folder")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read()
        except OSError:
            continue
        if (lab.run_dir + "/").encode() in words and int(pid) != os.getpid():
            found.append("process " + words.replace(b"\0", b" ").decode(errors="replace")[:80])
    return found


# Device, behaviour, what the kernel is told, and what survives a cut of a synced (O_DIRECT and
# O_DSYNC: FUA and a flush on a raw device) and of an unsynced direct write.
DRIVES = [
    ("HON", "honest", ("1", "write back"), True, False),
    ("LIE", "ignores-both", ("1", "write back"), False, False),
    ("PLP", "protected", ("1", "write back"), True, True),
    ("HID", "hidden-cache", ("0", "write through"), False, False),
    ("IFL", "ignores-flush", ("1", "write back"), True, False),
    ("IFU", "ignores-fua", ("1", "write back"), True, False),
]
SYNCED, UNSYNCED = 0, 8  # blocks of 4096 bytes


# By its path, as /sbin/poweroff below: the shell of busybox prefers what it has built in.
def put(n, block, letter, flags):
    return (f"head -c 4096 /dev/zero | tr '\\0' {letter} | "
            f"/sbin/dd of=/dev/nbd{n} bs=4096 seek={block} iflag=fullblock oflag={flags} 2>/dev/null")


def get(lab, n, block):
    return lab.guest(f"/sbin/dd if=/dev/nbd{n} bs=4096 skip={block} count=1 iflag=direct 2>/dev/null"
                     " | head -c 1 | tr '\\0' 0")


def watch(lab):
    """A connection from the guest to this host that has carried something."""
    listener = socket.create_server((lab.info["listen_address"], 0))
    port = listener.getsockname()[1]
    lab.guest(f"(while echo x; do sleep 0.02; done | nc {lab.info['listen_address']} {port})"
              " </dev/null >/dev/null 2>&1 &")
    listener.settimeout(WAIT_S)
    connection, _ = listener.accept()
    listener.close()
    connection.settimeout(WAIT_S)
    check("the guest's words arrive", connection.recv(1) == b"x")
    return connection


def end_of(connection, quiet_s):
    """How a connection looks after it has been drained: silent, FIN or RST."""
    connection.settimeout(quiet_s)
    try:
        while connection.recv(65536):
            pass
        return "FIN"
    except ConnectionResetError:
        return "RST"
    except TimeoutError:
        return "silent"


def test_pdu(lab):
    code, who = lab.http("/shelly")
    check("identity is open", code == 200 and who["id"] == lab.info["pdu_id"] and who["auth_en"])
    check("status wants a password", lab.http("/rpc/Switch.GetStatus?id=0")[0] == 401)
    check("a wrong one is refused",
          lab.http("/rpc/Switch.GetStatus?id=0", password="wrong")[0] == 401)
    check("so is another user",
          lab.http("/rpc/Switch.GetStatus?id=0", password=lab.password, user="root")[0] == 401)
    check("an off without a password does nothing",
          lab.http("/rpc/Switch.Set?id=0&on=true")[0] == 401 and not lab.status()["output"])
    check("no such outlet", lab.rpc("Switch.Set", id=1, on=True)["error"]["code"] == -105)


def test_what_the_kernel_is_told(lab):
    for n, (serial, _, (fua, cache), _, _) in enumerate(DRIVES):
        queue = f"/sys/block/nbd{n}/queue"
        check(f"{serial}: backend, fua {fua}, {cache}",
              lab.guest(f"cat /sys/block/nbd{n}/backend {queue}/fua {queue}/write_cache")
              .split("\n") == [serial, fua, cache])


def smart(lab, n):
    log = json.loads(lab.guest(f"smartctl -j -x /dev/nbd{n}"))
    health = log["nvme_smart_health_information_log"]
    return log["serial_number"], health["power_cycles"], health["unsafe_shutdowns"]


def test_cut(lab):
    for n in range(len(DRIVES)):
        lab.guest(put(n, SYNCED, "S", "direct,dsync"))
        lab.guest(put(n, UNSYNCED, "U", "direct"))
    seen = lab.done("drive HON stat")["since_power_on"]
    check("FUA and FLUSH arrive as such", seen["fua_writes"] >= 1 and seen["flushes"] >= 1)
    check("an honest drive has something to lose", lab.done("drive HON stat")["dirty_bytes"] >= 4096)
    check("it draws power", lab.status()["apower"] > 10)
    connection = watch(lab)
    lab.switch(False)
    check("reads back off, no watts",
          lab.status()["output"] is False and lab.status()["apower"] == 0)
    check("the machine is gone", not lab.ask("state")["machine"])
    check("the wire is silent", end_of(connection, 3) == "silent")
    lab.switch(True)
    for n, (serial, behaviour, _, synced, unsynced) in enumerate(DRIVES):
        check(f"{behaviour}: synced {'kept' if synced else 'lost'}",
              get(lab, n, SYNCED) == ("S" if synced else "0"))
        check(f"{behaviour}: unsynced {'kept' if unsynced else 'lost'}",
              get(lab, n, UNSYNCED) == ("U" if unsynced else "0"))
        check(f"{serial}: its counters say so", smart(lab, n) == (serial, 2, 1))
    connection.close()


def test_fua_through_a_file_system(lab):
    """Overwrites of a pre-written file go out as FUA without a flush: that is where a drive that
    ignores FUA is seen, and where one that ignores FLUSH is not."""
    expected = ((0, "F"), (5, "0"), (4, "F"))
    for n, _ in expected:
        lab.done(f"drive {DRIVES[n][0]} behaviour honest")
        lab.guest(f"mkfs.ext4 -q -O ^metadata_csum /dev/nbd{n} && mkdir -p /mnt/{n} && "
                  f"mount /dev/nbd{n} /mnt/{n} && "
                  f"/sbin/dd if=/dev/zero of=/mnt/{n}/f bs=4096 count=16 2>/dev/null")
    lab.guest("sync")  # of all file systems: none may come between a lie and its cut
    for n, _ in expected:
        lab.done(f"drive {DRIVES[n][0]} behaviour {DRIVES[n][1]}")
        lab.guest(f"head -c 4096 /dev/zero | tr '\\0' F | /sbin/dd of=/mnt/{n}/f bs=4096 seek=3 "
                  "conv=notrunc iflag=fullblock oflag=direct,dsync 2>/dev/null")
    lab.switch(False)
    lab.switch(True)
    for n, kept in expected:
        check(f"{DRIVES[n][1]}: acked by FUA {'kept' if kept == 'F' else 'lost'}", lab.guest(
            f"mkdir -p /mnt/{n} && mount /dev/nbd{n} /mnt/{n} && /sbin/dd if=/mnt/{n}/f bs=4096 skip=3 "
            f"count=1 2>/dev/null | head -c 1 | tr '\\0' 0; umount /mnt/{n}") == kept)


def test_orderly(lab):
    before = smart(lab, 1)
    lab.guest(put(1, UNSYNCED, "V", "direct"))
    lab.guest("mkfs.ext4 -q /dev/nbd0 && mount /dev/nbd0 /mnt && echo kept >/mnt/f && "
              "(sleep 1000 </mnt/f >/dev/null 2>&1 &)")
    lab.guest("(sleep 0.2; /sbin/poweroff) </dev/null >/dev/null 2>&1 &")
    lab.wait("a guest that powers off ends the machine", lambda: not lab.ask("state")["machine"])
    check("the outlet stays on, and shows it", lab.status()["output"] and lab.status()["apower"] < 5)
    lab.switch(False)
    lab.switch(True)
    check("an orderly power-off keeps all, also on a liar", get(lab, 1, UNSYNCED) == "V")
    check("and unmounts what was still open", lab.guest(
        "e2fsck -fn /dev/nbd0 >/dev/null 2>&1 && mount -o ro /dev/nbd0 /mnt && cat /mnt/f; umount /mnt")
        == "kept")
    check("and is no unsafe shutdown", smart(lab, 1) == ("LIE", before[1] + 1, before[2]))


def test_file_systems(lab):
    """The kernel finds its modules by itself when a file system is mounted by its type."""
    for kind in ("xfs", "btrfs"):
        if shutil.which("mkfs." + kind, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            check(f"{kind} can be made and mounted", lab.guest(
                f"mkfs.{kind} -q -f /dev/nbd3 >/dev/null 2>&1 && mount -t {kind} /dev/nbd3 /mnt && "
                "echo yes >/mnt/f && cat /mnt/f && umount /mnt") == "yes")


def boot_id(lab):
    return lab.guest("cat /proc/sys/kernel/random/boot_id")


def test_reset(lab):
    before, first = smart(lab, 1), boot_id(lab)
    lab.guest(put(1, UNSYNCED, "W", "direct"))
    lab.done("reset")
    check("a reset is another boot", boot_id(lab) != first)
    check("but no power cycle", smart(lab, 1) == before)
    check("and loses nothing", get(lab, 1, UNSYNCED) == "W")


def test_lying_pdu(lab):
    first = boot_id(lab)
    lab.done("pdu welded")
    lab.switch(False)
    check("welded contacts read back off under load",
          lab.status()["output"] is False and lab.status()["apower"] > 10)
    check("and the machine lives", boot_id(lab) == first)
    lab.done("pdu none")
    lab.switch(True)
    lab.done("pdu ignores")
    lab.switch(False)
    check("a PDU that ignores reads back on", lab.status()["output"] is True)
    lab.done("pdu slow 1500")
    lab.switch(False)
    check("a slow one reads back off at once, and the machine lives",
          lab.status()["output"] is False and lab.ask("state")["machine"])
    lab.wait("the power follows", lambda: not lab.ask("state")["outlet"])
    lab.done("pdu none")


def test_timed_restore(lab):
    lab.switch(True)
    lab.switch(False, toggle_after=1)
    check("a timer is shown", lab.status().get("timer_duration") == 1)
    lab.wait("toggle_after brings the power back by itself", lambda: lab.status()["output"])
    check("and the machine", lab.ask("state")["machine"])


def test_changed_hardware(lab):
    lab.done("swap HON OTHER 67108864")
    lab.done("remove LIE")
    lab.switch(False)
    lab.switch(True)
    names = lab.guest("cat /sys/block/nbd*/backend | tr '\\n' ' '").split()
    check("another drive in its place, one gone", names == ["OTHER", "PLP", "HID", "IFL", "IFU"])
    check("a smaller one", lab.guest("blockdev --getsize64 /dev/nbd0") == "67108864")
    lab.switch(False)
    lab.done("no-boot 1")
    lab.switch(True)
    check("power without a boot", lab.ask("state")["outlet"] and not lab.ask("state")["machine"])
    lab.done("no-boot 0")
    lab.switch(False)


def test_not_a_cut(lab):
    """The negative control of the silence: a machine whose process dies says FIN or RST."""
    lab.switch(True)
    connection = watch(lab)
    lab.done("kill-machine")
    check("a killed machine is heard", end_of(connection, 30) in ("FIN", "RST"))
    connection.close()


def drive_options():
    options = []
    for serial, behaviour, _, _, _ in DRIVES:
        options += ["--drive", f"{serial},behaviour={behaviour},size=400M,destage=0,survive=0"]
    return options


def main():
    if os.geteuid():
        skip("needs root for a network namespace of its own")
    for tool in ("qemu-system-x86_64", "nbdkit", "busybox", "curl", "ip", "mke2fs"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            skip(f"no {tool}")
    if not os.access(PLUGPULL, os.X_OK):
        skip(f"no {PLUGPULL}")
    options = drive_options() + ["--dut", "none"]
    lab = Lab(*options)
    try:
        test_pdu(lab)
        start = time.monotonic()
        lab.switch(True)
        lab.guest("true")
        print(f"note: {time.monotonic() - start:.1f} s from power-on to a ready guest "
              f"({lab.info['accel']})")
        test_what_the_kernel_is_told(lab)
        test_cut(lab)
        test_fua_through_a_file_system(lab)
        test_file_systems(lab)
        test_orderly(lab)
        test_reset(lab)
        test_lying_pdu(lab)
        test_timed_restore(lab)
        test_changed_hardware(lab)
        test_not_a_cut(lab)
        check("it closes with 0", lab.close() == 0)
        check("nothing is left", leftovers(lab) == [])
        lab, other = Lab(*options), Lab(*options)
        try:
            lab.switch(True)
            other.switch(True)
            other.guest("true")
            other.process.send_signal(signal.SIGINT)
            check("one of two labs ends by ^C", other.process.wait(WAIT_S) == 0)
        finally:
            other.process.kill()
        check("it takes its own with it", leftovers(other) == [])
        lab.guest("true")
        check("there is something to leave behind", len(leftovers(lab)) > 3)
        lab.process.kill()
        lab.process.wait()
        lab.wait("nothing is left by a lab that was killed", lambda: leftovers(lab) == [])
    finally:
        if lab.process.poll() is None:
            lab.close()


if __name__ == "__main__":
    main()
