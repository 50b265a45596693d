#!/usr/bin/env python3
"""What compare_peers.sh needs Python for: to run a peer, to be one, and to print the table.

    peers.py measure --results FILE --output FILE [options] PEER -- COMMAND...
    peers.py duckdb|polars [--threads N] INPUT OUTPUT
    peers.py version duckdb|polars
    peers.py table --results FILE --feed JSON [options]
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

# In the order of the table, with what decides there that two lines are one event.
PEERS = {
    "firstseen": "canonical events",
    "reference": "canonical events",
    "DuckDB": "typed values, not rounded",
    "Polars": "typed values, not rounded",
    "huniq": "raw bytes",
    "sort": "raw bytes",
    "awk": "raw bytes",
}
# These have to keep the unique events of the feed and no other.
EXACT = ("firstseen", "reference")

# The members of the feed's events that say something, and those that a delivery adds.
PAYLOAD = ("type", "geometry", "properties")
ENVELOPE = ("delivery_id", "received_at", "attempt")

NOTES = """\
A redelivery has another envelope, and mostly other white space, order or number formatting: peers
that compare raw bytes find none. Those that compare typed values find all but the ones whose
numbers have drifted, since they do not round.
Only firstseen, the reference, huniq and awk keep the first lines as they are and in order; Polars
keeps the order, but writes the events anew; DuckDB writes them anew, and any one of equal events;
sort orders by bytes. Memory counts the pages of a mapped input file, where a peer maps it; times of
DuckDB, Polars and the reference include the start of Python."""


def measure(args):
    """Runs one command and appends its figures as a line of JSON."""
    stdin = open(args.stdin, "rb") if args.stdin else subprocess.DEVNULL
    with tempfile.TemporaryFile() as errors:
        stdout = open(args.output, "wb") if args.stdout else subprocess.DEVNULL
        began = time.perf_counter()
        process = subprocess.Popen(args.command, stdin=stdin, stdout=stdout, stderr=errors)
        # Unlike RUSAGE_CHILDREN, this is the usage of this child alone. It counts from the fork,
        # so nothing shows less than this small interpreter.
        _, status, usage = os.wait4(process.pid, 0)
        if args.sync and os.path.exists(args.output):
            with open(args.output, "rb") as output:
                os.fsync(output.fileno())
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        result = {"peer": args.peer, "seconds": seconds, "kept": 0, "peak_kib": usage.ru_maxrss}
        if process.returncode == 0:
            result["kept"] = count_lines(args.output)
        else:
            errors.seek(0)
            said = errors.read().decode(errors="replace").split("\n")
            words = [line.strip() for line in said if line.strip()]
            result["error"] = words[-1] if words else f"exit code {process.returncode}"
    # Every run begins without an old output, which would have to be replaced.
    if os.path.exists(args.output):
        os.remove(args.output)
    with open(args.results, "a") as results:
        results.write(json.dumps(result) + "\n")


def count_lines(name):
    with open(name, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def dedup_duckdb(args):
    import duckdb

    # With the types given, nothing is guessed from a sample, and numbers are parsed once.
    columns = {
        "type": "VARCHAR",
        "geometry": 'STRUCT("type" VARCHAR, coordinates DOUBLE[])',
        "properties": "STRUCT(sensor_id VARCHAR, metric VARCHAR, reading DOUBLE, battery BIGINT,"
                      " observed_at VARCHAR, seq BIGINT)",
        "delivery_id": "VARCHAR",
        "received_at": "BIGINT",
        "attempt": "BIGINT",
    }
    database = duckdb.connect(config={"threads": args.threads,
                                      "temp_directory": tempfile.gettempdir()})
    # This does not round, as that would take every number apart and cost time; so it keeps more
    # events than firstseen does: those redelivered with drift. Whole structs as the key were faster
    # than a list of their members. Without an ORDER BY, which would sort everything, it may keep any
    # of the equal events.
    database.execute(f"""
        COPY (
            SELECT DISTINCT ON ({", ".join(PAYLOAD)}) {", ".join(PAYLOAD + ENVELOPE)}
            FROM read_json({quoted(args.input)}, format = 'newline_delimited', columns = {columns})
        ) TO {quoted(args.output)} (FORMAT json)
    """)


def quoted(text):
    """A string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def dedup_polars(args):
    # Polars reads this when it is imported.
    os.environ["POLARS_MAX_THREADS"] = str(args.threads)
    import polars as pl

    schema = {
        "type": pl.String,
        "geometry": pl.Struct({"type": pl.String, "coordinates": pl.List(pl.Float64)}),
        "properties": pl.Struct({
            "sensor_id": pl.String, "metric": pl.String, "reading": pl.Float64,
            "battery": pl.Int64, "observed_at": pl.String, "seq": pl.Int64,
        }),
        "delivery_id": pl.String,
        "received_at": pl.Int64,
        "attempt": pl.Int64,
    }
    # It does not round either, see above. The streaming engine was the fastest of its ways to do
    # this, by a little.
    (pl.scan_ndjson(args.input, schema=schema)
     .unique(subset=PAYLOAD, keep="first", maintain_order=True)
     .sink_ndjson(args.output, engine="streaming"))


def version(args):
    began = time.perf_counter()
    module = importlib.import_module(args.package)
    seconds = time.perf_counter() - began
    print(f"{args.package} {module.__version__} (of its time, {seconds:.2f} s is the import)")


def table(args):
    """Prints the table; fails if a peer that has to be exact is not."""
    feed = json.loads(args.feed)
    runs = {}
    with open(args.results) as results:
        for line in results:
            result = json.loads(line)
            runs.setdefault(result["peer"], []).append(result)
    missing = dict(entry.split("=", 1) for entry in args.missing)
    median = {peer: statistics.median(run["seconds"] for run in done) for peer, done in runs.items()
              if not any("error" in run for run in done)}

    rows = [("peer", "runs", "wall s", "range s", "ratio", "events kept", "peak MiB",
             "what it compares")]
    for peer, compares in PEERS.items():
        done = runs.get(peer, [])
        if peer in median:
            ratio = f"{median[peer] / median['firstseen']:.2f}" if "firstseen" in median else "-"
            kept = " or ".join(f"{kept:,}" for kept in sorted({run["kept"] for run in done}))
            peak = max(run["peak_kib"] for run in done) / 1024
            # A wide range tells that the machine had other work to do.
            walls = [run["seconds"] for run in done]
            rows.append((peer, str(len(done)), f"{median[peer]:.2f}",
                         f"{min(walls):.2f}-{max(walls):.2f}", ratio, kept, f"{peak:,.0f}",
                         compares))
        else:
            error = next((run["error"] for run in done if "error" in run), None)
            why = f"failed: {error}" if error else f"missing: {missing.get(peer, 'not run')}"
            rows.append((peer, "0", "-", "-", "-", "-", "-", why))

    print(f"{feed['events']:,} events, {feed['unique']:,} of them unique, {args.kind}; wall seconds"
          " are the median of the runs, memory is the most of any\n")
    print_rows(rows)
    print(f"\n{NOTES}")

    wrong = []
    for peer in EXACT:
        done = runs.get(peer, [])
        for kept in {run["kept"] for run in done if "error" not in run} - {feed["unique"]}:
            wrong.append(f"{peer} kept {kept:,} events instead of {feed['unique']:,}")
        if peer not in median:
            wrong.append(f"{peer} did not run")
    if wrong:
        sys.exit("\ncompare_peers: " + "; ".join(wrong))
    print(f"\nfirstseen and the reference kept the {feed['unique']:,} unique events")


def print_rows(rows):
    """As a Markdown table, with figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    left = (0, len(widths) - 1)
    for index, row in enumerate(rows):
        cells = [cell.ljust(width) if column in left else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        print("| " + " | ".join(cells) + " |")
        if index == 0:
            rules = ["-" * width if column in left else "-" * (width - 1) + ":"
                     for column, width in enumerate(widths)]
            print("| " + " | ".join(rules) + " |")


def main():
    parser = argparse.ArgumentParser(description="The parts of compare_peers.sh in Python.")
    parts = parser.add_subparsers(required=True)

    part = parts.add_parser("measure")
    part.add_argument("--results", required=True)
    part.add_argument("--output", required=True)
    part.add_argument("--stdin", help="a file for the command's standard input")
    part.add_argument("--stdout", action="store_true", help="the command prints its output")
    part.add_argument("--sync", action="store_true", help="bring the output to disk, in its time")
    part.add_argument("peer", choices=PEERS)
    part.add_argument("command", nargs="+")
    part.set_defaults(run=measure)

    for name, run in (("duckdb", dedup_duckdb), ("polars", dedup_polars)):
        part = parts.add_parser(name)
        part.add_argument("--threads", type=int, default=2)
        part.add_argument("input")
        part.add_argument("output")
        part.set_defaults(run=run)

    part = parts.add_parser("version")
    part.add_argument("package", choices=("duckdb", "polars"))
    part.set_defaults(run=version)

    part = parts.add_parser("table")
    part.add_argument("--results", required=True)
    part.add_argument("--feed", required=True, help="what make_feed printed")
    part.add_argument("--kind", default="")
    part.add_argument("--missing", action="append", default=[], metavar="PEER=REASON")
    part.set_defaults(run=table)

    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
