#!/usr/bin/env bash
# Deduplicate a generated feed by every kind of input and number of threads: the outputs must be the
# same bytes, and as many events as the generator says are unique.
set -euo pipefail
cd "$(dirname "$0")/.."

events=${1:-200000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cargo build --locked --release --quiet --bins --examples
tool=${CARGO_TARGET_DIR:-target}/release/firstseen
make_feed=${CARGO_TARGET_DIR:-target}/release/examples/make_feed

unique=$("$make_feed" --events "$events" -o "$folder/feed.jsonl" | sed 's/.*"unique": \([0-9]*\).*/\1/')
"$tool" dedup -q --threads 1 "$folder/feed.jsonl" -o "$folder/expected"
kept=$(wc -l < "$folder/expected")
[ "$kept" = "$unique" ] || { echo "kept $kept events of $unique unique ones"; exit 1; }

gzip -1 -k "$folder/feed.jsonl"
"$tool" dedup -q "$folder/feed.jsonl" -o "$folder/expected.zst" # also a compressed copy of the output
for threads in 1 2 8; do
    "$tool" dedup -q --threads "$threads" "$folder/feed.jsonl" -o "$folder/map"
    "$tool" dedup -q --threads "$threads" --no-mmap "$folder/feed.jsonl" -o "$folder/read"
    "$tool" dedup -q --threads "$threads" < "$folder/feed.jsonl" > "$folder/pipe"
    "$tool" dedup -q --threads "$threads" "$folder/feed.jsonl.gz" -o "$folder/gzip"
    "$tool" dedup -q --threads "$threads" "$folder/expected.zst" -o "$folder/zstd"
    for way in map read pipe gzip zstd; do
        cmp "$folder/expected" "$folder/$way"
    done
done
echo "$events events, $unique unique: the same output for 1, 2 and 8 threads, mapped, read, piped, gzip and zstd"
