//! `protocol check --captures`: what captures say about a protocol, and what they leave unsaid.

use std::path::Path;

use crate::tool::{Folder, Run};

/// What `protocol check` says of captures under settings, but for its first line, and its exit code.
fn checked(settings: &str, captures: &str) -> (i32, Vec<String>) {
    let folder = Folder::new();
    folder.file("p.toml", format!("name = 'p'\n{settings}"));
    folder.file("captures.jsonl", captures);
    told(folder.run(&["protocol", "check", "p.toml", "--captures", "captures.jsonl"]))
}

fn told(run: Run) -> (i32, Vec<String>) {
    let text = String::from_utf8(run.stdout).unwrap();
    assert_eq!(run.stderr, "");
    (run.code.unwrap(), text.lines().skip(1).map(str::to_owned).collect())
}

/// The warning that a member differs, in `count` pairs.
fn differs(pointer: &str, together: &str, count: &str, example: &str) -> String {
    let (them, they_make) = if together.is_empty() { ("it", "it makes") } else { ("them", "they make") };
    format!(
        "warning: `{pointer}` differs {together}between events that are otherwise equal ({count}, e.g. {example}): \
         likely envelope; leave {them} out unless {they_make} another event"
    )
}

#[test]
fn a_retry_names_the_attempt() {
    let captures = r#"{"delivery_id":"d1","order":"O-1","total":5,"n":1}
{"delivery_id":"d2","order":"O-1","total":5,"n":2}
{"delivery_id":"d3","order":"O-2","total":7,"n":1}
{"delivery_id":"d4","order":"O-1","total":5,"n":3}
{"delivery_id":"d5","n":3,"total":5,"order":"O-1"}
"#;
    let (code, lines) = checked("event.strip = ['delivery_id']", captures);
    let expected = ["looked at 5 deliveries: 4 events".to_owned(), differs("/n", "", "2 pairs", "d1 and d2")];
    assert_eq!((code, &lines[..]), (1, &expected[..]));
    // Without the attempt, nothing is left to be said.
    let (code, lines) = checked("event.strip = ['delivery_id', 'n']", captures);
    assert_eq!((code, &lines[..]), (0, &["looked at 5 deliveries: 2 events".to_owned()][..]));
}

#[test]
fn members_that_differ_together_are_told_so() {
    let captures = r#"{"order":"O-1","total":5,"items":["a"],"n":1,"at":100}
{"order":"O-2","total":7,"items":["b"],"n":1,"at":101}
{"order":"O-1","total":5,"items":["a"],"n":2,"at":160}
{"order":"O-2","total":7,"items":["b"],"n":2,"at":161}
"#;
    let (code, lines) = checked("", captures);
    let expected = [
        "looked at 4 deliveries: 4 events".to_owned(),
        differs("/at", "together with `/n` ", "2 pairs", "#1 and #3"),
        differs("/n", "together with `/at` ", "2 pairs", "#1 and #3"),
    ];
    assert_eq!((code, &lines[..]), (1, &expected[..]));
}

#[test]
fn nested_members_are_named_where_they_are() {
    for (captures, pointers) in [
        (r#"{"id":1,"x":2,"meta":{"n":1}}|{"id":1,"x":2,"meta":{"n":2}}"#, &["/meta/n"][..]),
        (
            r#"{"id":1,"x":2,"m":{"n":1,"at":5,"y":0}}|{"id":1,"x":2,"m":{"n":2,"at":6,"y":0}}"#,
            &["/m/at", "/m/n"],
        ),
        // In different objects.
        (
            r#"{"id":1,"x":2,"y":4,"a":{"p":{"n":1}},"at":5}|{"id":1,"x":2,"y":4,"a":{"p":{"n":2}},"at":6}"#,
            &["/a/p/n", "/at"],
        ),
        // Only in one of the events.
        (r#"{"id":1,"x":2,"y":3}|{"id":1,"x":2,"y":3,"n":{"a":true}}"#, &["/n"]),
        // In an array: an element, or the array itself if several differ.
        (r#"{"id":1,"l":[{"a":1,"n":1},{"a":2}]}|{"id":1,"l":[{"a":1,"n":2},{"a":2}]}"#, &["/l/0/n"]),
        (r#"{"id":1,"x":2,"l":[1,2,3]}|{"id":1,"x":2,"l":[1,3,2]}"#, &["/l"]),
        (r#"{"id":1,"x":2,"l":[]}|{"id":1,"x":2,"l":{}}"#, &["/l"]),
        (r#"{"id":1,"~/":1,"é":2}|{"id":1,"~/":2,"é":2}"#, &["/~0~1"]),
        (r#"{"id":1,"x":2,"a\nb":1}|{"id":1,"x":2,"a\nb":2}"#, &[r#""/a\nb""#]),
    ] {
        let (code, lines) = checked("", &captures.replace('|', "\n"));
        assert_eq!((code, lines.len()), (1, 1 + pointers.len()), "{captures}: {lines:?}");
        for (pointer, line) in pointers.iter().zip(&lines[1..]) {
            assert!(line.starts_with(&format!("warning: `{pointer}` differs ")), "{captures}: {line}");
        }
    }
}

/// What is called otherwise equal, and what is not.
#[test]
fn distinct_events_are_not_otherwise_equal() {
    for (captures, warnings) in [
        // One member may be half of an event, but not more.
        (r#"{"id":1,"n":1}|{"id":1,"n":2}"#, 1),
        (r#"{"n":1}|{"n":2}"#, 0),
        (r#"{"id":1,"h":{"a":1,"b":2}}|{"id":1,"h":{"a":3,"b":4}}"#, 0),
        (r#"{"id":1,"x":3,"h":{"a":1,"b":2}}|{"id":1,"x":3,"h":{"a":3,"b":4}}"#, 2),
        // So may two members; three are at most a third.
        (r#"{"sensor":1,"value":1.5,"time":100}|{"sensor":1,"value":1.7,"time":101}"#, 0),
        (
            r#"{"sensor":1,"unit":"C","value":1.5,"time":100}|{"sensor":1,"unit":"C","value":1.7,"time":101}"#,
            2,
        ),
        (
            r#"{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}|{"a":2,"b":2,"c":2,"d":1,"e":1,"f":1,"g":1,"h":1}"#,
            0,
        ),
        (
            r#"{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}|{"a":2,"b":2,"c":2,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}"#,
            3,
        ),
        // An array of numbers is one member: the vertices of a zone do not make all its events equal.
        (
            r#"{"a":1,"b":1,"zone":[[[0,0],[0,1],[1,1],[0,0]]]}|{"a":2,"b":2,"zone":[[[0,0],[0,1],[1,1],[0,0]]]}"#,
            0,
        ),
        // Keys are equal, however the numbers are written.
        (r#"{"a":1.0,"b":1}|{"a":1.00,"b":1}|{"b":1,"a":10e-1}"#, 0),
        (r#"{"id":1,"x":{"y":1},"z":[1]}|{"id":2,"x":{"y":2},"z":[2]}"#, 0),
    ] {
        let (code, lines) = checked("numbers.decimals = 8", &captures.replace('|', "\n"));
        assert_eq!(lines.len(), 1 + warnings, "{captures}: {lines:?}");
        assert_eq!(code, i32::from(warnings > 0), "{captures}");
    }
}

/// Real events, all of them distinct: an alarm here would be a false one. With an envelope around them
/// and retries, every member of it is named, and nothing else.
#[test]
fn the_envelope_of_real_events_is_named_and_nothing_else() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/usgs-earthquakes.jsonl");
    let events = std::fs::read_to_string(path).unwrap();
    let (code, lines) = checked("", &events);
    assert_eq!((code, lines.len()), (0, 1), "{lines:?}");
    let mut captures = String::new();
    for (number, event) in events.lines().enumerate() {
        for attempt in 1..=1 + usize::from(number % 5 == 0) {
            let id = 2 * number + attempt;
            let body = &event[1..];
            captures += &format!(
                "{{\"n\":{attempt},\"d\":\"d{id}\",\"at\":{id}.5,\"mac\":\"{id:x}\",\"h\":{{\"r\":{id}}},\"v\":1,{body}\n"
            );
        }
    }
    let (code, lines) = checked("", &captures);
    assert_eq!((code, lines.len()), (1, 6), "{lines:?}");
    for (pointer, line) in ["/at", "/d", "/h/r", "/mac", "/n"].iter().zip(&lines[1..]) {
        assert!(line.starts_with(&format!("warning: `{pointer}` differs together with ")), "{line}");
        assert!(
            line.contains(" and 1 more between events that are otherwise equal (342 pairs, e.g. #1 and #2)"),
            "{line}"
        );
    }
}

/// Members that look like a part of the envelope are left out together, wherever they are.
#[test]
fn names_help_to_find_an_envelope() {
    let event = |n: u32| {
        let body: String = (0..20).map(|member| format!("\"m{member}\":{},", 20 + member)).collect();
        format!(
            "{{\"id\":1,\"p\":{{{body}\"attempt\":{n}}},\"received_at\":{n},\"q\":{{\"signature\":\"{n}\",\"r\":{n}}}}}\n"
        )
    };
    let (code, lines) = checked("", &(event(1) + &event(2)));
    let named: Vec<&str> = lines[1..].iter().map(|line| line.split('`').nth(1).unwrap()).collect();
    let looks = ["/p/attempt", "/q/signature", "/received_at"];
    let differ = ["/p/attempt", "/q/r", "/q/signature", "/received_at"];
    assert_eq!((code, named), (1, [&looks[..], &differ].concat()));
}

#[test]
fn what_differs_between_many_events_at_a_time_is_what_they_are_about() {
    let reading = |time: u32| format!("{{\"sensor\":1,\"unit\":\"C\",\"value\":{time}.5,\"time\":{time}}}\n");
    let readings = |count: u32| (0..count).map(reading).collect::<String>();
    assert_eq!(checked("", &readings(16)).1.len(), 3);
    assert_eq!(checked("", &readings(17)), (0, vec!["looked at 17 deliveries: 17 events".to_owned()]));
    // One that differs alone is told all the same.
    let attempts: String = (0..40).map(|n| format!("{{\"order\":1,\"n\":{n}}}\n")).collect();
    assert_eq!(checked("", &attempts).1[1], differs("/n", "", "39 pairs", "#1 and #2"));
}

#[test]
fn a_long_list_is_cut() {
    let line = |member: usize| {
        let members: Vec<String> =
            (0..25).map(|other| format!("\"m{other:02}\":{}", u8::from(other == member))).collect();
        format!("{{{}}}\n", members.join(","))
    };
    // Every event differs from the last one, in which all members are 0, in one member.
    let (code, lines) = checked("", &(0..26).map(line).collect::<String>());
    assert_eq!((code, lines.len()), (1, 22), "{lines:?}");
    assert_eq!(lines[21], "warning: 5 more differ like that");
}

/// Names are looked at in all of them.
#[test]
fn captures_that_are_too_many_are_told() {
    let captures: String = (0..50_000).map(|n| format!("{{\"id\":{n}}}\n")).collect();
    let (code, lines) = checked("", &(captures + "{\"card\":1}\n"));
    let expected = [
        "looked at 50001 deliveries: 50001 events",
        "only the first 50000 events were compared with one another",
        "warning: `/card` looks like a secret: whoever stores the key stores a digest of it",
    ];
    assert_eq!((code, &lines[..]), (1, &expected.map(str::to_owned)[..]));
}

#[test]
fn a_selection_is_looked_at_and_not_what_is_around_it() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let [v1, v2, captures] = ["checkout-v1.toml", "checkout-v2.toml", "deliveries.jsonl"]
        .map(|name| examples.join(name).display().to_string());
    let folder = Folder::new();
    let (code, lines) = told(folder.run(&["protocol", "check", &v1, "--captures", &captures]));
    let expected = [
        "warning: `attempt` looks like a part of the envelope: every delivery would be another event"
            .to_owned(),
        "looked at 3 deliveries: 3 events".to_owned(),
        differs("/attempt", "", "1 pair", "d1 and d2"),
    ];
    assert_eq!((code, &lines[..]), (1, &expected[..]));
    let (_, lines) =
        told(folder.run(&["protocol", "check", &v1, "--captures", &captures, "--id", "/delivery_attempt"]));
    assert_eq!(lines[2], differs("/attempt", "", "1 pair", "1 and 2"));
    let (code, lines) = told(folder.run(&["protocol", "check", &v2, "--captures", &captures]));
    assert_eq!((code, &lines[..]), (0, &["looked at 3 deliveries: 2 events".to_owned()][..]));
}

#[test]
fn kept_members_with_telling_names_are_named() {
    let captures = r#"{"id":1,"user":{"Card_Number":"4"},"items":[{"a":1},{"token":"t"},{"token":"u"}],"attempt":1}
{"id":2,"headers":{"X-Signature":"s","authorization":"b"},"items":[],"o":{"received":{}}}
"#;
    let secret = |pointer: &str| {
        format!("warning: `{pointer}` looks like a secret: whoever stores the key stores a digest of it")
    };
    let envelope = |pointer: &str| {
        format!(
            "warning: `{pointer}` looks like a part of the envelope: every delivery would be another event"
        )
    };
    let looked = "looked at 2 deliveries: 2 events".to_owned();
    let (code, lines) = checked("", captures);
    let expected = [
        looked.clone(),
        envelope("/attempt"),
        envelope("/headers/X-Signature"),
        secret("/headers/authorization"),
        secret("/items/1/token"),
        envelope("/o/received"),
        secret("/user/Card_Number"),
    ];
    assert_eq!((code, &lines[..]), (1, &expected[..]));
    // What is left out is not hashed, and a constant is no part of the captures.
    let settings = "event = {strip = ['/user/Card_Number', 'headers', 'items', 'o'], add = {attempt = 1}}";
    assert_eq!(checked(settings, captures), (0, vec![looked.clone()]));
    // A selected member has had its word, what is inside it has not.
    let settings = "select = [{member = 'card', pointer = '/id'}, {member = 'u', pointer = '/user'}]";
    let (_, lines) = checked(settings, captures);
    assert_eq!(lines, [secret("card"), looked, secret("/u/Card_Number")]);
}

#[test]
fn a_check_that_saw_nothing_does_not_pass() {
    for (captures, looked) in [
        ("", &["looked at 0 deliveries: 0 events"][..]),
        (
            "no event\n[]\n",
            &["looked at 2 deliveries: 0 events", "2 deliveries are no events under this protocol"],
        ),
    ] {
        let (code, lines) = checked("", captures);
        let (last, before) = lines.split_last().unwrap();
        assert_eq!((code, before), (1, &looked.iter().map(|&line| line.to_owned()).collect::<Vec<_>>()[..]));
        assert_eq!(last, "warning: no delivery is an event under this protocol: nothing was checked");
    }
    let (code, lines) = checked("event.duplicate_names = 'reject'", "{\"a\":1}\n{\"a\":1,\"a\":2}\n\n");
    let expected = ["looked at 2 deliveries: 1 event", "1 delivery is no event under this protocol"];
    assert_eq!((code, &lines[..]), (0, &expected.map(str::to_owned)[..]));
}

#[test]
fn captures_are_refused_where_they_say_nothing() {
    let folder = Folder::new();
    folder.file("captures.jsonl", "{}\n");
    let run = |options: &[&str]| folder.run(&[&["protocol", "check"], options].concat());
    run(&["bytes-v1", "--captures", "captures.jsonl"]).expect_trouble(
        "protocol bytes-v1: it does not look into lines, so captures have no members to name",
    );
    run(&["geojson-v1", "--captures", "missing.jsonl"]).expect_trouble("missing.jsonl");
    run(&["geojson-v1", "--captures", "captures.jsonl", "--id", "x"])
        .expect_trouble("`x` is no JSON Pointer");
    assert_eq!(run(&["geojson-v1", "--id", "/x"]).code, Some(2));
    assert_eq!(run(&["geojson-v1", "--captures"]).code, Some(2));
    run(&["geojson-v1", "--captures", "captures.jsonl", "captures.jsonl"]).expect_code(0);
}

/// An order of members is no member; it is told for what it is.
#[test]
fn events_may_differ_in_the_order_of_members_only() {
    let captures = r#"{"delivery_id":"d1","a":1,"b":{"c":1,"d":2}}
{"delivery_id":"d2","a":1,"b":{"d":2,"c":1}}
"#;
    let (code, lines) = checked("canonical.members = 'as-written'\nevent.strip = ['delivery_id']", captures);
    assert_eq!(code, 1);
    assert_eq!(
        lines[1..],
        [
            "warning: events differ in nothing but the order of their members (1 pair, e.g. d1 and d2): sorted members make them one"
        ]
    );
    assert_eq!(checked("event.strip = ['delivery_id']", captures).0, 0);
}

/// Whatever has a canonical form can be looked into.
#[test]
fn unusual_values_are_compared_like_others() {
    let digits = "9".repeat(400);
    let deep = format!("{}1{}", "{\"a\":[".repeat(511), "]}".repeat(511));
    for value in ["NaN", "-1e999", "\"\\ud800\"", &digits, &deep, "-0.0", "{\"\\udc00\":1}", "[]"] {
        let line = |n: u32| format!("{{\"id\":1,\"big\":18446744073709551615,\"v\":{value},\"n\":{n}}}\n");
        for settings in ["", "members = 'as-written', separators = 'spaced', "] {
            let settings = format!("canonical = {{{settings}non_ascii = 'escape'}}");
            let (code, lines) = checked(&settings, &(line(1) + &line(2)));
            let expected =
                ["looked at 2 deliveries: 2 events".to_owned(), differs("/n", "", "1 pair", "#1 and #2")];
            assert_eq!((code, &lines[..]), (1, &expected[..]), "{value}");
        }
        // The unusual value itself is what differs, and is read another way than the usual one.
        let other = "{\"id\":1,\"big\":18446744073709551615,\"v\":0,\"n\":1}\n";
        let (code, lines) = checked("canonical.non_ascii = 'escape'", &(line(1) + other));
        assert_eq!((code, lines.len()), (1, 2), "{value}: {lines:?}");
        assert!(lines[1].starts_with("warning: `/v` differs between"), "{value}: {lines:?}");
    }
}
