"""What the golden vectors of protocols are made of: for each setting and value, the same events, so
that two files side by side say what a value makes equal."""

import json
import random

import nasty


def settings():
    yield "strip-names", '[event]\nstrip = ["attempt", "", "/received_at"]\n', [
        '{"a":1}', '{"a":1,"attempt":1}', '{"attempt":{"b":[NaN]},"a":1,"received_at":"x","":2}', '{"a":1,"attemp\\u0074":2}',
        '{"a":1,"attempt":1,"attempt":2}', '{"a":1,"Attempt":1}', '{"a":{"attempt":1}}', '{"a":1,"/received_at":1}', '{}']
    yield "strip-pointers", '[event]\nstrip = ["/a/b", "/list/1", "/list/0/b", "/list/01", "/x~1y/~0", "/a/c/d/e", "/s/0"]\n', [
        '{"a":{"z":1}}', '{"a":{"b":1,"z":1}}', '{"a":{"b":[1],"\\u0062":2,"z":1}}', '{"a":{"b":1,"z":1},"a":{"b":2,"z":1}}',
        '{"a":[1,2]}', '{"a":"b"}', '{"b":1}', '{"list":[1,3]}', '{"list":[1,2,3]}', '{"list":[{"b":1},2,3]}', '{"list":[{},{"b":1},3]}',
        '{"list":{"1":1,"01":2,"x":3}}', '{"x/y":{"~":1,"~0":2}}', '{"a":{"c":{"d":{"e":1}}}}', '{"a":{"c":{"d":[]}}}', '{"s":"text"}',
        '{"a":{"b":"\\ud800"}}', '{"x/y":{"\\ud800":1}}']
    added = ['{}', '{"z":1}', '{"n":5,"z":1}', '{"z":1,"n":{"a":1},"y":2}', '{"n":1,"z":1,"n":2}', '{"event_type":"x","f":1e999,"z":1}',
             '{"z":{"n":1}}', '{"t":"\\ud800"}']
    constants = 'add = {n = 17, event_type = "zone \\u00e9", f = 0.125, t = true}\n'
    yield "add", f"[event]\n{constants}", added
    yield "add-as-written", f'[event]\n{constants}[canonical]\nmembers = "as-written"\n', added
    yield "add-rounded", f"[event]\n{constants}[numbers]\ndecimals = 2\n", added[:4]
    yield "add-jcs", f'[event]\n{constants}[canonical]\nscheme = "jcs"\n', [*added, '{"z":1,"z":1}']
    yield "add-what-is-stripped", '[event]\nstrip = ["n", "/z/a"]\nadd = {n = -0.0}\n[canonical]\nmembers = "as-written"\n', [
        '{"n":1,"z":{"a":1,"b":2}}', '{"z":{"b":2},"n":0}', '{"z":{"b":2}}', '{"n":-0.0,"z":{"b":2}}']

    repeated = ['{"a":1}', '{"a":1,"a":2}', '{"a":2}', '{"a":1,"\\u0061":2}', '{"x":{"a":1,"b":2,"a":3}}', '{"a":{"b":1},"a":[]}',
                '{"gone":1,"gone":2,"a":1}', '{"gone":{"a":1,"a":2},"a":1}', '{"x":{"gone":1,"gone":1}}', '{"a":1,"b":2,"a":1}']
    for value in ("last", "reject"):
        yield f"duplicate-names-{value}", f'[event]\nstrip = ["gone"]\nduplicate_names = "{value}"\n', repeated
    endless = ['{"a":NaN}', '{"a":[1,Infinity]}', '{"a":1e999}', '{"a":-Infinity}', '{"a":-1e400}', '{"a":1e308}', '{"gone":NaN,"a":1}',
               '{"a":' + "9" * 310 + "}", '{"a":NaN,"a":1}']
    for value in ("accept", "reject"):
        yield f"non-finite-{value}", f'[event]\nstrip = ["gone"]\nnon_finite = "{value}"\n', endless

    rounded = [f'{{"a":{text}}}' for text in (
        "0.1", "0.10000000000000001", "0.1000000001", "0.125", "0.375", "2.5", "3.5", "1.005", "2.675", "-0.001", "0.000000005", "17",
        "17.0", "1e22", "0.123456789", "12345678.123456789", "5e-324", "2.2250738585072014e-308", "1.7976931348623157e308")]
    yield "decimals-absent", "", rounded
    for value in (0, 2, 8, 323):
        yield f"decimals-{value}", f"[numbers]\ndecimals = {value}\n", rounded
    places = ['{"coordinates":[0.125,2.5],"reading":0.125}', '{"coordinates":[0.12,2.5],"reading":0.125}',
              '{"g":{"coordinates":[[0.125,{"x":0.125}]]},"x":{"coordinate":0.125}}', '{"a":{"coordinates":0.125}}', '{"Coordinates":0.125}']
    for value in ("everywhere", "coordinates"):
        yield f"where-{value}", f'[numbers]\ndecimals = 2\nwhere = "{value}"\n', places
    zeros = [f'{{"a":{text}}}' for text in ("0", "-0", "0.0", "-0.0", "-0e5", "-1e-400", "-0.001", "0.001", "[-0.0,-1.5]")]
    for value in ("keep", "fold"):
        yield f"negative-zero-{value}", f'[numbers]\ndecimals = 2\nnegative_zero = "{value}"\n', zeros
    whole = [f'{{"a":{text}}}' for text in (
        "17", "17.0", "1.7e1", "17.001", "17.5", "0", "0.0", "-0.0", "-3.0", "9007199254740991.0", "9007199254740992", "9007199254740992.0",
        "9007199254740993", "9007199254740994", "9007199254740994.0", "-9007199254740992.0", "1e22", "10000000000000000000000")]
    for value in ("keep", "unify"):
        yield f"integral-{value}", f'[numbers]\ndecimals = 2\nintegral = "{value}"\n', whole
    yield "integral-unify-and-fold", '[numbers]\nnegative_zero = "fold"\nintegral = "unify"\n', [*zeros, *whole]

    lines = ['{"b":1,"a":[17,17.0]}', ' { "a" : [17,17.0], "b" : 1 }\r', '{"\\u0061":[17,1.7e1],"b":1}', '{"a":[-0,-0.0,0]}', '{"a":[1e-5,1e21,1e20,1e16]}',
             '{"a":9007199254740993}', '{"a":9007199254740992}', '{"\\uffff":1,"\\ud800\\udc00":2}', '{"a":"\\u007f\\u00e9/\\/"}',
             '{"a":1,"a":1}', '{"a":1e999}', '{"a":"\\ud800"}', '[]', '{"a":01}', "no event"]
    for value in ("python-json", "jcs", "bytes"):
        yield f"scheme-{value}", f'[canonical]\nscheme = "{value}"\n', lines
    yield "scheme-jcs-rounded", '[event]\nstrip = ["/b"]\n[numbers]\ndecimals = 2\n[canonical]\nscheme = "jcs"\n', [*lines, *rounded]
    orders = ['{"b":1,"a":{"d":1,"c":2}}', '{"a":{"c":2,"d":1},"b":1}', '{"b":1,"a":2,"b":3}', '{"a":[{"y":1,"x":2}],"B":1}',
              '{"\U00010000":1,"\uffff":2,"é":3,"z":4}']
    for value in ("sorted", "as-written"):
        yield f"members-{value}", f'[canonical]\nmembers = "{value}"\n', orders
    for value in ("compact", "spaced"):
        yield f"separators-{value}", f'[canonical]\nseparators = "{value}"\n', [
            '{"a" : [1,2,{}],"b":[]}', '{"a":[ 1, 2, { } ], "b":[ ] }', '{"a":",:"}', '{"a":{"b":{"c":null}}}', "{}"]
    for value in ("utf8", "escape"):
        yield f"non-ascii-{value}", f'[canonical]\nnon_ascii = "{value}"\n', [
            '{"é":"\U0001f600"}', '{"\\u00e9":"\\ud83d\\ude00"}', '{"a":"\x7f\\u001f\\u2028\\"\\\\/"}', '{"a":"\\ud800"}', '{"\\udc00":1,"a":2}',
            '{"\\ud800":1,"\\ud800":2}', '{"\\uffff":1,"\U00010000":2,"\\ud83d":3}']

    events = ['{"a":1}', '{ "a" : 1 }', '{"a":2}', '{}']
    for hash, count in (("blake2b", 1), ("blake2b", 16), ("blake2b", 64), ("blake2b", 0), ("sha256", 1), ("sha256", 16), ("sha256", 32), ("sha256", 0)):
        yield f"key-{hash}-{count}", f'[key]\nhash = "{hash}"\nbytes = {count}\n', events
    yield "key-absent", "", events
    yield "key-prefix", '[key]\nprefix = "inv:é "\nbytes = 4\n', events


def select(member, *others, **settings):
    """`[[select]]` tables as one line of TOML."""
    tables = [dict(member=member, **settings), *others]
    return f"select = [{', '.join(map(toml, tables))}]\n"


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {toml(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def selections():
    things = ["null", "false", "true", "0", "-0", "0.0", "-0.0", "17", "17.0", "1e16", "0.125", "NaN", "-Infinity", '""', '"x"', "[]", "[0]", "{}",
              '{"b":1}', '"\\ud800"']
    of_a = [f'{{"a":{thing}}}' for thing in things]
    yield "select-pointer", select("x", pointer="/a"), [*of_a, '{"b":1}', '{"a":1,"b":"\\ud800"}', '{"a":1,"a":2}', "{}", "[]"]
    inside = [*of_a, '{"a":{"b":{"d":1,"c":[2.0]},"e":3}}', '{"a":{"b":1,"b":2}}', '{"a":{"b":1},"a":{"b":3}}', '{"a":{"b":null}}', '{"b":1}']
    yield "select-pointer-inside", select("x", pointer="/a/b"), inside
    yield "select-pointer-index", select("x", {"member": "y", "pointer": "/a/b/1"}, pointer="/a/0"), [
        *of_a, '{"a":[1,2]}', '{"a":[]}', '{"a":{"0":1,"b":[3,4]}}', '{"a":{"b":[3]}}', '{"a":{"b":{"1":5}}}', '{"a":[[1]]}']
    yield "select-pointer-index-not-plain", select("x", pointer="/a/01"), ['{"a":[1,2]}', '{"a":{"01":1,"1":2}}', '{"a":[]}']
    yield "select-pointer-escapes", select("x", {"member": "y", "pointer": "/"}, {"member": "z", "pointer": "/~01"}, pointer="/a~1b/~0"), [
        '{"a/b":{"~":1},"":2,"~1":3}', '{"a":{"b":{"~":1}},"/":2}', '{"a/b":null}', '{"a/b":[1]}']
    yield "select-default", select("x", pointer="/a/b", default="none"), inside
    yield "select-default-empty", select("x", {"member": "y", "pointer": "/b", "default": 0.125}, pointer="/a", default=[]), inside
    yield "select-first-of", select("x", first_of=["/a", "/b/c", "/d"]), [
        *of_a, '{"a":0,"b":{"c":2}}', '{"a":1,"b":{"c":2}}', '{"a":1,"b":17}', '{"b":17}', '{"a":[],"b":{"c":{}},"d":false}', '{"d":-0.0}', "{}"]
    yield "select-first-of-value", select("x", {"member": "y", "first_of": ["/b", {"value": False}]}, first_of=["/a", {"value": "none"}]), [
        *of_a, '{"a":1,"b":0}', "{}"]
    yield "select-first-of-value-first", select("x", first_of=[{"value": 0}, {"value": 1.5}, "/a"]), of_a[:4]

    texts = ["", " x ", "\\t\\n\\u000b\\f\\r\\u001c\\u001d\\u001e\\u001fx\\u0085\\u00a0\\u3000", "x y", "\\u200bx\\u200b", "\\ufeffx", " \\ud800 ",
             "ÀÉ", "ΑΣ", "ΑΣ Σ", "Σ", "ΑΣ\\ud800Σ", "İ", "ẞ", "Ǆ", "e\\u0301", "\\u00e9", "\\u212b", "\\u1e9b\\u0323", "\\u1100\\u1161\\u11a8", "a\\u0323\\u0307",
             "a\\u0307\\u0323", "\\ud800\\u0301", "True"]
    given = [f'{{"a":"{text}"}}' for text in texts]
    for transform in ("strip", "lower", "nfc", "str"):
        yield f"select-{transform}", select("x", pointer="/a", transforms=[transform]), [*given, *of_a, '{"a":-0}', f'{{"a":{"9" * 400}}}', "{}"]
    numerals = [*of_a, *(f'{{"a":"{text}"}}' for text in (
        "1", " 1 ", "1_0.5", "1__0", "_1", "1_", "1_e5", "1e1_0", ".5", "5.", ".", "+1", "-0", "nan", "-NAN", "inf", "+Infinity", "infinit", "1e400",
        "-1e-400", "0x10", "1,5", "1 2", "\\u20031\\u2003", "\\u00a01", "\\u001f1", "\\u001f1\\u2003", "\\u0661", "\\uff11.5", "1\\u0000", "")),
        *(f'{{"a":{text}}}' for text in ("2.5", "3.5", "0.5", "1.005", "2.675", "0.375", "-0.001", "1e22", "123456789012345678901234567890", "9" * 309, "1e999")),
        "{}"]
    for decimals in (0, 2):
        yield f"select-fixed-{decimals}", select("x", pointer="/a", transforms=[{"fixed": decimals}]), numerals
    yield "select-fixed-323", select("x", pointer="/a", transforms=[{"fixed": 323}]), [
        f'{{"a":{text}}}' for text in ("0.1", "5e-324", "2.2250738585072014e-308", "1e22", "17", "true")]
    yield "select-sort-by", select("x", {"member": "y", "first_of": ["/b", {"value": []}], "transforms": [{"sort_by": "/k/0"}]},
                                   pointer="/a", transforms=[{"sort_by": "/k"}]), [
        '{"a":[{"k":"b","n":1},{"n":2,"k":"a"},{"k":"b","n":0}]}', '{"a":[]}', '{"a":[{"k":"\\ud800"},{"k":"\uffff"},{"k":"\U00010000"},{"k":""}]}',
        '{"a":[{"k":"a"},{"k":1}]}', '{"a":[{"k":"a"},{}]}', '{"a":[{"k":"a"},17]}', '{"a":[null]}', '{"a":{"k":"a"}}', '{"a":null}', "{}",
        '{"a":[{"k":"b","k":"a"},{"k":"aa"}],"b":[{"k":["x"]},{"k":["w",1]}]}', '{"a":[],"b":[{"k":[]}]}']
    yield "select-transforms-in-order", select("x", pointer="/a", transforms=["str", "strip", "lower", "nfc"]), [*given, *of_a]
    yield "select-transforms-of-constants", select(
        "x", {"member": "y", "first_of": ["/b", {"value": 0.5}], "transforms": [{"fixed": 0}]}, pointer="/a", default=True, transforms=["str"]), [
        "{}", '{"a":1}', '{"b":1.5}', '{"a":null,"b":false}']

    parts = ['{"a":17.0,"b":{"d":-0.0,"c":0.125}}', '{"b":{"c":0.125,"d":0.0},"a":17}', '{"a":{"b":1,"b":2},"b":NaN}', '{"a":"\\ud800","b":"é"}',
             '{"a":1,"c":{"x":1,"x":2},"b":1}', "{}"]
    two = select("z", {"member": "coordinates", "pointer": "/b"}, pointer="/a")
    yield "select-sorted", two, parts
    yield "select-as-written", f'{two}[canonical]\nmembers = "as-written"\nseparators = "spaced"\nnon_ascii = "escape"\n', parts
    yield "select-jcs", f'{two}[numbers]\ndecimals = 2\n[canonical]\nscheme = "jcs"\n', parts
    yield "select-reject", f'{two}[event]\nduplicate_names = "reject"\nnon_finite = "reject"\n', parts
    repeated = ['{"a":{"b":1},"a":{"b":1}}', '{"a":{"b":1,"b":1},"d":2}', '{"a":{"b":1,"c":1,"c":1},"d":2,"d":2}', '{"a":null,"a":{"b":1}}',
                '{"a":{"b":null},"c":1,"c":2}', '{"a":{"b":true},"c":1,"c":2}', '{"a":[{"b":1,"b":1}],"c":1}']
    for settings in ('[event]\nduplicate_names = "last"\n', '[event]\nduplicate_names = "reject"\n', '[canonical]\nscheme = "jcs"\n'):
        yield f"select-repeated-{settings.split(chr(34))[1]}", select("x", first_of=["/a/b", "/c"]) + settings, repeated
    yield "select-where-coordinates", f'{two}[numbers]\ndecimals = 2\nwhere = "coordinates"\n', [
        '{"a":0.125,"b":0.125}', '{"a":{"coordinates":[0.125]},"b":[0.125]}']


def polygon(*rings):
    return f'{{"type":"Polygon","coordinates":[{",".join(rings)}]}}'


# A square with two holes, the first ring of which runs clockwise.
SQUARE = "[[0,0],[0,9],[9,9],[9,0],[0,0]]"
HOLES = ("[[1,1],[1,2],[2,2],[2,1],[1,1]]", "[[5,5],[6,5],[6,6],[5,6],[5,5]]")
RINGS = (
    "[[0,0],[9,0],[9,9],[0,9],[0,0]]", "[[9,9],[0,9],[0,0],[9,0],[9,9]]", "[[9,0],[0,0],[0,9],[9,9],[9,0]]",
    # Points that meet again, so that more than the least vertex decides where a ring starts.
    "[[0,0],[2,0],[0,2],[0,0],[1,0],[0,1],[0,0]]", "[[0,0],[1,0],[0,1],[0,0],[2,0],[0,2],[0,0]]", "[[0,0],[0,0],[1,0],[0,1],[0,0]]",
    "[[1,0],[0,1],[0,0],[1,0],[0,1],[0,0],[1,0]]", "[[0,0],[1,0],[0,1],[0,0],[1,0],[0,1],[0,0]]",
    # What is written in two ways.
    "[[0,0],[1.0,0],[0,1],[0,0]]", "[[1.0,0],[0,1],[0,0],[1.0,0]]", "[[0.0,0],[1,0],[0,1],[0,0]]", "[[0,0],[1,0],[0,1],[0.0,-0.0]]",
    "[[1,0],[0.001,1],[0,0],[1.001,0]]", "[[0,0],[1,0],[0,1],[0,0.001]]", "[[0.004,0],[0.001,5],[5,0],[0.004,0]]",
    "[[0,0,5],[1,0,6],[0,1,7],[0,0,5]]", "[[1,0,6],[0,1,7],[0,0,5],[1,0,6]]", "[[0,0,5],[1,0],[0,1,7,8],[0,0,5]]", "[[0,0,5],[1,0],[0,1],[0,0]]",
    # Degenerate ones.
    "[]", "[[1,1]]", "[[1,0],[0,1],[1,0]]", "[[2,0],[0,1],[0,0]]", "[[1,0],[0,1],[0,0],[5,5]]", "[[2,2],[0,0],[1,1],[2,2]]",
    "[[1,1],[0,0],[1,0],[0,1],[1,1],[1,1]]", "[[2,0],[0,2],[2,2],[0,0],[2,0]]", "[[3,3],[3,3],[3,3],[3,3]]",
    # Magnitudes that no product of doubles holds, and integers that doubles take for one.
    "[[1e300,0],[0,1e300],[0,0],[1e300,0]]", "[[1e-300,0],[0,1e-300],[0,0],[1e-300,0]]", "[[1e308,1e308],[-1e308,1e308],[0,-1e308],[1e308,1e308]]",
    "[[9007199254740993,1],[9007199254740992,2],[9007199254740992.0,3],[0,0],[9007199254740993,1]]",
    "[[18446744073709551617,0],[18446744073709551616,1],[0,0],[18446744073709551617,0]]",
    "[[0.1,0.1],[0.2,0.2],[0.3,0.3],[0.1,0.1]]", "[[0.1,0.7],[0.3,0.9],[0.7,1.3],[0.1,0.7]]",
)


def shapes():
    """Geometries where they are found, and where they are not."""
    square, turned = polygon("[[1,0],[1,1],[0,1],[0,0],[1,0]]"), polygon("[[0,0],[1,0],[1,1],[0,1],[0,0]]")
    feature = f'{{"type":"Feature","geometry":{square},"properties":{{"area":{square}}},"extra":{square}}}'
    yield from (square, turned, feature, feature.replace('"Feature"', '"feature"'), f'{{"data":[{feature}],"list":[[{square}]]}}')
    yield from (polygon(SQUARE, *HOLES), polygon(SQUARE, *HOLES[::-1]), polygon(SQUARE, HOLES[0], HOLES[0]), polygon())
    yield f'{{"type":"FeatureCollection","features":[{feature},{square},null,{{"type":"Feature","geometry":null}}],"bbox":{square}}}'
    yield f'{{"type":"FeatureCollection","features":{feature}}}'
    yield f'{{"type":"Feature","geometry":{feature}}}'
    yield f'{{"type":"Feature","geometry":[{square}]}}'
    yield f'{{"type":"GeometryCollection","geometries":[{square},{turned},{feature},{{"type":"GeometryCollection","geometries":[{square}]}}]}}'
    yield f'{{"type":"Feature","geometry":{{"type":"GeometryCollection","geometries":[{square}]}}}}'
    yield f'{{"type":"Point","coordinates":[1,2],"near":{square}}}'
    yield f'{{"type":null,"near":{square}}}'
    yield f'{{"type":["Polygon"],"near":{square}}}'
    first, second = f"[{SQUARE}]", "[[[3,3],[4,3],[4,4],[3,3]]]"
    for polygons in (f"{first},{second}", f"{second},{first}", f"{second},[],{second}", ""):
        yield f'{{"type":"MultiPolygon","coordinates":[{polygons}]}}'
    for points in ("[2,1],[1,2]", "[1,2],[2,1]", "[1,2],[1,2,0],[1,1,9]", "[1.0,2],[1,2],[-0.0,0],[0,0],[0.0,0]", "[1.001,2],[1,1],[1,3]", ""):
        yield f'{{"type":"MultiPoint","coordinates":[{points}]}}'
        yield f'{{"type":"LineString","coordinates":[{points}]}}'
    yield '{"type":"MultiLineString","coordinates":[[[2,2],[1,1]],[[0,0],[1,1],[1,0],[0,0]]]}'
    # All but the third are not well-formed: such a geometry stays as it is, all of it.
    for bad in ("null", "1", "[1,1]", "[2]", "[1,[1]]", "[1,null]", '[1,"1"]', "[1,true]", "[1,NaN]", "[1,1e999]", f"[1,{'9' * 309}]", "[]"):
        yield f'{{"type":"MultiPoint","coordinates":[[2,2],{bad}]}}'
    yield polygon("[[1,0],[1,1],[0,1],[0,0],[1,0]]", "[[2],[1]]")
    yield '{"type":"MultiPoint","coordinates":{"0":[2,2]}}'
    yield '{"type":"Polygon"}'
    # Of repeated members the last ones count.
    yield '{"type":"Polygon","coordinates":[[2,2],[1,1]],"type":"MultiPoint"}'
    yield '{"type":"MultiPoint","coordinates":[[2,2],[1,1]],"type":"Curve"}'
    yield '{"coordinates":[[2,2],[1,1]],"coordinates":[[4,4],[3,3]],"type":"MultiPoint"}'
    yield f'{{"type":"Feature","geometry":{square},"geometry":null}}'
    yield f'{{"type":"Feature","geometry":null,"geometry":{square}}}'


def geometries():
    shape = '[geometry]\nidentity = "shape"\n'
    written = [*shapes(), *map(polygon, RINGS), *(polygon(SQUARE, hole) for hole in RINGS)]
    yield "geometry-serialization", '[geometry]\nidentity = "serialization"\n', written[:40]
    yield "geometry-as-is", f'{shape}crs = "as-is"\n', written[:9]
    yield "geometry-shape", shape, written
    yield "geometry-shape-rounded", f"{shape}[numbers]\ndecimals = 2\n", written
    yield "geometry-shape-unified", f'{shape}[numbers]\ndecimals = 2\nwhere = "coordinates"\nnegative_zero = "fold"\nintegral = "unify"\n', written
    yield "geometry-shape-jcs", f'{shape}[canonical]\nscheme = "jcs"\n', written
    yield "geometry-shape-as-written", f'{shape}[canonical]\nmembers = "as-written"\nseparators = "spaced"\n', written[:40]
    yield "geometry-shape-stripped", (f'[event]\nstrip = ["attempt", "/coordinates/0", "/geometry/coordinates/0/1"]\nadd = {{type = "Polygon"}}\n{shape}'), [
        *written[:40], f'{{"attempt":{written[0]},"data":{written[0]}}}']
    yield "geometry-shape-selected", select("g", {"member": "first", "pointer": "/geometry/coordinates/0/0"}, first_of=["/geometry", "/data/0/geometry"]) + shape, (
        written[:40])
    rng = random.Random(4)
    yield "geometry-shape-sampled", f"{shape}[numbers]\ndecimals = 2\n", [nasty.geometry(rng) for _ in range(40)]


def systems():
    """Coordinates in other reference systems."""
    def event(crs, coordinates="[-8238310.24,4970071.58,17]"):
        return f'{{"type":"Feature","crs":{crs},"geometry":{{"type":"Point","coordinates":{coordinates}}},"properties":{{"crs":1}}}}'

    def name_of(name):
        return f'{{"type":"name","properties":{{"name":"{name}"}}}}'

    mercator, wgs84 = name_of("urn:ogc:def:crs:EPSG::3857"), name_of("urn:ogc:def:crs:OGC:1.3:CRS84")
    point = '{"type":"Point","coordinates":[1113194.9,-273950.3]}'
    ring = "[[0,0],[0,1000],[1000.0,1000],[0,0]]"
    events = [
        *(event(name_of(name)) for name in ("EPSG:3857", "epsg:3857", "urn:ogc:def:crs:EPSG::3857", "urn:x-ogc:def:crs:EPSG:3857",
                                            "http://www.opengis.net/def/crs/EPSG/0/3857", "EPSG:4326", "OGC:CRS84", "EPSG:1", "", "WGS 84")),
        *(event(crs) for crs in ("null", '"EPSG:3857"', "{}", '{"type":"name"}', '{"type":"link","properties":{"name":"EPSG:3857"}}')),
        *(event(mercator, coordinates) for coordinates in ("[0,0]", "[1]", "null", '[1,"2"]', "[NaN,1]", "[1e3,2e3]", "[[1,2]]")),
        event(wgs84, "null"), event(f'{mercator},"crs":{wgs84}'), event(f'{wgs84},"crs":{mercator}'), point,
        f'{{"type":"FeatureCollection","crs":{mercator},"features":[{{"type":"Feature","geometry":{point}}},{{"type":"Feature","geometry":null}}]}}',
        f'{{"type":"GeometryCollection","crs":{mercator},"geometries":[{point},{{"crs":{wgs84},{point[1:]}]}}',
        f'{{"type":"Feature","geometry":{{"crs":{mercator},{point[1:]}}}', f'{{"type":"sighting","at":{{"crs":{mercator},{point[1:]}}}',
        f'{{"type":"Polygon","crs":{mercator},"coordinates":[{ring}]}}', f'{{"type":"LineString","crs":{mercator},"coordinates":{ring}}}',
        '{"type":"train","crs":"LHR"}', '{"type":"Feature","c\\u0072s":null}']
    to_wgs84 = '[numbers]\ndecimals = 8\n[geometry]\ncrs = "wgs84"\n'
    yield "geometry-wgs84", to_wgs84, events
    yield "geometry-wgs84-shape", f'{to_wgs84}identity = "shape"\n[event]\nduplicate_names = "reject"\n', events
    yield "geometry-source-crs", f'{to_wgs84}source_crs = "EPSG:3857"\n', events


def groups():
    """Names, protocols, and lines."""
    for group in (settings, selections, geometries, systems):
        for name, text, lines in group():
            yield name, f'name = "{name}"\n{text}', [line.encode() for line in lines]
