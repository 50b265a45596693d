#!/bin/sh
# The first copies of each day's events, published once, however often this is run.
# Usage: nightly.sh [DAY]..., in the folder that has `in`; the default is every day that is over and not done.
set -eu
mkdir -p out rejects reports
if [ $# -eq 0 ]; then
  for feed in in/*.jsonl.gz; do
    day=$(basename "$feed" .jsonl.gz)
    # An output is there from the moment its run is done.
    if [ -e "$feed" ] && [ ! -e "out/$day.jsonl" ] && [ "$day" != "$(date -u +%F)" ]; then
      set -- "$@" "$day"
    fi
  done
fi
for day in "$@"; do
  firstseen dedup --quiet --store seen --run-id "$day" --ttl 14d \
    --rejects "rejects/$day.jsonl" --report "reports/$day.json" \
    "in/$day.jsonl.gz" -o "out/$day.jsonl"
done
