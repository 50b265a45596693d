#!/usr/bin/env bash
#
# Compares the work that two revisions do: instructions for each event, counted by callgrind.
#
#     scripts/bench_diff.sh BASE HEAD
#
# Builds both revisions (anything git can name) and runs each on the same feeds, which HEAD makes from a fixed
# seed. Counts do not depend on what else the machine does, so a change of half a percent is a change of the code;
# they say nothing about waiting for memory or disks. Needs cargo and valgrind. Everything it makes is in
# target/bench_diff, the profiles too: callgrind_annotate shows where a case's instructions went.

set -euo pipefail

(($# == 2)) || { echo "usage: bench_diff.sh BASE HEAD" >&2 && exit 2; }
command -v valgrind >/dev/null || { echo "bench_diff.sh: valgrind is not installed" >&2 && exit 2; }

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly events=20000 folder=$PWD/target/bench_diff
mkdir -p "$folder"

# What is run: a name, a feed, and the arguments.
readonly cases=(
    "usual       plain    dedup"
    "shuffled    shuffled dedup"
    "jcs         plain    dedup --protocol jcs-v1"
    "shape       plain    dedup --protocol geojson-shape-v1"
    "bytes       plain    dedup --protocol bytes-v1"
    "no-decimals plain    dedup --decimals 0"
    "keys        plain    key"
)

# build REVISION: prints the folder with what was built of it.
build() {
    local commit tree
    commit=$(git rev-parse --verify --quiet "$1^{commit}") ||
        { echo "bench_diff.sh: $1 is no revision of this repository" >&2 && exit 2; }
    tree=$folder/$commit
    if [[ ! -x $tree/target/release/firstseen ]]; then
        rm -rf "$tree"
        mkdir -p "$tree"
        git archive "$commit" | tar -x -C "$tree"
        (cd "$tree" && CARGO_TARGET_DIR=$tree/target cargo build --release --locked --quiet --bin firstseen --example make_feed) >&2
    fi
    echo "$tree/target/release"
}

# count BUILD PROFILE FEED ARGUMENT...: prints the instructions of a run.
count() {
    local build=$1 profile=$2 feed=$3
    shift 3
    valgrind --quiet --tool=callgrind --callgrind-out-file="$profile" \
        "$build/firstseen" "$@" --threads 1 "$feed" >/dev/null 2>"$profile.log" ||
        { cat "$profile.log" >&2 && exit 1; }
    sed -n 's/^totals: //p' "$profile"
}

base=$(build "$1")
head=$(build "$2")
"$head/examples/make_feed" --events $events -o "$folder/plain.jsonl" >/dev/null
"$head/examples/make_feed" --events $events --shuffle -o "$folder/shuffled.jsonl" >/dev/null

printf '%-12s %12s %12s %8s\n' "per event" "$1" "$2" change
for case in "${cases[@]}"; do
    read -r name feed arguments <<<"$case"
    # shellcheck disable=SC2086 # The arguments are words.
    before=$(count "$base" "$folder/base.$name.callgrind" "$folder/$feed.jsonl" $arguments)
    # shellcheck disable=SC2086
    after=$(count "$head" "$folder/head.$name.callgrind" "$folder/$feed.jsonl" $arguments)
    awk -v name="$name" -v before="$before" -v after="$after" -v events=$events 'BEGIN {
        printf "%-12s %12.0f %12.0f %+7.1f%%\n", name, before / events, after / events, 100 * (after / before - 1)
    }'
done
