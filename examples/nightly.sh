#!/bin/sh
# The first copies of a day's events, published once, however often the day is run.
# Usage: nightly.sh [DAY], in the folder that has `in`; the default is yesterday, in UTC.
set -eu
day=${1:-$(date -u -d yesterday +%F)}
mkdir -p out rejects reports
exec firstseen dedup --quiet --store seen --run-id "$day" --ttl 14d \
  --rejects "rejects/$day.jsonl" --report "reports/$day.json" \
  "in/$day.jsonl.gz" -o "out/$day.jsonl"
