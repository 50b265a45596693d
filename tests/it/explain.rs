//! `explain`: what became of an event, and why two events are not one.

use firstseen::{Keyer, Protocol, difference, explain};

use crate::tool::{Folder, gzip};

fn protocol(settings: &str) -> Protocol {
    Protocol::from_toml("test", &format!("name = \"test\"\n{settings}")).unwrap()
}

/// The lines of an explanation that say what was changed.
fn changes(settings: &str, event: &str) -> Vec<String> {
    let protocol = protocol(settings);
    let explained = explain(&protocol, event.as_bytes()).unwrap();
    // What it says of the end is what the keyer says.
    let mut keyer = Keyer::new(&protocol);
    let (key, canonical) = keyer.key_and_canonical(event.as_bytes()).unwrap();
    assert_eq!(explained.canonical, canonical);
    assert_eq!(explained.key, format!("{}{key}", protocol.settings().prefix));
    let text = explained.to_string();
    let kept =
        |line: &&str| !["protocol", "canonical", "length", "key"].iter().any(|title| line.starts_with(title));
    text.lines().filter(kept).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn what_became_of_an_event_is_told_stage_by_stage() {
    let rounded = "numbers.decimals = 2";
    for (settings, event, expected) in [
        ("", "{}", &["stripped nothing", "numbers nothing", "moved nothing"][..]),
        (
            "event.strip = ['a', '/b/c', '/d/1']",
            r#"{"a":{"x":1},"b":{"a":1,"c":2},"d":[1,2,3]}"#,
            &["stripped /a", "/b/c", "/d/1", "numbers nothing", "moved nothing"],
        ),
        (
            rounded,
            r#"{"a":[1.005,-0,1.50,17,1e2,[NaN]],"b":{"~/":3.14159}}"#,
            &[
                "stripped nothing",
                "numbers /a/0 1.005 -> 1.0",
                "/a/1 -0 -> 0",
                "/a/2 1.50 -> 1.5",
                "/a/4 1e2 -> 100.0",
                "/b/~0~1 3.14159 -> 3.14",
                "moved nothing",
            ],
        ),
        (
            "event.strip = ['/a/1', '/b/0']",
            r#"{"a":[1,true,2],"b":[[],null]}"#,
            &["stripped /a/1", "/b/0", "numbers nothing", "moved nothing"],
        ),
        (
            "numbers = {decimals = 2, where = 'coordinates'}",
            r#"{"a":1.005,"coordinates":[1.005]}"#,
            &["stripped nothing", "numbers /coordinates/0 1.005 -> 1.0", "moved nothing"],
        ),
        (
            "",
            r#"{"b":{"d":1,"c":2},"a":3,"e":4}"#,
            &["stripped nothing", "numbers nothing", "moved the event: a, b, e", "/b: c, d"],
        ),
        (
            "",
            r#"{"a":1,"a":2,"b":{"c":1,"d":2,"c":3}}"#,
            &["stripped nothing", "repeated /a", "/b/c", "numbers nothing", "moved nothing"],
        ),
        (
            "event.add = {kind = 'x', n = 1.50}",
            r#"{"z":1,"kind":2}"#,
            &[
                "stripped /kind",
                "added /kind = \"x\"",
                "/n = 1.5",
                "numbers nothing",
                "moved the event: kind, n, z",
            ],
        ),
        (
            "geometry.identity = 'shape'",
            r#"{"type":"Polygon","coordinates":[[[1,1],[0,1],[0,0],[1,1]],[[0,0],[1,1]]]}"#,
            &[
                "stripped nothing",
                "reordered /coordinates/0",
                "numbers nothing",
                "moved the event: coordinates, type",
                "note rings that enclose nothing kept their order: 1",
            ],
        ),
        (
            "numbers.decimals = 6\ngeometry.crs = 'wgs84'",
            r#"{"crs":{"type":"name","properties":{"name":"EPSG:3857"}},"coordinates":[1000,2000.0],"type":"Point"}"#,
            &[
                "stripped /crs",
                "numbers /coordinates/0 1000 -> 0.008983",
                "/coordinates/1 2000.0 -> 0.017966",
                "moved nothing",
            ],
        ),
        (
            "",
            r#"{"crs":null,"type":"Feature"}"#,
            &[
                "stripped nothing",
                "numbers nothing",
                "moved nothing",
                "note a `crs` member names a system other than WGS 84, and is left as it is",
            ],
        ),
        (
            "select = [{member = 'x', first_of = ['/b/c', '/a'], transforms = ['str', 'lower', {fixed = 1}]}, {member = 'w', pointer = '/a'}]",
            r#"{"a":1.0e0,"b":null,"c":1}"#,
            &[
                "selected x = \"1.0\" (from /b/c or /a, str, lower, fixed 1)",
                "w = 1.0 (from /a)",
                "numbers /a 1.0e0 -> 1.0",
                "moved the event: w, x",
            ],
        ),
        (
            "canonical.scheme = 'bytes'",
            r#"{"b":1,"a":1.0}"#,
            &["stripped nothing", "numbers nothing", "moved nothing"],
        ),
        (
            "canonical.scheme = 'jcs'",
            r#"{"\ud83d\ude00":1.0,"\uffff":2}"#,
            &["stripped nothing", "numbers /😀 1.0 -> 1", "moved nothing"],
        ),
        (
            // A ring that starts elsewhere is closed by another position.
            "geometry.identity = 'shape'",
            r#"{"type":"Polygon","coordinates":[[[1,1.50],[0,0],[1,0],[1,1.50]]]}"#,
            &[
                "stripped nothing",
                "reordered /coordinates/0",
                "numbers /coordinates/0/0/1 1.50 -> 1.5",
                "moved the event: coordinates, type",
            ],
        ),
        (
            "numbers.decimals = 1\ncanonical.non_ascii = 'escape'\nevent.strip = ['b']",
            r#"{"a\ud800":1.04,"a\ud801":2.0,"b":1,"a\ud800":3.00}"#,
            &["stripped /b", "repeated /a\\ud800", "numbers /a\\ud800 3.00 -> 3.0", "moved nothing"],
        ),
    ] {
        assert_eq!(changes(settings, event), expected, "{settings}: {event}");
    }
}

#[test]
fn long_lists_are_cut() {
    let event = format!("{{\"a\":[{}1.0]}}", "1.00,".repeat(100));
    let lines = changes("", &event);
    assert_eq!(lines.len(), 1 + 20 + 1 + 1);
    assert_eq!(lines[21], "and 80 more");
}

#[test]
fn two_events_differ_in_a_place_and_settings_would_make_them_one() {
    let geojson = "numbers.decimals = 8";
    for (settings, one, other, place, remedies) in [
        (
            geojson,
            r#"{"a":1,"b":2}"#,
            r#"{"b":2,"a":1.5}"#,
            "at /a:\n  1\n  1.5",
            &["event.strip with \"/a\""][..],
        ),
        (
            geojson,
            r#"{"a":{"b":[1,2]}}"#,
            r#"{"a":{"b":[1]}}"#,
            "at /a/b/1:\n  2\n  nothing",
            &["event.strip with \"/a/b/1\""],
        ),
        (
            geojson,
            r#"{"a":17.0,"b":-0.0}"#,
            r#"{"a":17,"b":0.0}"#,
            "at /a:\n  17.0\n  17",
            &["canonical.scheme = \"jcs\"", "event.strip with \"/a\", \"/b\""],
        ),
        (
            geojson,
            r#"{"a":17.0}"#,
            r#"{"a":17}"#,
            "at /a:\n  17.0\n  17",
            &["numbers.integral = \"unify\"", "canonical.scheme = \"jcs\"", "event.strip with \"/a\""],
        ),
        (
            geojson,
            r#"{"a":1.00000001}"#,
            r#"{"a":1.00000002}"#,
            "at /a:\n  1.00000001\n  1.00000002",
            &["numbers.decimals = 7", "event.strip with \"/a\""],
        ),
        (
            "",
            r#"{"a":1.4}"#,
            r#"{"a":1.2}"#,
            "at /a:\n  1.4\n  1.2",
            &["numbers.decimals = 0 (fewer than 6 merge distinct points)", "event.strip with \"/a\""],
        ),
        (
            "canonical.members = 'as-written'",
            r#"{"a":1,"b":2}"#,
            r#"{"b":2,"a":1}"#,
            "at the event:\n  members in the order a, b\n  members in the order b, a",
            &["canonical.members = \"sorted\""],
        ),
        (
            "numbers = {decimals = 2, where = 'coordinates'}",
            r#"{"a":1.001}"#,
            r#"{"a":1.002}"#,
            "at /a:\n  1.001\n  1.002",
            &["numbers.where = \"everywhere\"", "event.strip with \"/a\""],
        ),
        (
            geojson,
            r#"{"type":"MultiPoint","coordinates":[[1,0],[0,0]]}"#,
            r#"{"type":"MultiPoint","coordinates":[[0,0],[1,0]]}"#,
            "at /coordinates/0/0:\n  1\n  0",
            &["geometry.identity = \"shape\"", "event.strip with \"/coordinates/0/0\", \"/coordinates/1/0\""],
        ),
        (
            "select = [{member = 'mail', pointer = '/a'}]",
            r#"{"a":"X"}"#,
            r#"{"a":"x"}"#,
            "at /mail:\n  \"X\"\n  \"x\"",
            &["select mail with transform lower"],
        ),
        (
            "select = [{member = 'mail', pointer = '/a'}, {member = 'n', pointer = '/n'}]",
            r#"{"a":"X","n":1}"#,
            r#"{"a":null,"n":1}"#,
            "at /mail:\n  \"X\"\n  null",
            &["select without mail"],
        ),
        (
            "canonical.scheme = 'bytes'",
            r#"{"a":1}"#,
            r#"{"a": 1}"#,
            "at the event:\n  {\"a\":1}\n  {\"a\": 1}",
            &["canonical.scheme = \"python-json\""],
        ),
        (
            "canonical.scheme = 'bytes'",
            r#"{"a":1,"b":2}"#,
            r#"{"b":2.0, "a":1}"#,
            "at the event:\n  {\"a\":1,\"b\":2}\n  {\"b\":2.0, \"a\":1}",
            &[
                "canonical.scheme = \"python-json\" and numbers.integral = \"unify\"",
                "canonical.scheme = \"jcs\"",
                "canonical.scheme = \"python-json\" and event.strip with \"/b\"",
            ],
        ),
        (
            "select = [{member = 'items', pointer = '/i'}]",
            r#"{"i":[{"k":"b","n":1},{"k":"a","n":2}]}"#,
            r#"{"i":[{"k":"a","n":2},{"k":"b","n":1}]}"#,
            "at /items/0/k:\n  \"b\"\n  \"a\"",
            &["select items with transform { sort_by = \"/k\" }"],
        ),
        (
            "",
            r#"{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":[0]}"#,
            r#"{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":[1]}"#,
            "at /a:\n  0\n  1",
            &[
                "event.strip with \"/a\", \"/b\", \"/c\", \"/d\", \"/e\", \"/f\", \"/g\", \"/h\" and 2 more members",
            ],
        ),
    ] {
        let found = difference(&protocol(settings), [one.as_bytes(), other.as_bytes()]).unwrap();
        assert!(!found.is_none());
        let text = found.to_string();
        assert!(text.contains(&format!("first difference, {place}\n")), "{text}");
        assert_eq!(found.remedies, remedies, "{settings}: {one} and {other}");
    }
    let found =
        difference(&protocol(geojson), [b"{\"a\":1.0,\"b\":2}", b"{ \"b\":2,\"a\":1.000000000001}"]).unwrap();
    assert!(found.is_none() && found.places.is_empty() && found.remedies.is_empty());
    let fault = difference(&protocol(geojson), [b"{}", b"{\"a\":01}"]).unwrap_err();
    assert_eq!((fault.0, fault.1.byte), (1, 7));
}

#[test]
fn events_that_differ_in_very_much_are_told_in_few_lines() {
    let members = |value: &str| {
        let members: Vec<String> = (0..5000).map(|number| format!("\"{number:05}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    };
    let (one, other) = (members("1.25"), members("2.5"));
    let found = difference(&protocol("numbers.decimals = 8"), [one.as_bytes(), other.as_bytes()]).unwrap();
    assert_eq!(found.places.len(), 5000);
    let [strip] = &found.remedies[..] else { panic!("{:?}", found.remedies) };
    assert!(strip.ends_with("\"/00007\" and 4992 more members"), "{strip}");
    assert!(!found.gave_up);
    // Pairs of changes of so many selected members cannot all be tried.
    let table = |number| format!("{{member = 'm{number:02}', pointer = '/{number:05}'}}");
    let selected = format!("select = [{}]", (0..80).map(table).collect::<Vec<_>>().join(", "));
    let found = difference(&protocol(&selected), [one.as_bytes(), other.as_bytes()]).unwrap();
    assert!(found.remedies.is_empty() && found.gave_up, "{:?}", found.remedies);
    assert!(found.to_string().ends_with("to try every change\n"), "{found}");
}

#[test]
fn where_no_setting_helps_alone_two_are_tried() {
    let found = |one: &str, other: &str| {
        difference(&protocol("numbers.decimals = 8"), [one.as_bytes(), other.as_bytes()]).unwrap().remedies
    };
    let polygon = |ring: &str, crs: &str| {
        let crs = format!(r#"{{"type":"name","properties":{{"name":"{crs}"}}}}"#);
        format!(r#"{{"type":"Polygon","crs":{crs},"coordinates":[{ring}]}}"#)
    };
    let one = polygon("[[0,0],[1,0],[1,1],[0,0]]", "EPSG:4326");
    let other = polygon(
        "[[111319.49079327358,0],[111319.49079327358,111325.1428663851],[0,0],[111319.49079327358,0]]",
        "EPSG:3857",
    );
    let remedies = found(&one, &other);
    assert!(
        remedies.iter().all(|remedy| remedy.contains(" and ") || remedy.contains("strip")),
        "{remedies:?}"
    );
}

#[test]
fn an_event_is_a_file_a_line_of_a_file_or_standard_input() {
    let folder = Folder::new();
    folder.file("one.json", "\u{feff}{\n  \"b\": 1,\n  \"a\": 2\n}\n");
    folder.file("feed.jsonl", "{\"a\":1}\n\n{\"a\":2}\n");
    folder.file("feed.gz", gzip(b"{\"a\":1}\n{\"a\":2}"));
    folder.file("odd:2", "{\"a\":3}");
    folder.file("bad", "{}\n{\"a\":01}\n");
    let canonical = |arguments: &[&str], input: &str| {
        let run = folder.pipe(&[&["explain"], arguments].concat(), input.as_bytes()).expect_code(0);
        let text = String::from_utf8(run.stdout).unwrap();
        text.lines().find_map(|line| line.strip_prefix("canonical  ")).unwrap().to_owned()
    };
    assert_eq!(canonical(&["one.json"], ""), r#"{"a":2,"b":1}"#);
    assert_eq!(canonical(&["feed.jsonl:1"], ""), r#"{"a":1}"#);
    assert_eq!(canonical(&["feed.jsonl:3"], ""), r#"{"a":2}"#);
    assert_eq!(canonical(&["feed.gz:2"], ""), r#"{"a":2}"#);
    assert_eq!(canonical(&["odd:2"], ""), r#"{"a":3}"#);
    assert_eq!(canonical(&["-", "--protocol", "bytes-v1"], "{\"a\":\t4}\n"), "\"{\\\"a\\\":\\t4}\"");
    let run = folder.pipe(&["explain", "feed.jsonl:3", "-"], b"{\"a\":2}").expect_code(0);
    assert!(run.stdout.starts_with(b"one event: both have the key "));
    let run = folder.run(&["explain", "feed.jsonl:1", "feed.jsonl:3"]).expect_code(1);
    assert!(run.stdout.starts_with(b"two events: "));
    for (arguments, message) in [
        (
            &["feed.jsonl"][..],
            "feed.jsonl: there is more than one line, and not one event; name one, as FILE:LINE",
        ),
        (&["feed.jsonl:4"], "feed.jsonl: there is no line 4; the last one is 3"),
        (&["feed.jsonl:0"], "feed.jsonl: there is no line 0; the last one is 3"),
        (&["feed.jsonl:2"], "feed.jsonl:2: byte 1: not a JSON object"),
        (&["bad:2"], "bad:2: byte 7: malformed number"),
        (&["one.json", "bad:2"], "bad:2: byte 7: malformed number"),
        (&["missing:2"], "missing"),
        (&["-", "-"], "standard input holds one of two events at most"),
    ] {
        folder.run(&[&["explain"], arguments].concat()).expect_trouble(message);
    }
}
