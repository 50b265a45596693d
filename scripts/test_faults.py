#!/usr/bin/env python3
"""Faults from outside: kills, errors, full disks and power losses, in a night of a real store.

    test_faults.py [--binary PATH] [--only kill|error|full|power]

Runs `firstseen dedup --store` on small inputs and lets it come to harm:

  kill    SIGKILL before the N-th call of each file operation, for every N; and again, for every N, in the
          run that recovers from it (strace)
  error   EIO from the N-th fsync or close, ENOSPC from the N-th write, for every N (strace)
  full    a tmpfs of every size from too small to large enough (root)
  power   as kill, on an ext4 file system that loses at that moment what is not on its disk (root, loop
          devices, the ioctl EXT4_IOC_SHUTDOWN)

After each, the same night is run again, and then the next one. What must hold is said in `Nights.settle`:
no published file is ever incomplete, a night that ended with exit code 0 is there, and all nights together
published each event's first copy, once. What cannot run on this machine is printed, with the reason.
"""

import argparse
import fcntl
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# One call a line of strace's filter: counts are of one name each.
KILLED = ("openat", "write", "writev", "fsync", "rename", "unlink")
FAILED = (("fsync", "EIO"), ("close", "EIO"), ("write", "ENOSPC"), ("writev", "ENOSPC"))
# More calls of one name than a small night makes.
CALLS_MAX = 500
NIGHT = 2


class Skipped(Exception):
    """What cannot be tried here, and why."""


def event(number, night):
    """An event: each night's producer writes the same one with other white space."""
    pad = " " * (night % 3)
    return f'{{"id":{pad}{number},"text":{pad}"{str(number) * 200}"}}\n'.encode()


class Nights:
    """Three nights with overlaps, in a folder, of which the first has been run."""

    INPUTS = {1: range(0, 120), 2: range(60, 200), 3: [*range(0, 40), *range(150, 260)]}

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        folder.mkdir(exist_ok=True)
        self.inputs = Path(tempfile.mkdtemp(dir=folder.parent, prefix="inputs-"))
        self.log = self.inputs / "strace"
        seen, self.expected = set(), {}
        for night, numbers in self.INPUTS.items():
            copies = [event(number, night) for number in numbers for _ in range(2)]
            (self.inputs / str(night)).write_bytes(b"".join(copies))
            kept, rest = [], []
            for number in numbers:
                (rest if number in seen else kept).append(event(number, night))
                rest.append(event(number, night))
            self.expected[self.output(night)] = b"".join(kept)
            self.expected[self.duplicates(night)] = b"".join(rest)
            seen.update(numbers)

    def run(self, night, strace=()):
        """Runs a night, perhaps under strace with these options. Gives exit code and messages."""
        command = [self.binary, "dedup", "-q", "--threads", "1", "--store", self.folder / "store"]
        # Two protocols have two segments; two outputs have two names to be published under.
        command += ["--protocol", "feed-v1", "--also", "geojson-v1", "--duplicates", self.duplicates(night)]
        command += ["--run-id", f"night-{night}", self.inputs / str(night), "-o", self.output(night)]
        if strace:
            command = ["strace", "-f", "-qqq", "-o", self.log, *strace, *command]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert "panicked" not in run.stderr or "error during closedir" in run.stderr, run.stderr
        return run.returncode, run.stderr

    def output(self, night):
        return self.folder / "out" / f"{night}.jsonl"

    def duplicates(self, night):
        return self.folder / "out" / f"{night}.duplicates.jsonl"

    def is_injected(self):
        """Whether what strace was to do in the last run was done."""
        return "(INJECTED)" in self.log.read_text() or "+++ killed by SIGKILL" in self.log.read_text()

    def begin(self):
        """The state in which the night begins that comes to harm."""
        for path in self.folder.iterdir():
            if path.name != "lost+found":
                shutil.rmtree(path)
        (self.folder / "out").mkdir()
        code, messages = self.run(1)
        assert code == 0, messages
        os.sync()

    def look(self, code):
        """What holds at once, whatever has happened: the exit code is that of the night that came to harm."""
        for output in (self.output(NIGHT), self.duplicates(NIGHT)):
            if output.exists():
                assert output.read_bytes() == self.expected[output], f"{output} is incomplete"
            assert code != 0 or output.exists(), f"the night has ended well, and {output} is not there"
        for output in (self.output(1), self.duplicates(1)):
            assert output.read_bytes() == self.expected[output], "the night before is no longer what it was"

    def settle(self):
        """Runs the night again, and the next one, and compares all that was published with the oracle."""
        for night in (NIGHT, 3):
            code, messages = self.run(night)
            assert code == 0, f"night {night} after the fault: {messages}"
        for output, expected in self.expected.items():
            assert output.read_bytes() == expected, f"{output} is not what it must be"
        checked = subprocess.run([self.binary, "store", "verify", self.folder / "store"], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
        left = [path.name for path in self.folder.rglob("*") if path.name.endswith(".tmp")]
        assert not left, f"left behind: {left}"

    def state(self):
        """What is in the folder, but for contents: states that look the same recover in the same way."""
        hidden = re.compile(r"[0-9a-f]{8}\.tmp")
        files = (path for path in self.folder.rglob("*") if path.is_file() and path.name != "LOCK")
        return tuple(sorted((hidden.sub("", str(path)), path.stat().st_size) for path in files))


def calls(nights, what, fault, begin):
    """Runs the night with a fault at each call of that name, until there are no more calls."""
    for number in range(1, CALLS_MAX):
        begin()
        code, messages = nights.run(NIGHT, ["-e", f"trace={what}", "-e", f"inject={what}:{fault}:when={number}"])
        if not nights.is_injected():
            assert code == 0, messages
            return
        yield number, code, messages
    raise AssertionError(f"{what} was called more than {CALLS_MAX} times")


def need_strace():
    if not shutil.which("strace"):
        raise Skipped("strace is not installed")
    probe = subprocess.run(["strace", "-qqq", "-o", "/dev/null", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        raise Skipped(f"strace cannot trace here: {probe.stderr.strip()}")


def check_kills(nights):
    need_strace()
    kept, cases = {}, 0
    with tempfile.TemporaryDirectory(dir=nights.folder.parent) as copies:
        for what in KILLED:
            for number, code, messages in calls(nights, what, "signal=KILL", nights.begin):
                at = f"killed at {what} {number}"
                assert code in (0, -9, 137), f"{at}: {code} {messages}"
                within(at, nights.look, code)
                if nights.state() not in kept:
                    copy = Path(copies, str(len(kept)))
                    shutil.copytree(nights.folder, copy)
                    kept[nights.state()] = (copy, at)
                within(at, nights.settle)
                cases += 1
        again = sum(check_recovery(nights, copy, at) for copy, at in kept.values())
    # Killed in the folder of before the commit, after it, and with the output published, at the least.
    assert cases > 50 and len(kept) >= 5, (cases, kept)
    return f"{cases} kills that left {len(kept)} states, and {again} kills of what recovers from them"


def check_recovery(nights, copy, at):
    """Kills the run that recovers from a state, at each call."""

    def begin():
        shutil.rmtree(nights.folder)
        shutil.copytree(copy, nights.folder)

    cases = 0
    for what in KILLED:
        for number, code, _ in calls(nights, what, "signal=KILL", begin):
            again = f"{at}, and again at {what} {number}"
            within(again, nights.look, code)
            within(again, nights.settle)
            cases += 1
    return cases


def check_errors(nights):
    need_strace()
    cases = 0
    for what, error in FAILED:
        for number, code, messages in calls(nights, what, f"error={error}", nights.begin):
            at = f"{error} from {what} {number}"
            # 127 is the loader's, whose files are closed before the program begins. A folder that was read and
            # does not close, which no file system does, makes the standard library panic.
            told = code in (0, 127) or (code == 2 and messages.startswith("firstseen: "))
            assert told or "error during closedir" in messages, f"{at}: {code} {messages}"
            within(at, nights.look, code)
            within(at, nights.settle)
            cases += 1
    assert cases > 15, cases
    return f"{cases} failed calls"


def need_root():
    if os.geteuid() != 0:
        raise Skipped("only root mounts file systems")


def mount(*options):
    done = subprocess.run(["mount", *map(str, options)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skipped(f"nothing can be mounted here: {done.stderr.strip()}")


def unmount(folder):
    subprocess.run(["umount", folder], check=True, capture_output=True)


def check_full_disks(nights):
    need_root()
    kilobytes, page, failed = 4 * 1024, 4, 0
    mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", nights.folder)
    try:
        nights.begin()
        used = os.statvfs(nights.folder)
        used = (used.f_blocks - used.f_bfree) * used.f_frsize // 1024
        for size in range(used, kilobytes, page):
            nights.begin()
            mount("-o", f"remount,size={size}k", nights.folder)
            code, messages = nights.run(NIGHT)
            at = f"a disk of {size} kB"
            assert code == 0 or (code == 2 and "No space left" in messages), f"{at}: {code} {messages}"
            within(at, nights.look, code)
            mount("-o", f"remount,size={kilobytes}k", nights.folder)
            within(at, nights.settle)
            if code == 0:
                break
            failed += 1
    finally:
        unmount(nights.folder)
    assert failed >= 5 and code == 0, (failed, code)
    return f"{failed} sizes that are too small, and one that is not"


# From linux/fs.h and fs/ext4/ext4.h: _IOR('X', 125, __u32), and its flag for a journal that is not flushed.
EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2


class LossyDisk:
    """An ext4 file system in a file, mounted on a folder, whose power can be cut."""

    def __init__(self, folder):
        need_root()
        if not shutil.which("mkfs.ext4"):
            raise Skipped("mkfs.ext4 is not installed")
        self.folder, self.image = folder, folder.parent / "disk.ext4"
        with open(self.image, "wb") as image:
            image.truncate(32 << 20)
        subprocess.run(["mkfs.ext4", "-q", self.image], check=True)
        self.mount()

    def mount(self):
        # No commits of the journal but those that are asked for, within any run of this.
        mount("-o", "loop,commit=300", self.image, self.folder)

    def lose_power(self):
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        except OSError as error:
            raise Skipped(f"this ext4 does not lose power: {error}") from error
        finally:
            os.close(folder)
        unmount(self.folder)
        self.mount()


def check_power_losses(nights):
    need_strace()
    disk = LossyDisk(nights.folder)
    try:
        check_that_losses_are_seen(nights, disk)
        cases = 0
        for what in KILLED:
            for number, code, _ in calls(nights, what, "signal=KILL", nights.begin):
                at = f"power lost at {what} {number}"
                disk.lose_power()
                within(at, nights.look, code)
                within(at, nights.settle)
                cases += 1
    finally:
        unmount(nights.folder)
    assert cases > 50, cases
    return f"{cases} losses of power; with fsync made to do nothing, a loss was seen"


def check_that_losses_are_seen(nights, disk):
    """With an fsync that does nothing, the night must be lost: else this disk proves nothing."""
    nights.begin()
    code, messages = nights.run(NIGHT, ["-e", "trace=fsync", "-e", "inject=fsync:retval=0"])
    assert code == 0, messages
    disk.lose_power()
    try:
        nights.look(code)
    except AssertionError:
        return
    raise AssertionError("nothing was lost without fsync: this disk does not lose what it should")


def within(at, check, *arguments):
    """Runs a check; what it finds is said with where it was found."""
    try:
        check(*arguments)
    except AssertionError as error:
        raise AssertionError(f"{at}: {error}") from error


CHECKS = {
    "kill": ("SIGKILL at each call", check_kills),
    "error": ("EIO and ENOSPC", check_errors),
    "full": ("full disks", check_full_disks),
    "power": ("losses of power", check_power_losses),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/firstseen")
    parser.add_argument("--only", choices=CHECKS)
    arguments = parser.parse_args()
    binary = arguments.binary.resolve()
    failed = False
    for name, (title, check) in CHECKS.items():
        if arguments.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            try:
                print(f"{title}: {check(Nights(binary, Path(folder, 'nights')))}", flush=True)
            except Skipped as skipped:
                print(f"{title}: SKIPPED, {skipped}", flush=True)
            except AssertionError as error:
                print(f"{title}: FAILED, {error}", flush=True)
                failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
