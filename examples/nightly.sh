#!/bin/sh
# The first copies of each day's events, published once, however often this is run.
# Usage: nightly.sh [DAY]..., in the folder that has `in`; the default is every day that is over and not done.
set -eu
mkdir -p out rejects reports
if [ $# -eq 0 ]; then
  today=$(date -u +%F)
  for feed in in/*.jsonl.gz; do
    day=$(basename "$feed" .jsonl.gz)
    # An output is there from the moment its run is done. Days are compared as text.
    if [ -e "$feed" ] && [ ! -e "out/$day.jsonl" ] && expr "x$day" '<' "x$today" > /dev/null; then
      set -- "$@" "$day"
    fi
  done
fi
failed=0
for day in "$@"; do
  # A day that fails is kept for the next time, and keeps no other one from being done.
  firstseen dedup --quiet --store seen --run-id "$day" --ttl 14d \
    --rejects "rejects/$day.jsonl" --report "reports/$day.json" \
    "in/$day.jsonl.gz" -o "out/$day.jsonl" || failed=$?
done
exit "$failed"
