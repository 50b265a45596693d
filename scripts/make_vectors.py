#!/usr/bin/env python3
"""Write the golden vectors into tests/vectors, from the reference.

    make_vectors.py            write the groups that are not there yet
    make_vectors.py --check    exit 1 if a group is missing, or is not what the reference gives

A group that is there stays as it is: golden vectors do not change when a generator does.

A file is a named group: its settings, and its cases. A case is an input (text, or `input_hex` where
it is not UTF-8) and, for each of the settings, the canonical text and the key, or null where the
line is refused. The groups in `protocols` have, in place of settings, the text of one protocol file
for all cases; their keys have its prefix.
"""

import json
import random
import sys
from pathlib import Path

import nasty
import protocol_vectors
import reference

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "vectors"
SETTINGS = (
    {"decimals": 8, "hash": "blake2b", "key_bytes": 16},
    {"decimals": 7, "hash": "sha256", "key_bytes": 0},
    {"decimals": 6, "hash": "blake2b", "key_bytes": 0},
    {"decimals": 0, "hash": "sha256", "key_bytes": 20},
)


def values(*texts):
    return [f'{{"v":{text}}}'.encode() for text in texts]


def sampled(make, count, seed):
    rng = random.Random(seed)
    return [make(rng) for _ in range(count)]


def groups():
    yield "numbers", values(*nasty.FIXED_NUMBERS)
    yield "numbers-sampled", values(*sampled(nasty.number, 150, 1))
    yield "ties-at-the-ninth-decimal", values(
        *(f"{sign}{whole}.{digits}5" for sign in ("", "-") for whole in (0, 1, 17, 180, 99999)
          for digits in ("00000000", "00000001", "12345678", "12345679", "99999999")),
        # Exact ties, in binary: odd multiples of 2^-9 end in a 5 at the ninth decimal.
        *(repr(odd / 512) for odd in range(1, 40, 2)))
    yield "exponent-boundaries", values(
        *(f"{digits}e{exponent}" for digits in ("1", "9.999999999999999", "1.0000000000000002")
          for exponent in (-9, -8, -6, -5, -4, -3, 14, 15, 16, 17, 22, 23)))
    yield "integers", values(*(str(sign * (2 ** bits + delta)) for sign in (1, -1) for bits in (0, 53, 63, 64, 127, 128, 400)
                               for delta in (-1, 0, 1)), "9" * 5000)
    yield "long-tokens", values("0." + "3" * 2000, "1" * 400 + ".5", "1" + "0" * 400 + "e-400", "0." + "0" * 400 + "1e401",
                                "-0.000000005" + "0" * 1000 + "1", "1e-" + "0" * 300 + "5")
    yield "strings", [b'{"v":' + nasty.string(random.Random(index), text).encode() + b"}"
                      for text in nasty.TEXTS for index in range(4)]
    yield "escapes", values(*(f'"\\{escape}"' for escape in ("\"", "\\", "/", "b", "f", "n", "r", "t", "u0000", "u001f",
                                                            "u0020", "u007f", "u00E9", "u2028", "uFFFF", "uD83D\\uDE00")),
                            *(f'"\\{bad}"' for bad in ("x41", "'", "u12", "u12G4", "U0041", "")))
    yield "lone-surrogates", [text.encode() for text in (
        r'{"v":"\ud800"}', r'{"v":"\udc00"}', r'{"v":"\ud800x"}', r'{"v":"\ud800\u0041"}', r'{"v":"\ud800\ud800\udc00"}',
        r'{"\ud800":1}', r'{"v":[{"\udfff":1}]}', r'{"attempt":"\ud800"}', r'{"attempt":{"\ud800":1},"a":1}',
        r'{"v":"\ud800","v":1}', r'{"v":1,"v":"\ud800"}', r'{"v":{"attempt":"\ud800"}}')]
    yield "names", [text.encode() for text in (
        '{"b":1,"a":2}', '{"a":1,"A":2,"":3," ":4}', '{"aa":1,"a":2,"ab":3,"a\\u0000":4}', '{"é":1,"z":2,"e":3}',
        '{"\U00010000":1,"\uffff":2,"\ue000":3}', '{"\\ud800\\udc00":1,"\\uffff":2}', '{"12345678":1,"123456789":2,"1234567":3}',
        '{"12345678b":1,"12345678a":2}', '{"v":{"z":{"b":1,"a":2},"y":[{"d":1,"c":2}]}}', '{"\\"":1,"\\\\":2,"\\n":3}')]
    yield "duplicate-names", [text.encode() for text in (
        '{"a":1,"a":2}', '{"a":1,"b":2,"a":3}', '{"a":1,"\\u0061":2}', '{"\\u0061":1,"a":2}', '{"v":{"a":1,"a":{"b":1}}}',
        '{"v":{"a":{"b":1},"a":1}}', '{"a":1,"a":1,"a":1}', '{"é":1,"\\u00e9":2}', '{"\U0001f600":1,"\\ud83d\\ude00":2}',
        '{"attempt":1,"attempt":2}', '{"abcdefgh1":1,"abcdefgh2":2,"abcdefgh1":3}')]
    yield "envelope", [json.dumps({name: 1, "a": {name: 2}, "b": [{name: 3}]}).encode() for name in reference.ENVELOPE] + [
        b'{"attemp\\u0074":1}', b'{"Attempt":1}', b'{"attempt ":1}', b'{"attempt":1}', b'{"attempt":NaN}', b'{"attempt":01}']
    yield "white-space", [b" { } ", b"{}\r", b"\t{\t\"a\"\t:\t1\t,\t\"b\"\t:\t[\t1\t,\t2\t]\t}\t\r", b"{\r\"a\":1}", b"{\x0c}",
                          b"{}\x0b", b"\xc2\xa0{}", b"{}\x00", b"\xef\xbb\xbf{}", b"{\"a\":\xe2\x80\xa81}"]
    yield "literals", values("null", "true", "false", "NaN", "Infinity", "-Infinity", "[NaN,-Infinity,1e999,-1e999]",
                             "nan", "-NaN", "+Infinity", "Infinit", "INFINITY", "True", "nul", "nulll", "truefalse")
    yield "malformed", values(*nasty.MALFORMED) + [token.encode() for token in nasty.MALFORMED]
    yield "not-objects", [b"[]", b"null", b"1", b'"x"', b"[{}]", b"{}{}", b"{} x", b"{},", b"x", b"NaN", b"}"]
    yield "invalid-utf8", [b'{"v":"' + bad + b'"}' for bad in (
        b"\x80", b"\xc0\x80", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff", b"\xf8\x88\x80\x80\x80")]
    yield "control-characters", [b'{"v":"' + bytes([code]) + b'"}' for code in (*range(0, 10), *range(11, 33), 127)] + [
        b'{"a\x01":1}', b'{"v":"\x7f\xc2\x80"}']
    yield "depth", [b'{"v":' + b"[" * levels + b"]" * levels + b"}" for levels in (1, 511, 1022, 1023, 1024)] + [
        b'{"v":' * levels + b"1" + b"}" * levels for levels in (512, 1024, 1025)] + [
        b'{"attempt":' + b"[" * 1024 + b"]" * 1024 + b"}"]
    yield "geojson", sampled(lambda rng: nasty.feature(rng).encode(), 60, 2) + [
        b'{"type":"Feature","geometry":null,"properties":{}}',
        b'{"type":"Feature","geometry":{},"properties":{}}',
        b'{"type":"Feature","properties":{}}']
    yield "events-sampled", sampled(lambda rng: nasty.event(rng).encode(), 60, 3)


def all_groups():
    """Where each group is, and the group without the results of its cases."""
    for name, lines in groups():
        yield FOLDER / f"{name}.json", {"group": name, "settings": SETTINGS}, lines
    for name, text, lines in protocol_vectors.groups():
        yield FOLDER / "protocols" / f"{name}.json", {"group": name, "protocol": text}, lines


def case(line, group):
    try:
        entry = {"input": line.decode("utf-8")}
    except UnicodeDecodeError:
        entry = {"input_hex": line.hex()}
    entry["results"] = []
    for setting in settings_of(group):
        try:
            text = reference.canonical(line, setting)
            entry["results"].append({"canonical": text.decode("utf-8"), "key": reference.key(text, setting)})
        except reference.Refused:
            entry["results"].append(None)
    return entry


def settings_of(group):
    if "protocol" in group:
        return [reference.Settings.from_toml(group["protocol"])]
    return [reference.Settings(**options) for options in group["settings"]]


def line_of(entry):
    return entry["input"].encode() if "input" in entry else bytes.fromhex(entry["input_hex"])


def main():
    check = sys.argv[1:] == ["--check"]
    cases = 0
    for path, group, lines in all_groups():
        if path.exists():
            group = json.loads(path.read_text())
            for entry in group["cases"]:
                if entry != case(line_of(entry), group):
                    sys.exit(f"{path.name} is not what the reference gives for {entry}")
        elif check:
            sys.exit(f"{path.name} is missing; run scripts/make_vectors.py")
        else:
            group["cases"] = [case(line, group) for line in lines]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(group, indent=0, ensure_ascii=True) + "\n")
        cases += len(group["cases"])
    print(f"{cases} vectors")


if __name__ == "__main__":
    main()
