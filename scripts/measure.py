#!/usr/bin/env python3
"""Measures what docs/performance.md says of whole runs, as ratios within one run of this script.

    scripts/measure.py BINARY FEED SHUFFLED [--runs N] [--disk FOLDER]

BINARY is target/release/firstseen; FEED and SHUFFLED come from `make_feed` and `make_feed --shuffle`. What is compared
takes turns, and each figure is a median. Everything is in RAM but what the part on the disk writes. Needs gzip,
zstd and taskset.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def alternate(runs, ways, rest=()):
    """The median seconds of each way, taken in turns. What is left of the one before is removed first, untimed."""
    seconds = {name: [] for name in ways}
    for _ in range(runs):
        for name, way in ways.items():
            for path in rest:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
            began = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(of_way) for name, of_way in seconds.items()}


def command(*words, stdout=subprocess.DEVNULL):
    return lambda: subprocess.run(words, check=True, stdout=stdout)


def dedup(binary, feed, output, *options, before=()):
    return command(*before, binary, "dedup", feed, "--quiet", "-o", output, *options)


def at_once(*ways):
    """Independent commands side by side."""

    def run():
        with ThreadPoolExecutor(len(ways)) as pool:
            list(pool.map(lambda way: way(), ways))

    return run


def write_and_sync(data, path):
    """What the disk takes for the bytes alone."""

    def run():
        with open(path, "wb") as file:
            file.write(data)
            os.fsync(file.fileno())

    return run


def cores(options, folder):
    """With one worker thread, reading and writing still have another core; bound to one core, they have not. Two runs
    that share nothing, each on a core of its own, show how much the machine itself has to give for a second core."""
    kinds = {"usual": options.feed, "shuffled": options.shuffled}
    ways = {}
    for kind, feed in kinds.items():
        one = ("--threads", "1")
        bound = [
            dedup(options.binary, feed, folder / f"out{core}", *one, before=("taskset", "-c", str(core)))
            for core in (0, 1)
        ]
        ways[kind, "core"], ways[kind, "apart"] = bound[0], at_once(*bound)
        ways[kind, "thread"] = dedup(options.binary, feed, folder / "out", *one)
        ways[kind, "two"] = dedup(options.binary, feed, folder / "out", "--threads", "2")
    seconds = alternate(options.runs, ways, [folder / name for name in ("out", "out0", "out1")])
    for kind in kinds:
        core, apart, thread, two = (seconds[kind, way] for way in ("core", "apart", "thread", "two"))
        print(f"{kind}: {core:.3f} s on one core, {thread:.3f} s with one worker thread, {two:.3f} s on two cores: ", end="")
        print(f"{core / two:.2f} times the rate of one core, {thread / two:.2f} times that of one worker; ", end="")
        print(f"two runs apart: {2 * core / apart:.2f} times the rate of one")
    print(f"shuffled at {seconds['usual', 'two'] / seconds['shuffled', 'two']:.2f} of the usual rate, on two cores")


def store(options, folder):
    output, remembered = folder / "out", folder / "store"
    for count in ("1", "2"):
        plain = (options.binary, options.feed, output, "--threads", count)
        ways = {"without": dedup(*plain), "with": dedup(*plain, "--store", remembered, "--run-id", "night")}
        seconds = alternate(2 * options.runs, ways, [output, remembered])
        ratio = seconds["with"] / seconds["without"]
        print(f"an empty store, {count} threads: {ratio:.2f} of the time without ({seconds['without']:.3f} s)")


def compressed(options, folder):
    for tool, ending, unpack in (("gzip", ".gz", ("zcat",)), ("zstd", ".zst", ("zstd", "-dc", "-q"))):
        packed = folder / f"feed.jsonl{ending}"
        with open(packed, "wb") as file:
            command(tool, "-c", options.feed, stdout=file)()
        ways = {"alone": command(*unpack, packed), "dedup": dedup(options.binary, packed, folder / "out")}
        seconds = alternate(options.runs, ways, [folder / "out"])
        ratio = seconds["alone"] / seconds["dedup"]
        print(f"{tool}: {unpack[0]} {seconds['alone']:.3f} s, dedup {seconds['dedup']:.3f} s: {ratio:.2f} of its rate")


def disk(options, folder):
    reference = folder / "reference"
    dedup(options.binary, options.feed, reference)()
    data = reference.read_bytes()
    reference.unlink()
    with tempfile.TemporaryDirectory(dir=options.disk) as on_disk:
        in_memory, on_disk = folder / "out", Path(on_disk) / "out"
        ways = {
            "compute": dedup(options.binary, options.feed, in_memory),
            "disk": write_and_sync(data, on_disk),
            "both": dedup(options.binary, options.feed, on_disk),
        }
        seconds = alternate(options.runs, ways, [in_memory, on_disk])
    compute, alone, both = (seconds[name] for name in ("compute", "disk", "both"))
    print(f"on disk: compute {compute:.3f} s, the output alone {alone:.3f} s, both {both:.3f} s: ", end="")
    print(f"{both / max(compute, alone):.2f} of the larger")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("feed", type=Path)
    parser.add_argument("shuffled", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--disk", default=".", help="a folder on the disk to measure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for part in (cores, store, compressed, disk):
            part(options, Path(folder))


if __name__ == "__main__":
    main()
