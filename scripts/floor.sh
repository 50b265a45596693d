#!/usr/bin/env bash
#
# Prints a run as a ratio to what it cannot do without: reading every byte of a feed, hashing every canonical
# form, inserting every key and writing every kept byte, each alone and by the fastest way known.
#
#     scripts/floor.sh [--events N] [--shuffle]
#
# All is measured in one run of benches/floor.rs, on one feed, with feed and output in RAM; each figure is the
# median of ten samples. Needs cargo and python3.

set -euo pipefail

events=1000000
shuffle=()
while (($# > 0)); do
    case $1 in
        --events) events=${2-} && shift ;;
        --shuffle) shuffle=(--shuffle) ;;
        *) echo "usage: floor.sh [--events N] [--shuffle]" >&2 && exit 2 ;;
    esac
    shift || true
done
[[ $events =~ ^[1-9][0-9]*$ ]] || { echo "floor.sh: --events takes a number" >&2 && exit 2; }

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(mktemp -d /dev/shm/floor.XXXXXX)
trap 'rm -rf -- "$folder"' EXIT

cargo build --release --quiet --example make_feed
readonly target=${CARGO_TARGET_DIR:-$PWD/target}
made=$("$target/release/examples/make_feed" --events "$events" "${shuffle[@]}" -o "$folder/feed.jsonl")
rm -rf "$target/criterion/floor"
FLOOR_FEED=$folder/feed.jsonl TMPDIR=$folder cargo bench --quiet --bench floor -- --quiet >"$folder/log" 2>&1 ||
    { tail -n 20 "$folder/log" >&2 && exit 1; }
python3 - "$target/criterion/floor" "$events" <<'EOF'
import json
import sys

folder, events = sys.argv[1], int(sys.argv[2])
parts = ("read", "hash", "insert", "write")


def nanoseconds(stage, threads):
    """The median, by event."""
    with open(f"{folder}/{stage}/{threads}/new/estimates.json") as file:
        return json.load(file)["median"]["point_estimate"] / events


rows = {stage: [nanoseconds(stage, threads) for threads in (1, 2)] for stage in (*parts, "run")}
rows["floor"] = [sum(rows[stage][column] for stage in parts) for column in (0, 1)]
print(f"{events:,} events; nanoseconds an event\n\n| | 1 thread | 2 threads |\n|---|---|---|")
for stage in (*parts, "floor", "run"):
    print(f"| {stage} | {rows[stage][0]:.0f} | {rows[stage][1]:.0f} |")
ratios = [run / floor for run, floor in zip(rows["run"], rows["floor"])]
print(f"| run / floor | {ratios[0]:.2f} | {ratios[1]:.2f} |")
print(f"\ntwo threads are {rows['run'][0] / rows['run'][1]:.2f} times as fast as one")
EOF
echo "$made" >&2
