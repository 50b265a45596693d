#!/usr/bin/env python3
"""The readable reference: what a key is, in CPython's own json and hashlib.

Slow on purpose. Everything else in this repository is held to what this file says: the golden
vectors are made by it, and parity.py compares the built binary with it.

    reference.py [options] dedup [FILE]...   first-seen lines, in input order
    reference.py [options] key [FILE]...     key, tab, canonical JSON of every event

`--protocol FILE` reads the settings from a protocol file.
"""

import argparse
import hashlib
import json
import math
import sys
import tomllib
from decimal import Decimal
from pathlib import Path

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
    def __init__(self, decimals=8, hash="blake2b", key_bytes=16, strip=ENVELOPE, duplicate_names="last",
                 non_finite="accept", where="everywhere", negative_zero="keep", integral="keep",
                 scheme="python-json", members="sorted", separators="compact", non_ascii="utf8", prefix=""):
        self.decimals = decimals
        self.hash = hash
        self.key_bytes = key_bytes
        self.strip = frozenset(strip)
        self.duplicate_names = "reject" if scheme == "jcs" else duplicate_names
        self.non_finite = "reject" if scheme == "jcs" else non_finite
        self.where = where
        self.negative_zero = negative_zero
        self.integral = integral
        self.scheme = scheme
        self.members = members
        self.separators = {"compact": (",", ":"), "spaced": (", ", ": ")}[separators]
        self.ensure_ascii = non_ascii == "escape"
        self.prefix = prefix

    @classmethod
    def from_toml(cls, text):
        tables = tomllib.loads(text)
        options = {"decimals": None, "strip": ()}
        for table in ("event", "numbers", "canonical", "key"):
            options |= tables.get(table, {})
        if "bytes" in options:
            options["key_bytes"] = options.pop("bytes")
        return cls(**options)


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


def number(value, settings, in_coordinates):
    """A number as its settings have it."""
    if isinstance(value, float):
        if not math.isfinite(value) and settings.non_finite == "reject":
            raise Refused("not finite")
        if settings.decimals is not None and (in_coordinates or settings.where == "everywhere"):
            value = round(value, settings.decimals)
        if value == 0 and settings.negative_zero == "fold":
            value = 0.0
        is_negative_zero = value == 0 and math.copysign(1, value) < 0
        if settings.integral == "unify" and abs(value) <= 2 ** 53 and value.is_integer() and not is_negative_zero:
            return int(value)
    return value


def normalised(value, settings, in_coordinates=False, strip=frozenset()):
    """A value without the members to strip, and with its numbers as they are to be."""
    if isinstance(value, list):
        return [normalised(element, settings, in_coordinates) for element in value]
    if isinstance(value, dict):
        if settings.duplicate_names == "reject" and value.repeated - strip:
            raise Refused("repeated name")
        return {name: normalised(member, settings, in_coordinates or name == "coordinates")
                for name, member in value.items() if name not in strip}
    return value if isinstance(value, bool) else number(value, settings, in_coordinates)


def ecmascript_number(value):
    """Number::toString of ECMA-262, from the shortest digits, which repr has."""
    value = float(value)
    if not math.isfinite(value):
        raise Refused("not finite")
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not any(digits):
        return "0"
    text = "".join(map(str, digits))
    point = len(text) + exponent
    if 0 < point <= 21:
        text = text.ljust(point, "0")
        text = text[:point] + ("." + text[point:] if text[point:] else "")
    elif -6 < point <= 0:
        text = "0." + "0" * -point + text
    else:
        text = text[0] + ("." + text[1:] if text[1:] else "") + "e" + ("+" if point > 0 else "-") + str(abs(point - 1))
    return "-" * sign + text


def jcs(value):
    """RFC 8785, section 3.2."""
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
        return "{" + ",".join(jcs(name) + ":" + jcs(member) for name, member in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(jcs, value)) + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return ecmascript_number(value)
        except OverflowError as error:
            raise Refused("past the range of a double") from error
    return json.dumps(value, ensure_ascii=False)


class Members(dict):
    """An object that remembers which names were repeated in it."""

    def __init__(self, members):
        super().__init__(members)
        names = [name for name, _ in members]
        self.repeated = {name for name in names if names.count(name) > 1} if len(self) < len(names) else set()


def canonical(line, settings):
    """The canonical bytes of one line (bytes, without its line end)."""
    try:
        if settings.scheme == "bytes":
            return line
        event = json.loads(line.decode("utf-8"), object_pairs_hook=Members)
        if not isinstance(event, dict):
            raise Refused("not an object")
        if depth(event) > DEPTH_MAX:
            raise Refused("too deep")
        kept = normalised(event, settings, strip=settings.strip)
        if settings.scheme == "jcs":
            return jcs(kept).encode("utf-8")
        text = json.dumps(kept, sort_keys=settings.members == "sorted", separators=settings.separators,
                          ensure_ascii=settings.ensure_ascii)
        return text.encode("utf-8")
    except (ValueError, RecursionError) as error:  # UnicodeError and JSONDecodeError are ValueErrors
        raise Refused(str(error)) from error


def key(canonical_bytes, settings):
    digest = hashlib.new(settings.hash, canonical_bytes).digest()
    return settings.prefix + digest[:settings.key_bytes or len(digest)].hex()


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
    parser.add_argument("--protocol")
    parser.add_argument("--decimals", type=int, default=8)
    parser.add_argument("--hash", choices=("blake2b", "sha256"), default="blake2b")
    parser.add_argument("--key-bytes", type=int, default=16)
    parser.add_argument("--strip", action="append", default=[])
    parser.add_argument("--no-default-strip", action="store_true")


def settings_of(args):
    if args.protocol:
        return Settings.from_toml(Path(args.protocol).read_text())
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
