#!/usr/bin/env python3
"""The readable reference: what a key is, in CPython's own json and hashlib.

Slow on purpose. Everything else in this repository is held to what this file says: the golden
vectors are made by it, and parity.py compares the built binary with it.

    reference.py [options] dedup [FILE]...   first-seen lines, in input order
    reference.py [options] key [FILE]...     key, tab, canonical JSON of every event

`--protocol FILE` reads the settings from a protocol file.
"""

import argparse
import functools
import hashlib
import json
import math
import re
import sys
import unicodedata
from decimal import Decimal
from pathlib import Path

from reference_crs import ToWgs84
from reference_geometry import Shapes
from reference_protocol import ENVELOPE, Settings

# Integers of any size are kept exactly; CPython's default stops at 4300 digits.
sys.set_int_max_str_digits(0)
# Two frames a level while rounding: enough for the 1024 levels that firstseen accepts.
sys.setrecursionlimit(8000)

DEPTH_MAX = 1024
MISSING = object()


class Refused(Exception):
    """The line is no event."""


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


class Members(dict):
    """An object that knows which names were repeated in it."""

    def __init__(self, members, repeated=frozenset()):
        super().__init__(members)
        self.repeated = repeated

    @classmethod
    def parsed(cls, members):
        """The first place of a name, with the last value, as any dictionary has it."""
        names = [name for name, _ in members]
        has_repeated = len(set(names)) < len(names)
        return cls(members, {name for name in names if names.count(name) > 1} if has_repeated else frozenset())


def stripped(value, pointers):
    """A value without what the pointers lead to, each a tuple of tokens. Elements are counted as
    they were before any was left out."""
    left_out = {tokens[0] for tokens in pointers if len(tokens) == 1}

    def inside(token, child):
        deeper = {tokens[1:] for tokens in pointers if tokens[0] == token and len(tokens) > 1}
        return stripped(child, deeper) if deeper else child

    if isinstance(value, dict):
        members = [(name, inside(name, member)) for name, member in value.items() if name not in left_out]
        return Members(members, value.repeated - left_out)
    if isinstance(value, list):
        return [inside(str(index), element) for index, element in enumerate(value) if str(index) not in left_out]
    return value


def with_added(event, constants):
    """A constant is put where the member of its name was, or else at the end."""
    return Members(event | constants, event.repeated - constants.keys())


def find(event, tokens, reject_repeated=False):
    """What `(event.get("body") or {}).get("id")` finds, where Python would raise nothing."""
    value = event
    for token in tokens:
        if value is MISSING or not value:
            return MISSING
        if isinstance(value, dict):
            if reject_repeated and token in value.repeated:
                raise Refused("repeated name")
            value = value.get(token, MISSING)
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]*", token):
            value = value[int(token)] if int(token) < len(value) else MISSING
        else:
            raise Refused("a parent that has no members")
    return value


def pick(event, sources, reject_repeated):
    """The first source that is truthy, or else the last one."""
    for tokens, constant in sources:
        value = find(event, tokens, reject_repeated) if tokens else MISSING
        value = constant if value is MISSING else value
        if value:
            break
    return value


def transformed(value, transform):
    if isinstance(transform, dict) and "sort_by" in transform:
        return sorted_by(value, transform["sort_by"])
    if isinstance(value, (list, dict)):
        raise Refused("a container to be transformed")
    if transform == "str":
        return str(value)
    if isinstance(transform, dict):
        return fixed(value, transform["fixed"])
    if not isinstance(value, str):
        raise Refused("no text")
    if transform == "nfc":
        return unicodedata.normalize("NFC", value)
    return value.strip() if transform == "strip" else value.lower()


def sorted_by(value, tokens):
    keys = [find(element, tokens) for element in value] if isinstance(value, list) else [None]
    if not all(isinstance(key, str) for key in keys):
        raise Refused("what is not sorted by strings")
    return [element for _, element in sorted(zip(keys, value), key=lambda pair: pair[0])]


def fixed(value, decimals):
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused("no number") from error
    # float() reads digits of every script, which firstseen does not.
    if isinstance(value, str) and not value.strip().isascii():
        raise Refused("digits past ASCII")
    return f"{number:.{decimals}f}"


def projected(event, settings):
    """What is hashed of an event, its numbers still as they were."""
    if not settings.select:
        return with_added(stripped(event, settings.strip), settings.add)
    reject_repeated = settings.duplicate_names == "reject"
    return Members((member, functools.reduce(transformed, transforms, pick(event, sources, reject_repeated)))
                   for member, sources, transforms in settings.select)


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


def normalised(value, settings, in_coordinates=False):
    """A value with its numbers as they are to be."""
    if isinstance(value, list):
        return [normalised(element, settings, in_coordinates) for element in value]
    if isinstance(value, dict):
        if settings.duplicate_names == "reject" and value.repeated:
            raise Refused("repeated name")
        return {name: normalised(member, settings, in_coordinates or name == "coordinates")
                for name, member in value.items()}
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


def settle_geometries(event, settings):
    skipped = {tokens[0] for tokens in settings.strip if len(tokens) == 1}
    if settings.crs == "wgs84":
        ToWgs84(settings.source_crs).walk(event, skipped)
    if settings.identity == "shape":
        Shapes(lambda value: number(value, settings, in_coordinates=True), settings.scheme == "jcs").walk(event, skipped)


def canonical(line, settings):
    """The canonical bytes of one line (bytes, without its line end)."""
    try:
        if settings.scheme == "bytes":
            return line
        event = json.loads(line.decode("utf-8"), object_pairs_hook=Members.parsed)
        if not isinstance(event, dict):
            raise Refused("not an object")
        if depth(event) > DEPTH_MAX:
            raise Refused("too deep")
        settle_geometries(event, settings)
        kept = normalised(projected(event, settings), settings)
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
        return Settings.from_toml(Path(args.protocol).read_text(encoding="utf-8"))
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
