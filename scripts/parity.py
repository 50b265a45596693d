#!/usr/bin/env python3
"""Fuzz the built binary against the reference.

    parity.py N [--seed S] [--binary PATH] [--tokens FILE]

Makes N nasty lines, of which a good part are no events, and compares what `firstseen key
--canonical --rejects` says of them with the reference: for 8, 7, 6 and 0 decimals, both hashes,
whole and truncated keys. Under protocol files with other settings a part of the lines is compared;
where a protocol hashes parts of an event, or the shapes in it, lines that are made for that come in
addition. Stops at the first difference with exit code 1. The seed is printed, so that a run can be
repeated.

FILE is a JSON array of {"name", "b64"}, as a corpus of JSON texts: each is tried as the value of a
member, on one line.
"""

import argparse
import base64
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import nasty
import reference

DECIMALS = (8, 7, 6, 0)
KEYS = (("blake2b", 16), ("blake2b", 0), ("sha256", 16), ("sha256", 0))
BLOCK = 2000
PROTOCOLS = (
    '[event]\nduplicate_names = "reject"\nnon_finite = "reject"\n[numbers]\ndecimals = 8\n',
    '[numbers]\ndecimals = 8\nnegative_zero = "fold"\nintegral = "unify"\n',
    '[numbers]\ndecimals = 2\nwhere = "coordinates"\nintegral = "unify"\n',
    '[numbers]\nnegative_zero = "fold"\n[canonical]\nmembers = "as-written"\nseparators = "spaced"\n[key]\nprefix = "p:"\n',
    '[event]\nstrip = ["attempt"]\n[canonical]\nnon_ascii = "escape"\nseparators = "spaced"\n[key]\nhash = "sha256"\nbytes = 0\n',
    '[canonical]\nscheme = "jcs"\n',
    '[event]\nstrip = ["b"]\n[numbers]\ndecimals = 3\n[canonical]\nscheme = "jcs"\n',
    '[canonical]\nscheme = "bytes"\n',
)
# Those that hash other parts than the event as it is, for the lines of nasty.parts as well.
POINTERS = '["c", "/a/b", "/a/0", "/a/1/a", "/b/1", "/b/0/a", "/a/a/a", "/é", "/", "//", "/a~1b", "/~0/a~1b", "/0/0", "/b/01", "/b/-"]'
PART_PROTOCOLS = (
    f'[event]\nstrip = {POINTERS}\n',
    f'[event]\nstrip = {POINTERS}\nduplicate_names = "reject"\nnon_finite = "reject"\n[canonical]\nnon_ascii = "escape"\n',
    f'[event]\nstrip = {POINTERS}\n[numbers]\ndecimals = 1\n[canonical]\nscheme = "jcs"\n',
    f'[event]\nstrip = {POINTERS}\nadd = {{a = "x", b = -0.0, "é" = 17.0}}\n[numbers]\nintegral = "unify"\n[canonical]\nmembers = "as-written"\n',
    '[event]\nadd = {b = true, a = 2, coordinates = 1.25}\n[numbers]\ndecimals = 1\nwhere = "coordinates"\n[canonical]\nmembers = "as-written"\n',
    '[event]\nstrip = ["c"]\nadd = {c = "é\\u0001", a = 0.125, "" = 9007199254740993}\nduplicate_names = "reject"\n[numbers]\ndecimals = 2\n',
    '[event]\nadd = {"a/b" = 9007199254740993, c = -0.0}\n[canonical]\nscheme = "jcs"\n',
    'select = [{member = "z", pointer = "/a"}, {member = "coordinates", pointer = "/b", default = 1.25}, {member = "y", pointer = "/coordinates"}]\n'
    '[numbers]\ndecimals = 1\nwhere = "coordinates"\n[canonical]\nmembers = "as-written"\n',
    'select = [{member = "y", pointer = "/a/a", default = []}, {member = "x", pointer = "/b/0"}, {member = "w", pointer = "/~0/b"},'
    '{member = "v", pointer = "/a/18446744073709551616"}]\n'
    '[event]\nduplicate_names = "reject"\nnon_finite = "reject"\n[canonical]\nnon_ascii = "escape"\n',
    'select = [{member = "y", first_of = ["/a", "/b/a", {value = -0.0}]}, {member = "x", first_of = ["/b", "/c"]}]\n[numbers]\nnegative_zero = "fold"\n',
    'select = [{member = "\\U00010000", first_of = ["/c/1", {value = false}, "/a"]}, {member = "\\uffff", pointer = "/é"}]\n[canonical]\nscheme = "jcs"\n',
    *(f'select = [{{member = "x", pointer = "/a", transforms = {transforms}}}]\n[numbers]\ndecimals = 3\n' for transforms in (
        '["strip"]', '["lower"]', '["nfc"]', '["str"]', '[{fixed = 0}]', '[{fixed = 2}]', '[{fixed = 323}]', '["str", "nfc", "lower", "strip"]')),
    'select = [{member = "x", first_of = ["/a", "/b", {value = "0"}], transforms = ["str", {fixed = 3}]}]\n',
    'select = [{member = "x", pointer = "/a", transforms = [{sort_by = "/a"}]}]\n',
    'select = [{member = "x", first_of = ["/b", "/a"], transforms = ["strip", "lower"]}]\n[canonical]\nnon_ascii = "escape"\n',
    'select = [{member = "x", pointer = "/a", default = " İ ", transforms = ["lower", "nfc", "strip", "str"]}]\n[canonical]\nnon_ascii = "escape"\n',
)
# Those that know shapes, for the lines of nasty.geometry as well.
SHAPE = '[geometry]\nidentity = "shape"\n'
SHAPE_PROTOCOLS = (
    SHAPE,
    SHAPE + '[numbers]\ndecimals = 8\n[event]\nstrip = ["attempt"]\n',
    SHAPE + '[numbers]\ndecimals = 2\n',
    SHAPE + '[numbers]\ndecimals = 2\nnegative_zero = "fold"\nintegral = "unify"\n',
    SHAPE + '[numbers]\nintegral = "unify"\n[canonical]\nmembers = "as-written"\nseparators = "spaced"\n',
    SHAPE + 'crs = "as-is"\n[numbers]\ndecimals = 0\nwhere = "coordinates"\nnegative_zero = "fold"\n[event]\nadd = {type = "Polygon"}\n',
    SHAPE + '[canonical]\nscheme = "jcs"\n',
    SHAPE + '[numbers]\ndecimals = 2\n[canonical]\nscheme = "jcs"\n',
    SHAPE + '[event]\nstrip = ["/geometry/coordinates/1", "/coordinates/0", "/data"]\nduplicate_names = "reject"\nnon_finite = "reject"\n',
    'select = [{member = "g", first_of = ["/geometry", "/data/geometry", "/data"]}, {member = "type", pointer = "/type"}]\n'
    + SHAPE + '[numbers]\ndecimals = 8\n',
)
ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def make_lines(seed, count):
    rng = random.Random(seed)
    return [nasty.line(rng).replace(b"\n", b" ") for _ in range(count)]


def make_more(make, seed, count):
    """Lines for some protocols only: events of `make`, a few of them damaged."""
    rng = random.Random(seed)
    lines = (make(rng).encode() for _ in range(count))
    lines = (nasty.damaged(rng, line) if rng.random() < 0.03 else line for line in lines)
    return [line.replace(b"\n", b" ") for line in lines if line.strip(b" \t\r\n")]


def read_tokens(path):
    for case in json.loads(Path(path).read_text()):
        content = base64.b64decode(case["b64"])
        # A line end would make two lines of it, to either side.
        yield b'{"v":' + content.replace(b"\n", b" ") + b"}"


def canonical_forms(lines, settings):
    """The canonical bytes of each line, or None where it is refused."""
    forms = []
    for line in lines:
        try:
            forms.append(reference.canonical(line, settings))
        except reference.Refused:
            forms.append(None)
    return forms


def run_binary(binary, lines, options):
    """What the binary prints, and what it rejects."""
    with tempfile.TemporaryDirectory() as folder:
        rejects = Path(folder, "rejects")
        command = [binary, "key", "--canonical", "--rejects", rejects, *options, "-"]
        done = subprocess.run(command, input=b"".join(line + b"\n" for line in lines),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            sys.exit(f"{command}: exit {done.returncode}: {done.stderr.decode()}")
        return done.stdout, rejects.read_bytes()


def compare(args, lines, forms, settings, options):
    """Whether the binary says what the reference says; if not, prints where not."""
    printed = [reference.key(form, settings).encode() + b"\t" + form + b"\n" for form in forms if form is not None]
    rejected = [line + b"\n" for line, form in zip(lines, forms) if form is None]
    for what, got, want in zip(("key", "reject"), run_binary(args.binary, lines, options), (printed, rejected)):
        difference = first_difference(split_lines(got), want)
        if difference:
            index, one, two = difference
            print(f"{' '.join(map(str, options))}: {what} {index} differs\n"
                  f"  firstseen: {one[:2000]!r}\n  reference: {two[:2000]!r}")
            return False
    return True


def split_lines(data):
    """As bytes.splitlines, but at line feeds only."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def first_difference(got, want):
    for index, (one, two) in enumerate(zip(got, want)):
        if one != two:
            return index, one, two
    if len(got) != len(want):
        index = min(len(got), len(want))
        return index, (got[index:] or [b"nothing"])[0], (want[index:] or [b"nothing"])[0]
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=20180207)
    parser.add_argument("--binary", default=TARGET / "release/firstseen")
    parser.add_argument("--tokens")
    args = parser.parse_args()
    print(f"parity: {args.count} lines, seed {args.seed}", flush=True)

    lines = make_lines(args.seed, args.count)
    if args.tokens:
        lines += read_tokens(args.tokens)
    # The first line of an input may have a byte-order mark, which other lines may not.
    lines = [b"{}"] + [line for line in lines if line.strip(b" \t\r")]
    # Protocols of other settings share a part of the lines.
    part = lines[:max(len(lines) // 4, 1000)]
    parts = part[:len(part) // 4] + make_more(nasty.parts, args.seed, len(part))
    shapes = part[:len(part) // 4] + make_more(nasty.geometry, args.seed, len(part))
    protocols = [(text, tried) for texts, tried in ((PROTOCOLS, part), (PART_PROTOCOLS, parts), (SHAPE_PROTOCOLS, shapes))
                 for text in texts]
    events = 0
    with ProcessPoolExecutor() as pool, tempfile.TemporaryDirectory() as folder:
        def forms_of(lines, settings):
            blocks = [lines[start:start + BLOCK] for start in range(0, len(lines), BLOCK)]
            return [form for block in pool.map(canonical_forms, blocks, [settings] * len(blocks)) for form in block]

        for decimals in DECIMALS:
            forms = forms_of(lines, reference.Settings(decimals=decimals))
            events = sum(form is not None for form in forms)
            for hash, key_bytes in KEYS:
                options = ["--decimals", str(decimals), "--hash", hash, "--key-bytes", str(key_bytes)]
                settings = reference.Settings(decimals=decimals, hash=hash, key_bytes=key_bytes)
                if not compare(args, lines, forms, settings, options):
                    return 1
        for index, (text, tried) in enumerate(protocols):
            file = Path(folder, f"protocol-{index}.toml")
            text = f'name = "p{index}"\n{text}'
            file.write_text(text, encoding="utf-8")
            settings = reference.Settings.from_toml(text)
            forms = forms_of(tried, settings)
            if not any(forms):
                sys.exit(f"parity: no line is an event, so nothing was tried under\n{text}")
            if not compare(args, tried, forms, settings, ["--protocol", file]):
                print(text)
                return 1
    if not 0 < events < len(lines):
        sys.exit("parity: the lines are all events, or none is: nothing was tried")
    print(f"parity: {len(lines)} lines, {events} events, {len(DECIMALS) * len(KEYS)} overrides, {len(protocols)} protocols, no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
