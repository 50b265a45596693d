#!/usr/bin/env python3
"""Fuzz examples/checkout-v1.toml and -v2.toml against a Python handler that makes the same keys.

    checkout_parity.py N [--seed S] [--binary PATH]

The handler is what a shop may have: a dictionary put together by hand, dumped with json.dumps, and
hashed. What it raises for is what firstseen must reject. Stops at the first difference.
"""

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import nasty

sys.set_int_max_str_digits(0)
ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def parts(event):
    body = event.get("body") or {}
    customer = body.get("customer") or {}
    return {
        "order": body.get("order_id") or body.get("id"),
        "email": (customer.get("email") or "").strip().lower(),
        "items": body.get("items") or [],
    }, body.get("total")


def key_v1(event):
    selected, total = parts(event)
    if isinstance(total, (list, dict)) and total:
        raise TypeError("str() has a form for containers, which checkout-v1.toml rejects")
    payload = {"order": selected["order"], "email": selected["email"], "total": str(total or "0"),
               "items": selected["items"], "attempt": event.get("delivery_attempt", 1)}
    return json.dumps(payload)


def key_v2(event):
    selected, total = parts(event)
    payload = selected | {"total": f"{float(total or 0):.2f}"}
    return json.dumps(payload, sort_keys=True, separators=(",", ":"))


def value(rng):
    return rng.choice(["null", "false", "true", "0", "0.0", "-0", '""', "[]", "{}", '"ORD-9"', "17", "10.5", '"10.50"', "[1]",
                       '{"a":1}', nasty.number(rng), nasty.string(rng, rng.choice(nasty.TEXTS)), r'"\ud800"', '" 1_0.5 "',
                       '"1__0"', '"nan"', '"-Infinity"', '"\u001c x \u3000"', '"ΑΣ"', '"İ"', "1e999", "NaN", "9" * 400])


def delivery(rng):
    def members(*options):
        chosen = [f'"{name}": {text}' for name, text, share in options if rng.random() < share]
        rng.shuffle(chosen)
        return "{" + ", ".join(chosen) + "}"

    email = rng.choice(['"Ada@Example.com "', '"ada@example.com"', '"\\u00C9ve@x.org"', '"e\\u0301@x"', value(rng)])
    customer = members(("email", email, 0.9), ("name", value(rng), 0.3)) if rng.random() < 0.9 else value(rng)
    items = '[{"sku": "A", "qty": 1}, {"qty": 2.0, "sku": "B"}]' if rng.random() < 0.5 else value(rng)
    total = rng.choice(["10.5", "10.50", '"10.50"', "11", value(rng)])
    body = members(("order_id", value(rng), 0.7), ("id", value(rng), 0.5), ("total", total, 0.9), ("customer", customer, 0.9),
                   ("items", items, 0.8)) if rng.random() < 0.9 else value(rng)
    return members(("delivery_id", '"d"', 0.9), ("delivery_attempt", rng.choice(["1", "2", "null", value(rng)]), 0.7),
                   ("body", body, 0.95)).encode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=20180207)
    parser.add_argument("--binary", default=TARGET / "release/firstseen")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    lines = [delivery(rng) for _ in range(args.count)]
    for name, handler in (("checkout-v1", key_v1), ("checkout-v2", key_v2)):
        printed, rejected = [], []
        for line in lines:
            try:
                blob = handler(json.loads(line))
                digest = hashlib.sha256(blob.encode("utf-8")).hexdigest()
                printed.append(f"inv:{digest}\t{blob}\n".encode())
            except (AttributeError, TypeError, ValueError, OverflowError):
                rejected.append(line + b"\n")
        with tempfile.TemporaryDirectory() as folder:
            rejects = Path(folder, "rejects")
            command = [args.binary, "key", "--canonical", "--protocol", ROOT / f"examples/{name}.toml", "--rejects", rejects, "-"]
            done = subprocess.run(command, input=b"\n".join(lines) + b"\n", capture_output=True, check=True)
            got = (done.stdout.splitlines(keepends=True), rejects.read_bytes().splitlines(keepends=True))
        for what, ours, theirs in zip(("key", "reject"), got, (printed, rejected)):
            for one, two in zip(ours, theirs):
                if one != two:
                    sys.exit(f"{name}: {what} differs\n  firstseen: {one!r}\n  handler:   {two!r}")
            if len(ours) != len(theirs):
                sys.exit(f"{name}: {len(ours)} {what}s, where the handler has {len(theirs)}")
        if not printed or not rejected:
            sys.exit("the deliveries are all keyed, or all rejected: nothing was tried")
        print(f"{name}: {len(printed)} keys and {len(rejected)} rejects, no difference")


if __name__ == "__main__":
    main()
