#!/usr/bin/env python3
"""Predicts the rate on many cores from what the stages cost on one.

    scripts/model.py BINARY FEED [--runs N]

Runs `BINARY dedup FEED` on one and on two threads in turn, with the output in RAM, and takes the medians of what
the reports say of the stages. Of those, workers share analysing, claiming and emitting; the writer has a thread
of its own, which waits for nothing but the workers; and the rest of a run on one thread is the serial part, in
which one thread takes batches, adds up counts and hands on what is to be written (Amdahl's law). So an event takes

    max(serial + shared / cores, write)

on so many cores. The second term is no matter of threads: the kernel lets one writer at a time into a file. The
prediction for two cores stands beside what two threads took, and is no result where it is off.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

CORES = (1, 2, 8, 32, 64)
# So many shards are claimed side by side.
SHARDS = 128
SHARED = ("analyse", "claim", "emit")


def run(binary, feed, threads, folder):
    """Seconds by stage, and the number of events."""
    report = folder / "report.json"
    command = [binary, "dedup", feed, "--quiet", "--threads", str(threads), "-o", folder / "out", "--report", report]
    subprocess.run(command, check=True)
    report = json.loads(report.read_text())
    return report["seconds"], report["total"]["events"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("feed")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()

    seconds = {1: [], 2: []}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for _ in range(options.runs):
            for threads, of_threads in seconds.items():
                of_run, events = run(options.binary, options.feed, threads, Path(folder))
                of_threads.append(of_run)

    def nanoseconds(threads, stage):
        return statistics.median(of_run[stage] for of_run in seconds[threads]) / events * 1e9

    one = {stage: nanoseconds(1, stage) for stage in seconds[1][0]}
    measured = {threads: nanoseconds(threads, "total") for threads in seconds}
    shared = sum(one[stage] for stage in SHARED)
    serial = max(0, one["total"] - one["publish"] - shared)

    print(f"{events:,} events, medians of {options.runs} runs, nanoseconds an event on one thread\n")
    print("| " + " | ".join((*SHARED, "serial", "write", "total")) + " |\n|" + "---:|" * 6)
    costs = [*(one[stage] for stage in SHARED), serial, one["write"], one["total"]]
    print("| " + " | ".join(f"{cost:.0f}" for cost in costs) + " |")
    print(f"\nThe serial part is {serial / (serial + shared):.1%}.\n")
    print("| cores | workers alone, million events/s | with one writer | measured |\n|---:|---:|---:|---:|")
    for cores in CORES:
        workers = serial + (one["analyse"] + one["emit"]) / cores + one["claim"] / min(cores, SHARDS)
        rates = [1e3 / workers, 1e3 / max(workers, one["write"])]
        if cores in measured:
            rates.append(1e3 / measured[cores])
        print(f"| {cores} | " + " | ".join(f"{rate:.2f}" for rate in rates) + (" |" if cores in measured else " | |"))


if __name__ == "__main__":
    main()
