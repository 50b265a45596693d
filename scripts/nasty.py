"""Nasty events: a seeded generator of lines that try every rule of the key, valid and not.

Used by parity.py. `line` is for every protocol, `parts` for those that strip, add and select, and
`geometry` for those that know shapes. Every line is bytes without a line end; whether it is an
event is for the reference to say.
"""

import math
import struct

NAMES = ["type", "geometry", "coordinates", "properties", "id", "a", "b", "ab", "aB", "", "attempt",
         "delivery_id", "timestamp", "x-signature", "webhook_id", "received_at", "x-hub-signature-256",
         "é", "ü", "\uffff", "\ue000", "\U0001f600", "\U00010000", "区域", "\u2028", "\x7f", "\x00", "a\x00",
         "abcdefgh", "abcdefgh\x00", "abcdefghi", "abcdefgz", "Attempt", " attempt"]
TEXTS = ["", "x", "São Paulo", "北京", "\U0001f600", "quo\"te", "back\\slash", "sla/sh", "\b\f\n\r\t", "\x00\x1f",
         "\x7f\x80\u2028\u2029\ufeff", "e\u0301", "17.0", "1234567\"", "12345678\\", "aaaaaaaaaaaaaaa\n"]
FIXED_NUMBERS = """
0 -0 0.0 -0.0 0e0 -0e-5 0E+99999999999 1e400 -1e400 1e-400 -1e-400 1E5 1e5 1e+5 5e-324 2.2250738585072014e-308
2.225073858507201e-308 1.7976931348623157e308 1.7976931348623159e308 1e15 1e16 1e17 9999999999999998.0
9007199254740993 9007199254740993.0 9007199254740992.5 1e-4 1e-5 0.0001 0.00001 0.00009999999999 1e22 1e23
18446744073709551615 18446744073709551616 -9223372036854775808 -9223372036854775809 340282366920938463463374607431768211456
123456789012345678901234567890 -340282366920938463463374607431768211457 0.1 0.2 0.30000000000000004 2.675 1.005
0.000000005 0.000000015 0.000000025 1.000000005 1.000000015 0.5 1.5 2.5 -0.5 0.499999999 0.123456785 0.123456775
1517966773.840 1517966773840.5 123456789.123456789 99999999.99999999 999999999.999999999 10000000.00000001
-122.41941550000001 -122.4194155 40.78286500000002 17.30000000000001 NaN Infinity -Infinity
""".split()
MALFORMED = """
01 -01 1. .5 +1 - -- 1e 1e+ 1.e5 0x10 1_000 NAN nan inf -inf Inf -NaN +Infinity Infinit -Infinit tru True nul None
'a' "\\x" "\\u12" "\\u12g4" "\\ud800" "\\udc00" "\\ud800\\u0041" "\\ud800\\ud800\\udc00" "a [1 [1,] [,1] [1,,2] {"a":}
{"a" {"a":1,} {,} {"a":1 {a:1} {1:2} {"a"::1} {"a":1,,"b":2} ] } , : "\\" // /**/ # 1,2 0.1.2 1ee5 --1 [1}
""".split()

# What few members are made of, so that they repeat, and that pointers lead somewhere.
PART_NAMES = ["a", "a", "a", "b", "b", "c", "", "a/b", "~", "0", "coordinates", "é"]
PART_TEXTS = ["", "0", "x", " X ", "\u001c\u001f x \u0085", "\xa0\u3000x\u2003", "ΑΣ", "ΑΣ Σ", "ΟΔΟΣ.", "İ", "ẞ", "Ǆ", "e\u0301",
              "\u1e9b\u0323", "\u0344", "\u1100\u1161\u11a8", "\u212b", "1", " 1_0.5 ", "1__0", "1_", "_1", "1_e5", "1e5_0", "+.5", "5.", ".",
              "-0", "-0.001", "nan", "-NaN", "+Infinity", "-inf", "infinit", "1e400", "-1e-400", "0x10", "1,5", "1\x00", "\t12\n\x0b\x0c\r",
              "\x1f1", "\u20031\u2003", "\x1f1\u2003", "1\x85", "١٢", "１.5", "2.5", "0.125", "1.005", "True", "None"]
# Ordinates of one shape are from one of these families: small ones meet and tie, others are alike in
# value or once rounded, and differ as they are written.
ORDINATES = {
    "grid": ["0", "1", "2", "3"],
    "spelt": ["0", "0.0", "-0.0", "-0", "1", "1.0", "1e0", "10e-1", "2", "2.0", "0.2e1"],
    "drift": ["0.1", "0.100000001", "0.10000000000000002", "0.3", "0.30000000000000004", "0.125", "0.12", "0.135", "0.115", "1", "1.0",
              "1.000000004", "1.000000005", "1.000000006", "0.999999999", "-0.000000001", "-0.001", "0", "0.004", "2.675", "2.68"],
    "magnitude": ["1e300", "-1e300", "1.0000000000000002e300", "1e308", "-1.7976931348623157e308", "1e-300", "-1e-300", "5e-324",
                  "1e154", "1e-162", "0", "1", "1.0", "-1"],
    "big": ["9007199254740991", "9007199254740992", "9007199254740992.0", "9007199254740993", "9007199254740994", "9007199254740994.0",
            "-9007199254740993", "-9007199254740992.0", "18446744073709551615", "18446744073709551616", "18446744073709551617",
            "18446744073709551616.0", "1.8446744073709552e19", "-9223372036854775809", "340282366920938463463374607431768211457", "0", "1"],
}


def number(rng):
    kind = rng.randrange(16)
    if kind < 3:
        return rng.choice(FIXED_NUMBERS)
    if kind == 3:  # a double of any magnitude, from its bits
        value = struct.unpack("<d", rng.randbytes(8))[0]
        return repr(value) if math.isfinite(value) else "1.0"
    if kind == 4:  # a coordinate, clean
        return repr(round(rng.uniform(-180, 180), rng.randrange(0, 9)))
    if kind == 5:  # a coordinate with drift
        return repr(round(rng.uniform(-180, 180), 6) + rng.choice([1e-12, -1e-12, 1e-9, 3e-14]))
    if kind == 6:  # a tie, or what looks like one, at every place
        places = rng.randrange(0, 12)
        return f"{rng.choice(['', '-'])}{rng.randrange(10 ** rng.randrange(1, 9))}.{rng.randrange(10 ** 12):012d}"[: places + 12] + "5"
    if kind == 7:  # an exact tie: an odd multiple of a power of two
        return repr((2 * rng.randrange(1 << 20) + 1) / 2.0 ** rng.randrange(1, 30))
    if kind == 8:  # near a power of ten
        value = 10.0 ** rng.randrange(-12, 24)
        return repr(rng.choice([value, math.nextafter(value, 0), math.nextafter(value, math.inf), -value]))
    if kind == 9:  # an integer of any size
        return str(rng.choice([-1, 1]) * rng.getrandbits(rng.choice([1, 8, 31, 53, 62, 63, 64, 65, 100, 128, 129, 500])))
    if kind == 10:  # many digits, odd exponents
        digits = "".join(rng.choice("0123456789") for _ in range(rng.randrange(1, 40)))
        return f"{rng.choice(['', '-'])}{rng.randrange(10)}.{digits}{rng.choice(['e', 'E'])}{rng.choice(['', '+', '-'])}{rng.randrange(0, 330)}"
    if kind == 11:  # halfway between two doubles
        value = abs(struct.unpack("<d", rng.randbytes(8))[0])
        if not (1e-10 < value < 1e20):
            value = rng.uniform(0, 1e9)
        exact = (int(value * 2 ** 60) * 2 + 1)
        return f"{exact // 2 ** 61}.{exact * 5 ** 61 % 10 ** 61:061d}"
    if kind == 12:  # large with decimals
        return repr(rng.uniform(0, 10.0 ** rng.randrange(5, 18)))
    if kind == 13:  # near a power of two, where the doubles below are nearer than those above
        value = 2.0 ** rng.randrange(-1074, 1024)
        return repr(rng.choice([value, math.nextafter(value, 0), math.nextafter(value, math.inf), -value]))
    if kind == 14:  # large, and halfway between two shortest decimals
        bits = rng.randrange(46, 53)
        return repr(2.0 ** bits + rng.randrange(1 << 46) + rng.randrange(64) * 2.0 ** (bits - 52))
    return f"{rng.randrange(-1000, 1000)}.{rng.randrange(10 ** 9):0{rng.randrange(1, 20)}d}"


def string(rng, text):
    """`text` as a JSON string, each character escaped or not at random."""
    out = []
    for character in text:
        code = ord(character)
        must = code < 0x20 or character in "\"\\"
        if must or rng.random() < 0.15:
            short = {"\"": "\\\"", "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
            if character in short and rng.random() < 0.7:
                out.append(short[character])
            elif code > 0xFFFF:
                code -= 0x10000
                out.append(f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04X}")
            else:
                out.append(rng.choice([f"\\u{code:04x}", f"\\u{code:04X}"]))
        else:
            out.append(character)
    return '"' + "".join(out) + '"'


def space(rng):
    return rng.choice(["", "", "", "", " ", "  ", "\t", "\r", " \t "])


def value(rng, level):
    kind = rng.randrange(10 if level < 4 else 7)
    if kind < 4:
        return number(rng)
    if kind == 4:
        return rng.choice(["null", "true", "false"])
    if kind < 7:
        text = rng.choice(TEXTS) if rng.random() < 0.7 else "".join(
            chr(rng.choice([rng.randrange(0x20, 0x7F), rng.randrange(0x80, 0xD800), rng.randrange(0x1F000, 0x20000)]))
            for _ in range(rng.randrange(20)))
        return string(rng, text)
    if kind == 7:
        return "[" + ",".join(space(rng) + value(rng, level + 1) + space(rng) for _ in range(rng.randrange(5))) + "]"
    return event(rng, level + 1)


def event(rng, level=0):
    members = []
    for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 30]) if level else rng.randrange(1, 9)):
        name = string(rng, rng.choice(NAMES))
        members.append(f"{space(rng)}{name}{space(rng)}:{space(rng)}{value(rng, level)}{space(rng)}")
    return "{" + ",".join(members) + "}"


def feature(rng):
    """A plausible GeoJSON event."""
    coordinates = f"[{number(rng)}, {number(rng)}]"
    sensor = string(rng, rng.choice(TEXTS)) if rng.random() < 0.2 else '"SN-1"'
    return (f'{{"type":"Feature","geometry":{{"type":"Point","coordinates":{coordinates}}},'
            f'"properties":{{"sensor_id":{sensor},"reading":{number(rng)}}},"attempt":{rng.randrange(5)}}}')


def damaged(rng, line):
    """One edit at a random place: most are no events any more."""
    at = rng.randrange(len(line) + 1)
    kind = rng.randrange(5)
    if kind == 0:
        return line[:at]
    if kind == 1:
        return line[:at] + bytes([rng.choice([0, 1, 9, 11, 12, 13, 0x1F, 0x20, 0x7F, 0x80, 0xC0, 0xED, 0xFF,
                                              *b"\"\\{}[]:,0123456789.eE+-tfnNI"])]) + line[at:]
    if kind == 2:
        return line[:at] + line[at + 1:]
    if kind == 3:
        return line[:at] + rng.choice([b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\\ud83d", b"\\udc00"]) + line[at:]
    return line + rng.choice([b"x", b" x", b"{}", b",", b"\x00", b"\x0c", b"\x1a", b"\xc2\xa0", b"\xef\xbb\xbf"])


def deep(rng):
    levels = rng.choice([10, 511, 512, 1022, 1023, 1024, 1025, 3000])
    if rng.random() < 0.5:
        return '{"a":' + "[" * levels + "]" * levels + "}"
    return '{"a":' * levels + "1" + "}" * levels


def line(rng):
    kind = rng.randrange(100)
    if kind < 45:
        return event(rng).encode()
    if kind < 70:
        return feature(rng).encode()
    if kind < 90:
        return damaged(rng, (event(rng) if rng.random() < 0.5 else feature(rng)).encode())
    if kind < 96:
        token = rng.choice(MALFORMED)
        name = rng.choice(["v", "attempt"])
        return rng.choice([f'{{"{name}":{token}}}', f'{{"{name}":[{token}]}}', f'{{"{name}":{token},"{name}":1}}', token]).encode()
    if kind < 98:
        return rng.choice(["[]", "null", "1", '"x"', "{}", " {} ", "{}\r", "\ufeff{}", "{}{}", "NaN", "[{}]", "\x0c", "\x00", "\xa0"]).encode()
    return deep(rng).encode()


def parts(rng, level=0):
    """An event of few names, many of them twice, for pointers and transforms."""
    members = []
    for _ in range(rng.randrange(1, 6)):
        members.append(f"{string(rng, rng.choice(PART_NAMES))}:{space(rng)}{part(rng, level + 1)}")
    return "{" + ",".join(members) + "}"


def part(rng, level):
    kind = rng.randrange(12 if level < 4 else 8)
    if kind < 3:
        return string(rng, rng.choice(PART_TEXTS))
    if kind < 5:
        return number(rng)
    if kind == 5:
        return rng.choice(["0", "0.0", "-0.0", "1e-400", "2.5", "0.125", "-0.001", "17", "9" * 309, "1" + "0" * 308, "1e999", "NaN"])
    if kind < 8:
        return rng.choice(["null", "true", "false", '""', "[]", "{}", r'"\ud800"', r'" \udc00 A"', r'"\ud800Σ"', r'"ΑΣ\ud800"'])
    if kind == 8:
        return "[" + ",".join(part(rng, level + 1) for _ in range(rng.randrange(4))) + "]"
    return parts(rng, level)


def ordinate(rng, family):
    if rng.random() < 0.002:
        return rng.choice(["null", "true", '"1"', "[]", "NaN", "1e999", "-Infinity", "9" * 309, "{}"])
    if family == "random":
        return number(rng)
    if family == "degrees":
        return repr(round(rng.uniform(-180, 180), rng.randrange(0, 12)))
    return rng.choice(ORDINATES[family])


def position(rng, family):
    count = rng.choices([2, 3, 4, 1, 0], [900, 70, 20, 5, 5])[0]
    return [ordinate(rng, family) for _ in range(count)]


def ring(rng, family):
    """Mostly closed; of grid points, most of them anything but simple."""
    kind = rng.randrange(8)
    if kind == 0:  # a rectangle, so that there is one that is well-behaved
        x, y = (rng.randrange(-5, 5) for _ in range(2))
        corners = [[x, y], [x + rng.randrange(1, 4), y], [x + 1, y + 1], [x, y + rng.randrange(1, 4)]]
        vertices = [[f"{o}.0" if family == "spelt" and rng.random() < 0.5 else str(o) for o in corner] for corner in corners]
    else:
        vertices = [position(rng, family) for _ in range(rng.choice([0, 1, 2, 3, 3, 3, 4, 4, 5, 8, 13]))]
    if kind == 1:  # around twice or more, so that several rotations are equal
        vertices *= rng.randrange(2, 4)
    if kind == 2:  # there and back again: no area
        vertices += vertices[-2:0:-1]
    if kind == 3 and vertices:  # a vertex again, beside itself or elsewhere
        vertices.insert(rng.randrange(len(vertices) + 1), rng.choice(vertices))
    if kind == 4:  # on a line
        vertices = [[first, first] for first, *_ in filter(None, vertices)]
    if rng.random() < 0.5:
        turn = rng.randrange(len(vertices) + 1)
        vertices = (vertices[turn:] + vertices[:turn])[::rng.choice([1, -1])]
    if vertices and rng.random() < 0.93:
        vertices = vertices + [vertices[0]]
    if vertices and family in ("spelt", "drift") and rng.random() < 0.3:  # closed, perhaps, once rounded
        vertices = vertices[:-1] + [[rng.choice([o, ordinate(rng, family)]) for o in vertices[-1]]]
    return vertices


def coordinates(rng, kind):
    """Nested lists with the texts of ordinates in them."""
    family = rng.choice([*ORDINATES, "grid", "spelt", "drift", "degrees", "random"])
    several = rng.choice([0, 1, 1, 2, 3, 5])

    def polygon():
        rings = [ring(rng, family) for _ in range(rng.choice([0, 1, 1, 1, 2, 3, 4]))]
        return rings + [rng.choice(rings)] if rings and rng.random() < 0.1 else rings

    if kind == "Polygon":
        return polygon()
    if kind == "MultiPolygon":
        polygons = [polygon() for _ in range(several)]
        return polygons + [rng.choice(polygons)] if polygons and rng.random() < 0.2 else polygons
    if kind == "MultiLineString":
        return [ring(rng, family) for _ in range(several)]
    return position(rng, family) if kind == "Point" else [position(rng, family) for _ in range(several * 2)]


def array(rng, value):
    if isinstance(value, str):
        return value
    return "[" + ",".join(space(rng) + array(rng, element) for element in value) + "]"


def object_of(rng, *pairs):
    """An object of these members in any order; sometimes one is there twice, or not at all."""
    pairs = [f'"{name}":{space(rng)}{text}' for name, text in pairs if rng.random() < 0.98]
    if pairs and rng.random() < 0.04:
        pairs.append(rng.choice(pairs))
    if rng.random() < 0.6:
        rng.shuffle(pairs)
    return "{" + ",".join(pairs) + "}"


def geometry_object(rng, level=0):
    kind = rng.choice(["Polygon"] * 6 + ["MultiPolygon"] * 3 + ["MultiPoint", "MultiPoint", "Point", "LineString", "MultiLineString"])
    if level < 3 and rng.random() < 0.15:
        inner = [geometry_like(rng, level + 1) for _ in range(rng.randrange(4))]
        return object_of(rng, ("type", '"GeometryCollection"'), ("geometries", "[" + ",".join(inner) + "]"))
    # The name of another type is there to have coordinates that are not as they should be.
    name = rng.choice(["Polygon", "MultiPoint", "polygon", "Feature", "Curve"]) if rng.random() < 0.06 else kind
    text = array(rng, coordinates(rng, kind))
    if rng.random() < 0.03:
        text = rng.choice(["null", "[]", "[[]]", "[[[]]]", "{}", '"x"', "[null]", f"[{text}]", f"[{text},1]"])
    pairs = [("type", string(rng, name)), ("coordinates", text)]
    if rng.random() < 0.05:  # the last one counts
        pairs.append(rng.choice([("type", '"MultiPoint"'), ("type", '"Polygon"'), ("type", "null"), ("coordinates", array(rng, coordinates(rng, kind)))]))
    if rng.random() < 0.1:  # not a part of the shape, even if it looks like one
        pairs.append(("extra", geometry_object(rng, 3)))
    return object_of(rng, *pairs)


def geometry_like(rng, level=0):
    if rng.random() < 0.93:
        return geometry_object(rng, level)
    return rng.choice(["null", "[]", "{}", "1", '"Polygon"', geometry_feature(rng, level + 1), f"[{geometry_object(rng, 3)}]"])


def geometry_feature(rng, level=0):
    properties = object_of(rng, ("area", geometry_like(rng, 3)), ("reading", number(rng))) if rng.random() < 0.3 else "{}"
    pairs = [("type", '"Feature"'), ("geometry", geometry_like(rng, level)), ("properties", properties)]
    if rng.random() < 0.05:
        pairs.append(("geometry", geometry_like(rng, level)))
    return object_of(rng, *pairs)


def geometry(rng):
    """An event with geometries somewhere in it."""
    kind = rng.randrange(10)
    if kind < 2:
        return geometry_object(rng)
    if kind < 5:
        return geometry_feature(rng)
    if kind < 6:
        features = [rng.choice([geometry_feature, geometry_feature, geometry_object])(rng, 2) for _ in range(rng.randrange(4))]
        return object_of(rng, ("type", '"FeatureCollection"'), ("features", "[" + ",".join(features) + "]"))
    if kind < 7:  # one structure in many lines, with only the numbers another
        digits = [str(rng.randrange(10)) for _ in range(6)]
        corners = [digits[0:2], digits[2:4], digits[4:6], digits[0:2]]
        return f'{{"type":"Feature","geometry":{{"type":"Polygon","coordinates":[{array(rng, corners)}]}},"n":{rng.randrange(100)}}}'
    wrapped = rng.choice([geometry_object, geometry_feature])(rng, 1)
    list_of = f"[{rng.randrange(9)},[{wrapped}],{geometry_object(rng, 3)}]"
    return object_of(rng, ("type", rng.choice(['"zone"', "7", "null", '"Feature"'])), ("data", rng.choice([wrapped, list_of])),
                   ("attempt", geometry_object(rng, 3)), ("coordinates", list_of if rng.random() < 0.1 else number(rng)))
