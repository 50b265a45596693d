//! Protocol files: what each setting does, and what is refused.

use std::path::Path;

use firstseen::{Keyer, Protocol};

use crate::tool::Folder;

/// The canonical text of `event` under settings, or the reason why there is none.
fn canonical(settings: &str, event: &str) -> String {
    let protocol = Protocol::from_toml("test", &format!("name = \"test\"\n{settings}")).unwrap();
    match Keyer::new(&protocol).canonical(event.as_bytes()) {
        Ok(canonical) => String::from_utf8(canonical.to_vec()).unwrap(),
        Err(invalid) => invalid.to_string(),
    }
}

/// Each setting: the event, and what each value makes of it. The event comes three times, as later
/// lines of a shape take another way.
#[test]
fn every_setting_does_what_it_says() {
    for (settings, event, expected) in [
        (
            "event = {add = {a = 'x', b = 2}, duplicate_names = 'reject'}\ncanonical.members = 'as-written'",
            r#"{"z":1,"a":{"q":1,"q":2},"y":3}"#,
            r#"{"z":1,"a":"x","y":3,"b":2}"#,
        ),
        ("event.add = {a = 'x'}\ncanonical.scheme = 'jcs'", r#"{"a":1,"b":2,"a":3}"#, r#"{"a":"x","b":2}"#),
        (
            "select = [{member = 'x', pointer = '/a', transforms = [{fixed = 1}]}]",
            r#"{"a":"\u001f1"}"#,
            "byte 6: `x`: `fixed` cannot take a string that is no number",
        ),
        (
            "",
            r#"{"b": -0.0, "a": [17.0, 1e16, "é\u007f"], "attempt": 1}"#,
            "{\"a\":[17.0,1e+16,\"é\u{7f}\"],\"attempt\":1,\"b\":-0.0}",
        ),
        ("event.strip = ['b', 'x']", r#"{"a":{"b":1},"b":2,"\u0078":3}"#, r#"{"a":{"b":1}}"#),
        ("event.strip = ['/a']", r#"{"a":1,"b":{"a":2}}"#, r#"{"b":{"a":2}}"#),
        (
            "event.strip = ['/b/a', '/b/~1x~0', '/c/1', '/c/01']",
            r#"{"b":{"a":2,"/x~":1,"a":3,"z":4},"c":[1,2,3]}"#,
            r#"{"b":{"z":4},"c":[1,3]}"#,
        ),
        (
            "event.strip = ['/b/a/c', '/x/y', 'd']",
            r#"{"b":{"a":{"c":1}},"x":17,"d":1,"attempt":2}"#,
            r#"{"attempt":2,"b":{"a":{}},"x":17}"#,
        ),
        (
            "event.add = {event_type = 'zone_entry', n = 1, t = true, x = 1.5}",
            r#"{"z":1}"#,
            r#"{"event_type":"zone_entry","n":1,"t":true,"x":1.5,"z":1}"#,
        ),
        ("event.add = {a = 'x'}\ncanonical.members = 'as-written'", r#"{"a":1,"z":1}"#, r#"{"a":"x","z":1}"#),
        ("event = {strip = ['a'], add = {a = 'x'}}", r#"{"a":1,"z":1}"#, r#"{"a":"x","z":1}"#),
        (
            "event = {strip = ['/a/b'], duplicate_names = 'reject'}",
            r#"{"a":{"c":1,"c":2}}"#,
            "byte 13: repeated member name",
        ),
        (
            "select = [{member = 'x', pointer = '/a/b'}, {member = 'w', pointer = '/c/0'}]",
            r#"{"a":{"b":[1,{"z":1,"y":2}]},"c":[true]}"#,
            r#"{"w":true,"x":[1,{"y":2,"z":1}]}"#,
        ),
        ("select = [{member = 'x', pointer = '/a', default = 1}]", r#"{"a":null}"#, r#"{"x":null}"#),
        ("select = [{member = 'x', pointer = '/a', default = 1}]", r#"{"b":2}"#, r#"{"x":1}"#),
        ("select = [{member = 'x', pointer = '/a/b/c'}]", r#"{"a":0}"#, r#"{"x":null}"#),
        (
            "select = [{member = 'x', pointer = '/a/b'}]",
            r#"{"a":17}"#,
            "byte 6: a selected value's parent is no object",
        ),
        (
            "select = [{member = 'x', pointer = '/a/b'}]",
            r#"{"a":[1]}"#,
            "byte 2: a selected value's parent is no object",
        ),
        ("select = [{member = 'x', first_of = ['/a', '/b']}]", r#"{"a":"","b":2}"#, r#"{"x":2}"#),
        ("select = [{member = 'x', first_of = ['/a', '/b']}]", r#"{"a":false,"b":-0.0}"#, r#"{"x":-0.0}"#),
        ("select = [{member = 'x', first_of = ['/a', {value = []}]}]", r#"{"a":{}}"#, r#"{"x":[]}"#),
        (
            "select = [{member = 'x', pointer = '/a', transforms = ['strip', 'lower']}]",
            r#"{"a":"\u001c ÀΣ\u3000"}"#,
            r#"{"x":"àς"}"#,
        ),
        (
            "select = [{member = 'x', pointer = '/a', transforms = ['lower']}]",
            r#"{"a":17}"#,
            "byte 6: `x`: `lower` cannot take an integer",
        ),
        (
            "select = [{member = 'x', pointer = '/a', transforms = ['nfc']}]",
            r#"{"a":"e\u0301"}"#,
            r#"{"x":"é"}"#,
        ),
        (
            "select = [{member = 'x', pointer = '/a', transforms = ['str']}]",
            r#"{"a":1e16}"#,
            r#"{"x":"1e+16"}"#,
        ),
        (
            "select = [{member = 'x', pointer = '/a', transforms = ['str']}]",
            r#"{"a":true}"#,
            r#"{"x":"True"}"#,
        ),
        (
            "select = [{member = 'x', pointer = '/a', transforms = ['str']}]",
            r#"{"a":[]}"#,
            "byte 2: `x`: `str` cannot take an array or an object",
        ),
        (
            "select = [{member = 'x', pointer = '/a', transforms = [{fixed = 2}]}]",
            r#"{"a":" 1_0.125 "}"#,
            r#"{"x":"10.12"}"#,
        ),
        (
            "select = [{member = 'x', pointer = '/a', transforms = [{sort_by = '/k'}]}]",
            r#"{"a":[{"k":"b"},{"n":2,"k":"a"},{"k":"b","n":1}]}"#,
            r#"{"x":[{"k":"a","n":2},{"k":"b"},{"k":"b","n":1}]}"#,
        ),
        (
            "select = [{member = 'x', pointer = '/a', transforms = [{sort_by = '/k'}]}]",
            r#"{"a":[{"k":1}]}"#,
            "byte 2: `x`: `sort_by` cannot take what is no array of objects with a string at `/k`",
        ),
        (
            "select = [{member = 'x', pointer = '/a', transforms = [{fixed = 0}]}]",
            r#"{"a":2.5}"#,
            r#"{"x":"2"}"#,
        ),
        (
            "select = [{member = 'x', pointer = '/a', transforms = [{fixed = 2}]}]",
            r#"{"a":null}"#,
            "byte 2: `x`: `fixed` cannot take null",
        ),
        (
            "select = [{member = 'x', pointer = '/a', transforms = ['strip', {fixed = 2}]}]",
            "{\"a\":1}",
            "byte 6: `x`: `strip` cannot take an integer",
        ),
        (
            "event.duplicate_names = 'reject'\nselect = [{member = 'x', pointer = '/a'}]",
            r#"{"a":1,"b":1,"a":1}"#,
            "byte 14: repeated member name",
        ),
        ("event.duplicate_names = 'last'", r#"{"a":1,"\u0061":2}"#, r#"{"a":2}"#),
        ("event.duplicate_names = 'reject'", r#"{"a":1,"\u0061":2}"#, "byte 8: repeated member name"),
        ("event.duplicate_names = 'reject'", r#"{"x":{"a":1,"b":2,"a":2}}"#, "byte 19: repeated member name"),
        (
            "event = {duplicate_names = 'reject', strip = ['a']}",
            r#"{"a":1,"a":{"b":1,"b":1},"c":1}"#,
            r#"{"c":1}"#,
        ),
        ("event.non_finite = 'accept'", r#"{"a":[NaN,-1e999]}"#, r#"{"a":[NaN,-Infinity]}"#),
        ("event.non_finite = 'reject'", r#"{"a":[1.5,NaN]}"#, "byte 11: number that is not finite"),
        ("event.non_finite = 'reject'", r#"{"a":-1e999}"#, "byte 6: number that is not finite"),
        ("event = {non_finite = 'reject', strip = ['a']}", r#"{"a":NaN,"b":1}"#, r#"{"b":1}"#),
        (
            "numbers.decimals = 2",
            r#"{"a":[0.125,0.375,1.005,-0.001,12]}"#,
            r#"{"a":[0.12,0.38,1.0,-0.0,12]}"#,
        ),
        (
            "numbers = {decimals = 1, where = 'everywhere'}",
            r#"{"coordinates":[0.16],"b":0.16}"#,
            r#"{"b":0.2,"coordinates":[0.2]}"#,
        ),
        (
            "numbers = {decimals = 1, where = 'coordinates'}",
            r#"{"g":{"coordinates":[[0.16,{"x":0.16}]]},"b":0.16}"#,
            r#"{"b":0.16,"g":{"coordinates":[[0.2,{"x":0.2}]]}}"#,
        ),
        ("numbers.negative_zero = 'keep'", r#"{"a":[-0.0,0.0,-0]}"#, r#"{"a":[-0.0,0.0,0]}"#),
        ("numbers.negative_zero = 'fold'", r#"{"a":[-0.0,0.0,-0]}"#, r#"{"a":[0.0,0.0,0]}"#),
        ("numbers = {negative_zero = 'fold', decimals = 1}", r#"{"a":[-0.04,-1e-9]}"#, r#"{"a":[0.0,0.0]}"#),
        ("numbers.integral = 'keep'", r#"{"a":[17.0,17,1.7e1]}"#, r#"{"a":[17.0,17,17.0]}"#),
        (
            "numbers.integral = 'unify'",
            r#"{"a":[17.0,17,1.7e1,-0.0,0.0,9007199254740992.0,9007199254740994.0,1e22]}"#,
            r#"{"a":[17,17,17,-0.0,0,9007199254740992,9007199254740994.0,1e+22]}"#,
        ),
        (
            "numbers = {integral = 'unify', negative_zero = 'fold'}",
            r#"{"a":[-0.0,0.0,-3.0]}"#,
            r#"{"a":[0,0,-3]}"#,
        ),
        ("canonical.members = 'sorted'", r#"{"b":1,"a":{"d":1,"c":2}}"#, r#"{"a":{"c":2,"d":1},"b":1}"#),
        (
            "canonical.members = 'as-written'",
            r#"{"b":1,"a":{"d":1,"c":2},"b":3}"#,
            r#"{"b":3,"a":{"d":1,"c":2}}"#,
        ),
        ("canonical.separators = 'compact'", r#"{"a" : [1, 2]}"#, r#"{"a":[1,2]}"#),
        ("canonical.separators = 'spaced'", r#"{"a":[1,2,{}],"b":[]}"#, r#"{"a": [1, 2, {}], "b": []}"#),
        ("canonical.non_ascii = 'utf8'", r#"{"é":"\ud83d\ude00"}"#, r#"{"é":"😀"}"#),
        (
            "canonical.non_ascii = 'escape'",
            "{\"é\":\"😀\\\"\u{7f}\\u001f\"}",
            r#"{"\u00e9":"\ud83d\ude00\"\u007f\u001f"}"#,
        ),
        ("canonical.non_ascii = 'escape'", r#"{"b":1,"\ud800":"\uDC00x"}"#, r#"{"b":1,"\ud800":"\udc00x"}"#),
        ("canonical.scheme = 'python-json'", r#"{"a":1e-5}"#, r#"{"a":1e-05}"#),
        (
            "canonical.scheme = 'jcs'",
            r#"{"a":[1e-5,1e21,-0,-0.0,17.0,9007199254740993,1e20],"\uffff":1,"\ud800\udc00":2}"#,
            "{\"a\":[0.00001,1e+21,0,0,17,9007199254740992,100000000000000000000],\"\u{10000}\":2,\"\u{ffff}\":1}",
        ),
        ("canonical.scheme = 'jcs'", r#"{"a":1,"a":1}"#, "byte 8: repeated member name"),
        ("canonical.scheme = 'jcs'", r#"{"a":NaN}"#, "byte 6: number that is not finite"),
        ("canonical.scheme = 'bytes'", " no event \r", " no event \r"),
    ] {
        assert_eq!(canonical(settings, event), expected, "{settings}");
        let protocol = Protocol::from_toml("test", &format!("name = \"test\"\n{settings}")).unwrap();
        let mut keyer = Keyer::new(&protocol);
        for _ in 0..3 {
            let again = keyer.canonical(event.as_bytes()).map(<[u8]>::to_vec);
            let again =
                again.map_or_else(|invalid| invalid.to_string(), |bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(again, expected, "{settings}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    let folder = Folder::new();
    for (text, message) in [
        ("", "p.toml:1: missing field `name`"),
        ("name = 'a b'", "p.toml:1: a name is made of letters, digits"),
        ("name = 'a'\ndocs = 'x'", "p.toml:2: unknown field `docs`, expected one of `name`, `doc`"),
        (
            "name = 'a'\n[event]\nstrip = 'x'",
            "p.toml:3: invalid type: string \"x\", expected a list of names and JSON Pointers",
        ),
        ("name = 'a'\n[event]\nstrips = []", "p.toml:3: unknown field `strips`, expected one of `strip`"),
        (
            "name = 'a'\n[event]\nduplicate_names = 'first'",
            "p.toml:3: unknown variant `first`, expected `last` or `reject`",
        ),
        (
            "name = 'a'\n[event]\nnon_finite = 'drop'",
            "p.toml:3: unknown variant `drop`, expected `accept` or `reject`",
        ),
        (
            "name = 'a'\n[numbers]\ndecimals = -1",
            "p.toml:3: invalid value: integer `-1`, expected a whole number from 0 to 323",
        ),
        (
            "name = 'a'\n[numbers]\ndecimals = 324",
            "p.toml:3: invalid value: integer `324`, expected a whole number from 0 to 323",
        ),
        (
            "name = 'a'\n[numbers]\ndecimals = 2.5",
            "p.toml:3: invalid type: floating point `2.5`, expected a whole number from 0 to 323",
        ),
        ("name = 'a'\n[numbers]\nwhere = 'coordinates'", "p.toml:3: `where` says which doubles are rounded"),
        ("name = 'a'\n[numbers]\ndecimals = 8\nwhere = 'here'", "p.toml:4: unknown variant `here`"),
        ("name = 'a'\n[numbers]\nnegative_zero = true", "p.toml:3: "),
        (
            "name = 'a'\n[numbers]\nintegral = 'split'",
            "p.toml:3: unknown variant `split`, expected `keep` or `unify`",
        ),
        (
            "name = 'a'\n[canonical]\nscheme = 'xml'",
            "p.toml:3: unknown variant `xml`, expected one of `python-json`",
        ),
        ("name = 'a'\n[canonical]\nmembers = 'as written'", "expected `sorted` or `as-written`"),
        ("name = 'a'\n[canonical]\nseparators = ' '", "expected `compact` or `spaced`"),
        ("name = 'a'\n[canonical]\nnon_ascii = 'ascii'", "expected `utf8` or `escape`"),
        ("name = 'a'\n[canonical]\nscheme = 'jcs'\nmembers = 'sorted'", "p.toml:4: scheme `jcs` fixes this"),
        (
            "name = 'a'\n[event]\nnon_finite = 'accept'\n[canonical]\nscheme = 'jcs'",
            "p.toml:3: scheme `jcs` takes finite numbers only",
        ),
        (
            "name = 'a'\n[event]\nduplicate_names = 'last'\n[canonical]\nscheme = 'jcs'",
            "p.toml:3: scheme `jcs` takes no repeated names",
        ),
        (
            "name = 'a'\n[numbers]\ndecimals = 8\n[canonical]\nscheme = 'bytes'",
            "p.toml:3: scheme `bytes` does not look into the line",
        ),
        (
            "name = 'a'\n[key]\nhash = 'md5'",
            "p.toml:3: unknown variant `md5`, expected `blake2b` or `sha256`",
        ),
        (
            "name = 'a'\n[key]\nbytes = 65",
            "p.toml:3: invalid value: integer `65`, expected a whole number from 0 to 64",
        ),
        ("name = 'a'\n[key]\nhash = 'sha256'\nbytes = 33", "p.toml:4: a sha256 key has at most 32 bytes"),
        ("name = 'a'\n[key]\nprefix = \"a\\n\"", "p.toml:3: a prefix has no control characters"),
        ("name = 'a'\n[event]\nstrip = ['/a~2']", "p.toml:3: in `/a~2`, `~` stands before `0` or `1` only"),
        (
            "name = 'a'\n[event]\nadd = {a = [1]}",
            "p.toml:3: a constant is a string, a number, a boolean or `[]`",
        ),
        ("name = 'a'\n[event]\nadd = {a = []}", "p.toml:3: `a` is an array"),
        (
            "name = 'a'\n[[select]]\nmember = 'x'",
            "p.toml:2: a selected member has a `pointer`, or a `first_of`",
        ),
        ("name = 'a'\n[[select]]\nmember = 'x'\npointer = 'a'", "p.toml:4: `a` is no JSON Pointer"),
        (
            "name = 'a'\n[[select]]\nmember = 'x'\nfirst_of = [\n'/a',\n'b']",
            "p.toml:6: `b` is no JSON Pointer",
        ),
        (
            "name = 'a'\n[[select]]\nmember = 'x'\npointer = '/a'\ndefault = [1]",
            "p.toml:5: a constant is a string, a number, a boolean or `[]`",
        ),
        (
            "name = 'a'\n[[select]]\nmember = 'x'\nfirst_of = []",
            "p.toml:2: a selected member has a `pointer`",
        ),
        (
            "name = 'a'\n[[select]]\nmember = 'x'\nfirst_of = ['/a']\ndefault = 1",
            "p.toml:5: `default` goes with `pointer`",
        ),
        (
            "name = 'a'\n[[select]]\nmember = 'x'\npointer = '/a'\ntransforms = ['upper']",
            "unknown variant `upper`, expected one of `strip`",
        ),
        (
            "name = 'a'\n[[select]]\nmember = 'x'\npointer = '/a'\ntransforms = ['str', {sort_by = '/k'}]",
            "p.toml:5: `sort_by` makes an array",
        ),
        (
            "name = 'a'\n[[select]]\nmember = 'x'\npointer = '/a'\ntransforms = [{sort_by = 'k'}]",
            "`k` is no JSON Pointer (RFC 6901)",
        ),
        (
            "name = 'a'\n[[select]]\nmember = 'x'\npointer = '/a'\ntransforms = [{fixed = 999}]",
            "p.toml:5: invalid value: integer `999`, expected a whole number from 0 to 323",
        ),
        (
            "name = 'a'\n[[select]]\nmember = 'x'\npointer = '/a'\n[[select]]\nmember = 'x'\npointer = '/b'",
            "p.toml:6: `x` is selected twice",
        ),
        (
            "name = 'a'\nevent.strip = ['x']\n[[select]]\nmember = 'x'\npointer = '/a'",
            "p.toml:2: only what is selected is hashed",
        ),
        (
            "name = 'a'\ncanonical.scheme = 'bytes'\n[[select]]\nmember = 'x'\npointer = '/a'",
            "p.toml:3: scheme `bytes` does not look",
        ),
        (
            "name = 'a'\n[geometry]\nidentity = 'shapes'",
            "p.toml:3: unknown variant `shapes`, expected `serialization` or `shape`",
        ),
        (
            "name = 'a'\n[geometry]\ncrs = 'EPSG:4326'",
            "p.toml:3: unknown variant `EPSG:4326`, expected `as-is` or `wgs84`",
        ),
        ("name = 'a'\n[geometry]\ncrs = 'wgs84'", "p.toml:3: `crs = \"wgs84\"` needs `decimals`"),
        (
            "name = 'a'\n[geometry]\nsource_crs = 'EPSG:3857'",
            "p.toml:3: `source_crs` is where coordinates are brought",
        ),
        (
            "name = 'a'\nnumbers.decimals = 8\n[geometry]\ncrs = 'wgs84'\nsource_crs = 'EPSG:4267'",
            "p.toml:5: `EPSG:4267` is no system that coordinates can be brought from",
        ),
        (
            "name = 'a'\ncanonical.scheme = 'bytes'\n[geometry]\nidentity = 'shape'",
            "p.toml:4: scheme `bytes` does not look into the line",
        ),
        (
            "name = 'a'\ngeometry.identity = 'shape'\n[numbers]\ndecimals = 2\nwhere = 'coordinates'\n[[select]]\nmember = 'x'\npointer = '/a'",
            "p.toml:5: what is selected may have another name than `coordinates`",
        ),
        ("name = 'a'\nname = 'b'", "p.toml:2: `name` is set twice"),
        ("name = 'a'\n[key]\nbytes = 16\n[event]\n[key]\nbytes = 16", "p.toml:5: `key` is set twice"),
        (
            "name = 'a'\n[select]\nmember = 'x'\npointer = '/a'",
            "p.toml:2: invalid type: map, expected a table headed `[[select]]` for each selected member",
        ),
        (
            "name = 'a'\n[[select]]\nmember = 'x'\nfirst_of = '/a'",
            "p.toml:4: invalid type: string \"/a\", expected a list of JSON Pointers",
        ),
        (
            "name = 'a'\n[[select]]\nmember = 'x'\npointer = '/a'\ntransforms = 'lower'",
            "p.toml:5: invalid type: string \"lower\", expected a list of transforms",
        ),
        ("name = ", "p.toml:1: "),
    ] {
        folder.file("p.toml", text);
        folder.run(&["protocol", "check", "p.toml"]).expect_trouble(message);
        folder.run(&["key", "--protocol", "p.toml"]).expect_trouble(message);
    }
    folder.run(&["key", "--protocol", "missing.toml"]).expect_trouble("there is no such protocol or file");
    folder.run(&["dedup", "--protocol", "bytes-v1", "--decimals", "8"]).expect_trouble("nothing to round");
}

#[test]
fn a_fingerprint_is_of_the_meaning_and_not_of_the_text() {
    let fingerprint = |text: &str| Protocol::from_toml("test", text).unwrap().fingerprint().to_string();
    let base = fingerprint("name = 'a'");
    for same in [
        "name = 'b'\ndoc = 'something'",
        "# a comment\nname = 'a'\n[event]\nstrip = []\n[canonical]\nscheme = 'python-json'",
        "name = 'a'\nkey = {bytes = 16, hash = 'blake2b', prefix = ''}",
        "name = 'a'\n[numbers]\nintegral = 'keep'\nnegative_zero = 'keep'",
    ] {
        assert_eq!(fingerprint(same), base, "{same}");
    }
    assert_eq!(
        fingerprint("name = 'a'\nevent.strip = ['x', 'y', 'x']"),
        fingerprint("name = 'a'\nevent.strip = ['y', 'x']")
    );
    assert_eq!(fingerprint("name = 'a'\nkey.bytes = 0"), fingerprint("name = 'a'\nkey.bytes = 64"));
    let from = |crs: &str| {
        fingerprint(&format!(
            "name = 'a'\nnumbers.decimals = 8\ngeometry = {{crs = 'wgs84', source_crs = '{crs}'}}"
        ))
    };
    assert_eq!(from("EPSG:3857"), from("urn:ogc:def:crs:EPSG::3857"));
    assert_eq!(from("EPSG:4326"), fingerprint("name = 'a'\nnumbers.decimals = 8\ngeometry.crs = 'wgs84'"));
    let [yx, xy] = ["yx", "xy"].map(|order| {
        let table = |member| format!("{{member = '{member}', pointer = '/{member}'}}");
        format!("name = 'a'\nselect = [{}]", order.chars().map(table).collect::<Vec<_>>().join(", "))
    });
    for (settings, counts) in
        [("", false), ("canonical.scheme = 'jcs'", false), ("canonical.members = 'as-written'", true)]
    {
        let differ = fingerprint(&format!("{yx}\n{settings}")) != fingerprint(&format!("{xy}\n{settings}"));
        assert_eq!(differ, counts, "the order of what is selected, {settings}");
    }
    let mut all = vec![base];
    for other in [
        "event.strip = ['x']",
        "event.strip = ['/x/y']",
        "event.add = {x = 1}",
        "event.add = {x = '1'}",
        "select = [{member = 'x', pointer = '/x'}]",
        "select = [{member = 'x', pointer = '/x', default = 1}]",
        "select = [{member = 'x', pointer = '/x', transforms = ['str']}]",
        "select = [{member = 'x', first_of = ['/x', '/y']}]",
        "select = [{member = 'y', pointer = '/x'}, {member = 'x', pointer = '/x'}]",
        "event.duplicate_names = 'reject'",
        "event.non_finite = 'reject'",
        "numbers.decimals = 8",
        "numbers.decimals = 7",
        "numbers = {decimals = 8, where = 'coordinates'}",
        "numbers.negative_zero = 'fold'",
        "numbers.integral = 'unify'",
        "geometry.identity = 'shape'",
        "numbers.decimals = 8\ngeometry.crs = 'wgs84'",
        "numbers.decimals = 8\ngeometry = {crs = 'wgs84', source_crs = 'EPSG:3857'}",
        "canonical.scheme = 'jcs'",
        "canonical.scheme = 'bytes'",
        "canonical.members = 'as-written'",
        "canonical.separators = 'spaced'",
        "canonical.non_ascii = 'escape'",
        "key.hash = 'sha256'",
        "key.bytes = 17",
        "key.prefix = 'p:'",
    ] {
        let other = fingerprint(&format!("name = 'a'\n{other}"));
        assert!(!all.contains(&other));
        all.push(other);
    }
    assert_eq!(
        Protocol::built_in("geojson-v1").unwrap().fingerprint().to_string(),
        "06f50e9a8b432ab147296028e784a407"
    );
}

#[test]
fn what_is_shown_is_a_file_of_the_same_meaning() {
    let folder = Folder::new();
    folder.file("own.toml", "name = 'own'\nevent.strip = [\"a\\\"\\u007f\"]\nnumbers = {decimals = 2, where = 'coordinates'}\nkey.prefix = 'own:'");
    folder.file(
        "sorted.toml",
        "name = 'sorted'\nselect = [{member = 'x', pointer = '/a', transforms = [{sort_by = '/k~1'}]}]",
    );
    folder.file(
        "nested.toml",
        "name = 'nested'\nevent = {strip = ['/a/b~1c', 'x', '/~1y'], add = {t = 'x\\u0001', 'a b' = 1.5}}",
    );
    folder.file(
        "wgs84.toml",
        "name = 'wgs84'\nnumbers.decimals = 7\ngeometry = {identity = 'shape', crs = 'wgs84', source_crs = 'EPSG:3857'}",
    );
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let examples =
        ["checkout-v1.toml", "checkout-v2.toml"].map(|name| examples.join(name).display().to_string());
    let files = ["own.toml", "nested.toml", "wgs84.toml", "sorted.toml"]
        .map(str::to_owned)
        .into_iter()
        .chain(examples);
    for name in &Protocol::built_in_names().map(str::to_owned).chain(files).collect::<Vec<_>>() {
        let shown = folder.run(&["protocol", "show", name]).expect_code(0).stdout;
        let shown = String::from_utf8(shown).unwrap();
        folder.file("shown.toml", &shown);
        let checked = folder.run(&["protocol", "check", "shown.toml"]);
        assert!(shown.contains("# "), "{shown}");
        let fingerprint = shown.split_whitespace().nth(2).unwrap().to_owned();
        assert!(String::from_utf8(checked.stdout).unwrap().contains(&fingerprint), "{name}: {shown}");
    }
}

#[test]
fn a_prefix_stands_before_every_key() {
    let folder = Folder::new();
    folder.file("p.toml", "name = 'p'\nkey = {prefix = 'inv:', bytes = 2}");
    folder.file("feed", "{}\n{}\n");
    for options in [&[][..], &["--long"], &["--canonical"]] {
        let run = folder.run(&[&["key", "--protocol", "p.toml", "feed"], options].concat()).expect_code(0);
        let text = String::from_utf8(run.stdout).unwrap();
        assert!(
            text.lines()
                .all(|line| line.starts_with("inv:")
                    && line.as_bytes().get(8).is_none_or(|&byte| byte == b'\t')),
            "{text}"
        );
    }
    assert_eq!(folder.run(&["dedup", "-q", "--protocol", "p.toml", "feed"]).expect_code(0).stdout, b"{}\n");
}

#[test]
fn the_bytes_of_lines_are_compared_as_by_sort() {
    let folder = Folder::new();
    folder.file("feed", "b\n{\"a\":1}\na\nb\n{\"a\": 1}\nb\r\n{\"a\":1}\n");
    let run = folder.run(&["dedup", "-q", "--protocol", "bytes-v1", "feed"]).expect_code(0);
    assert_eq!(run.stdout, b"b\n{\"a\":1}\na\n{\"a\": 1}\nb\r\n");
}

/// The incident that protocols are for: under the handler's own key, a retry is another event.
#[test]
fn a_retry_is_another_checkout_under_v1_and_the_same_under_v2() {
    let folder = Folder::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let keys = |version: &str| {
        let protocol = examples.join(format!("checkout-{version}.toml")).display().to_string();
        let captures = examples.join("deliveries.jsonl").display().to_string();
        let run = folder.run(&["key", "--canonical", "--protocol", &protocol, &captures]).expect_code(0);
        let text = String::from_utf8(run.stdout).unwrap();
        text.lines()
            .map(|line| line.split_once('\t').map(|(key, form)| (key.to_owned(), form.to_owned())).unwrap())
            .collect::<Vec<_>>()
    };
    let [d1, d2, d3] = &keys("v1")[..] else { panic!("three deliveries") };
    // The digest of CPython's hashlib.
    assert_eq!(d1.0, "inv:bf0dc5fe4820578b08668aef96fa08e1b406cb4d51e8fcda2d7f021bf5ee01f1");
    assert_eq!(
        d1.1,
        r#"{"order": "ORD-9", "email": "grace@example.com", "total": "10.5", "items": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}], "attempt": 1}"#
    );
    assert!(d1.0 != d2.0 && d1.0 != d3.0 && d2.0 != d3.0);
    let [d1, d2, d3] = &keys("v2")[..] else { panic!("three deliveries") };
    assert_eq!(d1, d2);
    assert_eq!(
        d3.1,
        r#"{"email":"grace@example.com","items":[{"qty":1,"sku":"A"}],"order":"ORD-10","total":"10.50"}"#
    );
}

/// The captures of the text that `checkout-v1` comes from, and what its handler makes of them in CPython.
#[test]
fn the_handler_that_checkout_v1_stands_for_has_these_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/checkout-v1.toml");
    let protocol = Protocol::find(&path.display().to_string()).unwrap();
    let mut keyer = Keyer::new(&protocol);
    let two = r#"{"order_id": "ORD-9", "total": 10.5, "customer": {"email": "Ada@Example.com "}, "items": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}]}"#;
    let one = r#"{"order_id": "ORD-10", "total": "10.50", "customer": {"email": "ada@example.com"}, "items": [{"qty": 1, "sku": "A"}]}"#;
    for (id, attempt, body, key) in [
        ("d1", 1, two, "3c8eae88faaa171d318cc26bd6df782b2f518d3f02a5cb93e49be6f911acdff1"),
        ("d2", 2, two, "8ff871686d379603aa9f58394b07defbb120a7d8bf88228c30a8c38ae3bb8f77"),
        ("d3", 1, one, "88f0f8a352783ef0a814f3b16f51ca86cf4e80138dcec58f016210ccd5f28d89"),
    ] {
        let event = format!(r#"{{"delivery_id": "{id}", "delivery_attempt": {attempt}, "body": {body}}}"#);
        assert_eq!(keyer.key(event.as_bytes()).unwrap().to_string(), key, "{id}");
    }
    assert_eq!(protocol.settings().prefix, "inv:");
}

#[test]
fn members_that_look_like_secrets_or_envelopes_are_named() {
    let folder = Folder::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let v1 = folder
        .run(&["protocol", "check", &examples.join("checkout-v1.toml").display().to_string()])
        .expect_code(1);
    let text = String::from_utf8(v1.stdout).unwrap();
    assert!(text.contains("warning: `attempt` looks like a part of the envelope"), "{text}");
    assert_eq!(text.matches("warning").count(), 1, "{text}");
    folder
        .run(&["protocol", "check", &examples.join("checkout-v2.toml").display().to_string()])
        .expect_code(0);
    folder.file("p.toml", "name = 'p'\nselect = [{member = 'id', pointer = '/headers/Authorization'}]");
    let checked = folder.run(&["protocol", "check", "p.toml"]).expect_code(1);
    assert!(
        String::from_utf8(checked.stdout).unwrap().contains("`/headers/Authorization` looks like a secret")
    );
}

#[test]
fn a_file_that_is_called_as_a_built_in_protocol_and_is_another_is_told_so() {
    let folder = Folder::new();
    folder.file("same.toml", "name = 'bytes-v1'\ncanonical.scheme = 'bytes'");
    folder.run(&["protocol", "check", "same.toml"]).expect_code(0);
    folder.file("other.toml", "name = 'geojson-v1'\nnumbers.decimals = 7");
    let run = folder.run(&["protocol", "check", "other.toml"]).expect_code(1);
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.contains("warning: `geojson-v1` is the name of a built-in protocol"), "{text}");
}

#[test]
fn a_constant_that_looks_like_a_secret_is_named_without_captures() {
    let folder = Folder::new();
    folder.file("p.toml", "name = 'p'\nevent.add = {api_token = 'x', attempt = 1}");
    let run = folder.run(&["protocol", "check", "p.toml"]).expect_code(1);
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.contains("warning: `api_token` looks like a secret"), "{text}");
    assert_eq!(text.matches("warning").count(), 1, "{text}");
}

/// A constant looked like the marker of a value, and took that value's place in later lines.
#[test]
fn constants_that_look_like_markers_stay_constants() {
    for constant in ["\\u00010\\u0001", "\\u0001999\\u0001"] {
        let text = format!("name = 'a'\n[event]\nadd = {{ v = \"{constant}\" }}");
        let mut keyer = Keyer::new(&Protocol::from_toml("test", &text).unwrap());
        for number in 1..5 {
            let line = format!("{{\"a\":{number}}}");
            let expected = format!("{{\"a\":{number},\"v\":\"{constant}\"}}");
            assert_eq!(keyer.canonical(line.as_bytes()).unwrap(), expected.as_bytes());
        }
    }
}

/// What was left out was looked for in a list, once for every member.
#[test]
fn many_parts_are_stripped_in_time_that_grows_with_the_line() {
    let protocol = Protocol::from_toml("test", "name = 'a'\nevent.strip = ['/a/b']").unwrap();
    let line = format!("{{{}\"c\":1}}", "\"a\":{\"b\":1},".repeat(200_000));
    assert_eq!(Keyer::new(&protocol).canonical(line.as_bytes()).unwrap(), br#"{"a":{},"c":1}"#);
}

#[test]
fn what_is_stripped_on_the_command_line_may_be_a_pointer() {
    let folder = Folder::new();
    folder.file("p.toml", "name = 'p'\nevent.strip = ['/a/b', 'x']");
    folder.file("feed", "{\"a\":{\"b\":1,\"c\":2},\"x\":1,\"/y\":2}\n");
    for (options, canonical) in [
        (&[][..], r#"{"/y":2,"a":{"c":2}}"#),
        (&["--no-default-strip"], r#"{"/y":2,"a":{"b":1,"c":2},"x":1}"#),
        (&["--strip", "/a/c", "--strip", "/~1y"], r#"{"a":{}}"#),
    ] {
        let run = folder
            .run(&[&["key", "--canonical", "--protocol", "p.toml", "feed"], options].concat())
            .expect_code(0);
        let text = String::from_utf8(run.stdout).unwrap();
        assert_eq!(text.trim_end().split_once('\t').unwrap().1, canonical, "{options:?}");
    }
    let run = folder
        .run(&["key", "--long", "--protocol", "p.toml", "--no-default-strip", "--strip", "/a/c", "feed"])
        .expect_code(0);
    assert!(String::from_utf8(run.stdout).unwrap().contains("\tp+strip=\"/a/c\"\t"));
    folder.run(&["key", "--strip", "/a~", "feed"]).expect_trouble("`~` stands before `0` or `1` only");
}
