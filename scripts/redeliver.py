#!/usr/bin/env python3
"""Redeliver real events as another program would write them.

    redeliver.py FILE > feed.jsonl

Writes each line of FILE as it is, and behind it up to two copies of it or of an earlier one, by
`json.dumps` with its spaces and ASCII escapes: members shuffled, doubles off in the ninth decimal or
beyond (by less than half of the eighth), and a delivery envelope added. The same file gives the same
feed. How many copies there are is printed to standard error.
"""

import json
import random
import sys


def redelivered(value, rng):
    if isinstance(value, dict):
        members = [(name, redelivered(member, rng)) for name, member in value.items()]
        rng.shuffle(members)
        return dict(members)
    if isinstance(value, list):
        return [redelivered(element, rng) for element in value]
    if isinstance(value, float):
        return value + rng.choice([0.0, 3e-9, -3e-9, 4e-10, 1e-13])
    return value


def main():
    rng = random.Random(20180207)
    lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
    copies = 0
    for index, line in enumerate(lines):
        print(line)
        for _ in range(rng.randrange(3)):
            event = json.loads(lines[rng.randrange(index + 1)])
            event |= {"delivery_id": f"d-{copies}", "attempt": 2, "received_at": "2018-02-07T01:26:13.5Z"}
            print(json.dumps(redelivered(event, rng)))
            copies += 1
    print(copies, file=sys.stderr)


if __name__ == "__main__":
    main()
