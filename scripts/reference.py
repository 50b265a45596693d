#!/usr/bin/env python3
"""The readable reference: what a key is, in CPython's own json and hashlib.

Slow on purpose. Everything else in this repository is held to what this file says: the golden
vectors are made by it, and parity.py compares the built binary with it.

    reference.py [options] dedup [FILE]...   first-seen lines, in input order
    reference.py [options] key [FILE]...     key, tab, canonical JSON of every event
"""

import argparse
import hashlib
import json
import sys

# Integers of any size are kept exactly; CPython's default stops at 4300 digits.
sys.set_int_max_str_digits(0)
# Two frames a level while rounding: enough for the 1024 levels that firstseen accepts.
sys.setrecursionlimit(8000)

DEPTH_MAX = 1024
ENVELOPE = ("webhook_id", "delivery_id", "received_at", "timestamp",
            "x-signature", "x-hub-signature-256", "attempt")


class Refused(Exception):
    """The line is no event."""


class Settings:
    def __init__(self, decimals=8, hash="blake2b", key_bytes=16, strip=ENVELOPE):
        self.decimals = decimals
        self.hash = hash
        self.key_bytes = key_bytes
        self.strip = frozenset(strip)


def depth(value):
    """How many containers stand inside each other, the outermost one included."""
    deepest, stack = 0, [(value, 1)]
    while stack:
        node, level = stack.pop()
        if isinstance(node, (dict, list)):
            deepest = max(deepest, level)
            children = node.values() if isinstance(node, dict) else node
            stack.extend((child, level + 1) for child in children)
    return deepest


def rounded(value, decimals):
    if isinstance(value, float):
        return round(value, decimals)
    if isinstance(value, list):
        return [rounded(element, decimals) for element in value]
    if isinstance(value, dict):
        return {name: rounded(member, decimals) for name, member in value.items()}
    return value


def canonical(line, settings):
    """The canonical bytes of one line (bytes, without its line end)."""
    try:
        event = json.loads(line.decode("utf-8"))
        if not isinstance(event, dict):
            raise Refused("not an object")
        if depth(event) > DEPTH_MAX:
            raise Refused("too deep")
        kept = {name: member for name, member in event.items() if name not in settings.strip}
        text = json.dumps(rounded(kept, settings.decimals), sort_keys=True,
                          separators=(",", ":"), ensure_ascii=False)
        return text.encode("utf-8")
    except (ValueError, RecursionError) as error:  # UnicodeError and JSONDecodeError are ValueErrors
        raise Refused(str(error)) from error


def key(canonical_bytes, settings):
    digest = hashlib.new(settings.hash, canonical_bytes).digest()
    return digest[:settings.key_bytes or len(digest)].hex()


def lines(stream):
    """Every line of a binary stream that is not blank, without its line end."""
    first = True
    for line in stream:
        if first:
            line = line.removeprefix(b"\xef\xbb\xbf")
            first = False
        line = line.removesuffix(b"\n")
        if line.strip(b" \t\r"):
            yield line


def add_settings(parser):
    parser.add_argument("--decimals", type=int, default=8)
    parser.add_argument("--hash", choices=("blake2b", "sha256"), default="blake2b")
    parser.add_argument("--key-bytes", type=int, default=16)
    parser.add_argument("--strip", action="append", default=[])
    parser.add_argument("--no-default-strip", action="store_true")


def settings_of(args):
    strip = () if args.no_default_strip else ENVELOPE
    return Settings(args.decimals, args.hash, args.key_bytes, (*strip, *args.strip))


def main():
    parser = argparse.ArgumentParser(description="The reference of firstseen's keys.")
    add_settings(parser)
    parser.add_argument("command", choices=("dedup", "key"))
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    settings = settings_of(args)
    out = sys.stdout.buffer
    seen = set()
    for stream in [open(name, "rb") for name in args.files] or [sys.stdin.buffer]:
        for line in lines(stream):
            try:
                text = canonical(line, settings)
            except Refused as error:
                sys.exit(f"refused: {error}: {line[:80]!r}")
            digest = key(text, settings)
            if args.command == "key":
                out.write(digest.encode() + b"\t" + text + b"\n")
            elif digest not in seen:
                seen.add(digest)
                out.write(line + b"\n")


if __name__ == "__main__":
    main()
