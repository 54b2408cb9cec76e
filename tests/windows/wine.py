# SPDX-License-Identifier: MIT
"""
Windows programs under Wine, for the tests in this folder: a folder and a Wine prefix of the test's own,
both gone at the end, Wine's server included.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests"))
import janitor  # noqa: E402

HOST = subprocess.run([os.environ.get("CC", "gcc").split()[0], "-dumpmachine"], capture_output=True,
                      text=True).stdout.strip()
HOST_TESTS = os.path.join(TOP, "build", f"{HOST}-release", "tests", "windows")
WINDOWS_TESTS = os.path.join(TOP, "build", "x86_64-w64-mingw32-release", "tests", "windows")
DUT = os.path.join(TOP, "build", "plugpull-dut.exe")
WINE = next((w for w in ("/usr/lib/wine/wine64", shutil.which("wine64") or "", shutil.which("wine") or "")
             if w and os.access(w, os.X_OK)), None)
SERVER = next((w for w in ("/usr/lib/wine/wineserver64", shutil.which("wineserver") or "")
               if w and os.access(w, os.X_OK)), None)
WAIT_S = 60


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def check(what, holds):
    if not holds:
        raise AssertionError(what)


def need_windows():
    """The programs, built now if they are not there; skips where compiler or Wine is missing."""
    if not shutil.which("x86_64-w64-mingw32-gcc"):
        skip("no x86_64-w64-mingw32-gcc (gcc-mingw-w64-x86-64)")
    if not WINE or not SERVER:
        skip("no wine64")
    made = subprocess.run(["make", "-C", TOP, "windows"], capture_output=True, text=True)
    check(f"make windows: {made.stdout}{made.stderr}", made.returncode == 0)
    check(f"make windows warns: {made.stderr}", "warning" not in made.stderr)


class Wine:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="pp-wine-")
        self.prefix = os.path.join(self.dir, "prefix")
        janitor.watch(self.dir, "WINEPREFIX")
        self.env = dict(os.environ, WINEPREFIX=self.prefix, TMPDIR=self.dir, WINEDEBUG="-all",
                        WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe=")
        self.started = []
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: sys.exit(130))

    def __enter__(self):
        try:
            subprocess.run([WINE, "wineboot", "-i"], env=self.env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=180, check=True)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for p in self.started:
            if p.poll() is None:
                p.kill()
                p.wait()
        janitor.end(self.dir, "WINEPREFIX")

    def stop_server(self):
        """As a cut ends it; the next program boots it anew."""
        for option in ("-k", "-w"):
            subprocess.run([SERVER, option], env=self.env, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        # A server that was slow was killed by -k, and nobody ended what waits for its answers.
        janitor.kill(self.dir, "WINEPREFIX")

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def drive(self, letter, serial):
        """A folder that is drive LETTER: with this serial number (eight hex digits); the folder."""
        folder = self.path("drive-" + letter)
        os.makedirs(os.path.join(folder, "plugpull"))
        with open(os.path.join(folder, ".windows-serial"), "w") as f:
            f.write(serial + "\n")
        os.symlink(folder, os.path.join(self.prefix, "dosdevices", letter + ":"))
        return folder

    def run(self, program, *args, timeout=WAIT_S):
        return subprocess.run([WINE, program, *args], env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=timeout)

    def start(self, program, *args, **more):
        self.started.append(subprocess.Popen([WINE, program, *args], env=self.env,
                                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                             stderr=subprocess.STDOUT, **more))
        return self.started[-1]
