#!/usr/bin/env bash
#
# Compares firstseen with other ways to drop duplicates from one and the same feed.
#
#     scripts/compare_peers.sh [--events N] [--runs R] [--on-disk]
#
# Prints the machine and a table: wall seconds (median of R runs), events kept, and peak memory of
# each peer. Exits with 1 if firstseen or the reference does not keep just the unique events.
#
# The feed and all outputs are in RAM, as only firstseen brings its output to disk before it ends,
# and this is no measurement of the disk. With --on-disk they are on disk, and every peer's time
# includes that its output is brought there.
#
# Needs cargo and python3. DuckDB, Polars and huniq are installed under target/peers, and stay there
# for the next time; one that cannot be had is in the table as missing.

set -euo pipefail

# All peers that can work in parallel get the same number of threads.
readonly THREADS=2
# What a feed and the largest output and temporary of a peer take, generously, for each event.
readonly BYTES_PER_EVENT=1000

usage() {
    echo "usage: compare_peers.sh [--events N] [--runs R] [--on-disk]" >&2
    exit 2
}

die() {
    echo "compare_peers.sh: $1" >&2
    exit 1
}

events=1000000
runs=3
on_disk=false
while (($# > 0)); do
    case $1 in
        --events) events=${2-} && shift ;;
        --runs) runs=${2-} && shift ;;
        --on-disk) on_disk=true ;;
        *) usage ;;
    esac
    # Fails if the value of an option is not there.
    shift || usage
done
[[ $events =~ ^[1-9][0-9]*$ && $runs =~ ^[1-9][0-9]*$ ]] || usage

cd "$(dirname "${BASH_SOURCE[0]}")/.."
for tool in cargo python3; do
    command -v "$tool" >/dev/null || die "needs $tool"
done
readonly peers=$PWD/target/peers
readonly python=$peers/python/bin/python
mkdir -p "$peers"

# Where the feed, the outputs and the temporaries of this run are.
if $on_disk; then
    folder=$(mktemp -d "$PWD/target/compare.XXXXXX")
    kind="on disk"
else
    [[ -d /dev/shm ]] || die "has no /dev/shm to work in: try --on-disk"
    folder=$(mktemp -d /dev/shm/compare.XXXXXX)
    kind="in memory"
fi
trap 'rm -rf -- "$folder"' EXIT
free=$(df --output=avail --block-size=1 "$folder" | tail -n 1)
((free > events * BYTES_PER_EVENT)) ||
    die "has $((free >> 20)) MiB of room $kind, too little for $events events"

# --- Get everything --------------------------------------------------------------------------------

declare -A missing

# Runs a command silently; if it fails, notes its last words as the reason why a peer is missing.
get() {
    local peer=$1
    shift
    if ! "$@" >"$folder/get.log" 2>&1 </dev/null; then
        # pip warns of its own age after the error, which would hide what went wrong.
        missing[$peer]="$(grep -v -e '^$' -e notice "$folder/get.log" | tail -n 1 || true)"
        missing[$peer]=${missing[$peer]:-"$1 failed"}
        return 1
    fi
}

# Installs a Python package, unless it is there since an earlier run.
get_package() {
    local peer=$1 package=$2
    "$python" -c "import $package" 2>/dev/null ||
        { { [[ -x $python ]] || get "$peer" python3 -m venv "$peers/python"; } &&
            get "$peer" "$python" -m pip install --quiet "$package"; } || true
}

echo "building firstseen and its peers ..." >&2
cargo build --release --quiet --bin firstseen --example make_feed
readonly built=${CARGO_TARGET_DIR:-$PWD/target}/release
get_package DuckDB duckdb
get_package Polars polars
[[ -x $peers/bin/huniq ]] || get huniq cargo install --quiet --locked huniq --root "$peers" || true
for tool in sort awk; do
    command -v "$tool" >/dev/null || missing[$tool]="not installed"
done

readonly feed=$folder/feed.jsonl
readonly results=$folder/results.jsonl
readonly output=$folder/output.jsonl
made=$("$built/examples/make_feed" --events "$events" -o "$feed")
# What is still to be written of the feed would go to disk in the first peer's time.
sync "$feed"

# --- Say what is compared --------------------------------------------------------------------------

# The first line of what a command prints, as far as it prints any.
first_line() {
    { "$@" 2>&1 </dev/null || true; } | sed -n 1p
}

say() {
    local peer=$1
    shift
    [[ -v missing[$peer] ]] || printf '%-10s %s\n' "$peer" "$(first_line "$@")"
}

model=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | sed -n 1p)
load=$(cut -d ' ' -f 1 /proc/loadavg)
memory=$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)
printf '%-10s %s\n' machine \
    "${model:-$(uname -m)}, $(nproc) cores, $((memory >> 20)) GiB of memory, load $load before the first run"
say firstseen "$built/firstseen" --version
say reference python3 --version
say DuckDB "$python" scripts/peers.py version duckdb
say Polars "$python" scripts/peers.py version polars
say huniq "$peers/bin/huniq" --version
say sort sort --version
# Which awk it is makes a difference. Not every awk knows -W version, but each has a name.
say awk echo "$(basename "$(readlink -f "$(command -v awk || true)")") ($(first_line awk -W version))"
echo

# --- Run everything --------------------------------------------------------------------------------

# measure PEER [OPTION]... -- COMMAND...: runs a peer once and adds the figures to the results.
measure() {
    local peer=$1
    shift
    [[ ! -v missing[$peer] ]] || return 0
    echo "round $round of $runs: $peer ..." >&2
    local sync=()
    ! $on_disk || sync=(--sync)
    python3 scripts/peers.py measure --results "$results" --output "$output" "${sync[@]}" "$peer" "$@"
}

# Peers take turns, so that a slow minute of the machine does not fall on all runs of one peer.
export TMPDIR=$folder
for ((round = 1; round <= runs; round++)); do
    measure firstseen -- "$built/firstseen" dedup --threads "$THREADS" "$feed" -o "$output"
    # The reference is slow on purpose: one run tells enough.
    if ((round == 1)); then
        measure reference --stdout -- python3 scripts/reference.py dedup "$feed"
    fi
    measure DuckDB -- "$python" scripts/peers.py duckdb --threads "$THREADS" "$feed" "$output"
    measure Polars -- "$python" scripts/peers.py polars --threads "$THREADS" "$feed" "$output"
    measure huniq --stdin "$feed" --stdout -- "$peers/bin/huniq"
    measure sort -- env LC_ALL=C sort -u --parallel="$THREADS" -o "$output" "$feed"
    # shellcheck disable=SC2016 # It is awk that expands this.
    measure awk --stdout -- env LC_ALL=C awk '!s[$0]++' "$feed"
done

lost=()
for peer in "${!missing[@]}"; do
    lost+=(--missing "$peer=${missing[$peer]}")
done
python3 scripts/peers.py table --results "$results" --feed "$made" --kind "$kind" "${lost[@]}"
