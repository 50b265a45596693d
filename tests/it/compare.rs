//! `compare`: what each change of a protocol does to the keys of captures.

use std::path::Path;

use serde_json::Value;

use crate::tool::Folder;

/// Checkouts that show what a clean-up of their key can do: `a1` and `a2` are one checkout and its
/// retry; `b` and `c` differ in the form of the total only; `d` and `e` in a combining accent; `f` and `g` in the order of their items.
const CAPTURES: &str = r#"{"delivery_id":"a1","delivery_attempt":1,"body":{"order_id":"O-1","total":10.5,"customer":{"email":"x@y.z"},"items":[{"sku":"A"}]}}
{"delivery_id":"a2","delivery_attempt":2,"body":{"order_id":"O-1","total":10.5,"customer":{"email":"x@y.z"},"items":[{"sku":"A"}]}}
{"delivery_id":"b","delivery_attempt":1,"body":{"order_id":"O-2","total":7.5,"customer":{"email":"x@y.z"},"items":[]}}
{"delivery_id":"c","delivery_attempt":1,"body":{"order_id":"O-2","total":"7.50","customer":{"email":"x@y.z"},"items":[]}}
{"delivery_id":"d","delivery_attempt":1,"body":{"order_id":"O-3","customer":{"email":"é@y.z"}}}
{"delivery_id":"e","delivery_attempt":1,"body":{"order_id":"O-3","customer":{"email":"e\u0301@y.z"}}}
{"delivery_id":"f","delivery_attempt":1,"body":{"order_id":"O-4","items":[{"sku":"A"},{"sku":"B"}]}}
{"delivery_id":"g","delivery_attempt":1,"body":{"order_id":"O-4","items":[{"sku":"B"},{"sku":"A"}]}}
"#;

type Row = (String, [u64; 5], String);

/// What `compare` says of each setting: kept, renamed, merged, split, rejected; and the advice.
fn compared(folder: &Folder, from: &str, to: &str) -> (Option<i32>, Vec<Row>) {
    let run = folder.run(&["compare", "--from", from, "--to", to, "captures.jsonl", "--json"]);
    let compared: Value = serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    let comparisons = compared["comparisons"].as_array().unwrap();
    let counts = |comparison: &Value| {
        ["kept", "renamed", "merged", "split", "rejected"].map(|name| comparison[name].as_u64().unwrap())
    };
    let text = |comparison: &Value, name: &str| comparison[name].as_str().unwrap().to_owned();
    let named =
        |comparison: &Value| (text(comparison, "setting"), counts(comparison), text(comparison, "advice"));
    (run.code, comparisons.iter().map(named).collect())
}

fn checkout() -> (Folder, String) {
    let folder = Folder::new();
    folder.file("captures.jsonl", CAPTURES);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/checkout-v1.toml");
    let text = std::fs::read_to_string(path).unwrap();
    folder.file("v1.toml", &text);
    (folder, text)
}

/// One change of the handler at a time: none of them leaves the keys, and only some the identity.
#[test]
fn each_change_of_a_handler_is_told_for_what_it_is() {
    let (folder, v1) = checkout();
    let attempt = v1.split("# Every retry").next().unwrap().to_owned();
    let stays = "every key stays";
    let migrates = "same events, new keys: needs a migration of the seen store";
    let merges = "merges distinct events: only right if they are one";
    let both = "merges distinct events: only right if they are one; other keys move: needs a migration of the seen store";
    for (what, changed, setting, expected, advice) in [
        ("the same dump, put into a function", v1.clone() + "\n# a comment\n", "", [8, 0, 0, 0, 0], stays),
        ("attempt dropped", attempt, "select attempt", [0, 6, 2, 0, 0], both),
        (
            "sort_keys=True",
            v1.replace("as-written", "sorted"),
            "canonical.members",
            [0, 8, 0, 0, 0],
            migrates,
        ),
        ("separators", v1.replace("spaced", "compact"), "canonical.separators", [0, 8, 0, 0, 0], migrates),
        (
            "two decimals",
            v1.replace("transforms = [\"str\"]", "transforms = [{ fixed = 2 }]"),
            "select total",
            [0, 6, 2, 0, 0],
            both,
        ),
        (
            "items sorted",
            v1.replace("{ value = [] }]", "{ value = [] }]\ntransforms = [{ sort_by = \"/sku\" }]"),
            "select items",
            [6, 0, 2, 0, 0],
            merges,
        ),
        (
            "NFC on email",
            v1.replace("\"lower\"]", "\"lower\", \"nfc\"]"),
            "select email",
            [6, 0, 2, 0, 0],
            merges,
        ),
        ("another hash", v1.replace("\"sha256\"", "\"blake2b\""), "key.hash", [0, 8, 0, 0, 0], migrates),
        ("another prefix", v1.replace("inv:", "pay:"), "key.prefix", [0, 8, 0, 0, 0], migrates),
    ] {
        folder.file("changed.toml", changed);
        let (code, comparisons) = compared(&folder, "v1.toml", "changed.toml");
        assert_eq!(code, Some(i32::from(!setting.is_empty())), "{what}");
        let alone: Vec<_> = comparisons.iter().filter(|(name, ..)| name == setting).collect();
        assert_eq!(alone[0].1, expected, "{what}: {comparisons:?}");
        assert_eq!(alone[0].2, advice, "{what}");
        assert_eq!(comparisons.last().unwrap().1, expected, "{what}: all together is that one change");
        let (_, back) = compared(&folder, "changed.toml", "v1.toml");
        let [kept, renamed, merged, split, rejected] = back.last().unwrap().1;
        assert_eq!((merged, rejected), (0, 0), "{what}, back: {back:?}");
        // What was two events merged is one event split.
        assert_eq!((kept + renamed, split), (expected[0] + expected[1], expected[2] / 2), "{what}, back");
    }
}

#[test]
fn a_clean_up_is_taken_apart_into_its_changes() {
    let (folder, _) = checkout();
    let v2 = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/checkout-v2.toml").display().to_string();
    let (code, comparisons) = compared(&folder, "v1.toml", &v2);
    assert_eq!(code, Some(1));
    let expected = [
        ("canonical.members", [0, 8, 0, 0, 0]),
        ("canonical.separators", [0, 8, 0, 0, 0]),
        ("select attempt", [0, 6, 2, 0, 0]),
        ("select total", [0, 6, 2, 0, 0]),
        ("select order", [0, 8, 0, 0, 0]),
        ("", [0, 4, 4, 0, 0]),
    ];
    let comparisons: Vec<_> = comparisons.iter().map(|(name, counts, _)| (name.as_str(), *counts)).collect();
    assert_eq!(comparisons, expected);
}

#[test]
fn deliveries_that_only_one_protocol_rejects_are_counted() {
    let folder = Folder::new();
    folder.file("captures.jsonl", "{\"a\":1,\"a\":2}\n{\"a\":NaN}\n{\"a\":1}\nno event\n");
    let (code, comparisons) = compared(&folder, "geojson-v1", "jcs-v1");
    assert_eq!(code, Some(1));
    let of = |name: &str| comparisons.iter().find(|(setting, ..)| setting == name).unwrap().1[4];
    assert_eq!((of("event.duplicate_names"), of("event.non_finite"), of("")), (1, 1, 2));
    // A repeated name, and what its deliveries are called by.
    let run = folder.run(&["compare", "--from", "jcs-v1", "--to", "geojson-v1", "captures.jsonl", "--json"]);
    let there: Value = serde_json::from_slice(&run.stdout).unwrap();
    let all = there["comparisons"].as_array().unwrap().last().unwrap();
    let expected = serde_json::json!([
        {"id": "#1", "by": "from", "reason": "byte 8: repeated member name"},
        {"id": "#2", "by": "from", "reason": "byte 6: number that is not finite"},
    ]);
    assert_eq!(all["rejected_examples"], expected);
    // An integer past the range of a double is no number of JCS, whether its shape is known or not.
    let big = "9".repeat(400);
    for first in ["a", "b"] {
        folder.file("captures.jsonl", format!("{{\"{first}\":1}}\n{{\"a\":{big}}}\n"));
        let (_, comparisons) = compared(&folder, "geojson-v1", "jcs-v1");
        let scheme = comparisons.iter().find(|(setting, ..)| setting == "canonical.scheme").unwrap();
        assert_eq!(scheme.1[4], 1, "{comparisons:?}");
    }
}

#[test]
fn the_table_says_what_follows() {
    let (folder, v1) = checkout();
    folder.file("changed.toml", v1.replace("transforms = [\"str\"]", "transforms = [{ fixed = 2 }]"));
    let run = folder
        .run(&["compare", "--from", "v1.toml", "--to", "changed.toml", "captures.jsonl"])
        .expect_code(1);
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.contains("merges distinct events: only right if they are one"), "{text}");
    assert!(text.contains("merged: b, c\n") && text.contains("renamed: a1, a2, d\n"), "{text}");
    folder.file("changed.toml", v1.replace("transforms = [\"str\"]", "transforms = [\"lower\"]"));
    let run = folder.run(&["compare", "--from", "v1.toml", "--to", "changed.toml", "captures.jsonl"]);
    let text = String::from_utf8(run.expect_code(1).stdout).unwrap();
    let rejected = "rejected: a1 (by --to: byte 75: `total`: `lower` cannot take a number), a2 (by";
    assert!(text.contains(rejected), "{text}");
    folder
        .run(&["compare", "--from", "v1.toml", "--to", "missing.toml", "captures.jsonl"])
        .expect_trouble("no such protocol");
    let same = folder
        .run(&["compare", "--from", "geojson-v1", "--to", "geojson-v1", "captures.jsonl"])
        .expect_code(0);
    assert!(String::from_utf8(same.stdout).unwrap().contains("every key stays"));
    // What has seen nothing is no pass.
    folder.file("captures.jsonl", "no event\n\n[]\n");
    let nothing = folder
        .run(&["compare", "--from", "geojson-v1", "--to", "geojson-v1", "captures.jsonl"])
        .expect_code(1);
    let text = String::from_utf8(nothing.stdout).unwrap();
    assert!(
        text.ends_with(
            "looked at 2 deliveries, of which 0 are events under one protocol or both\nnothing was compared\n"
        ),
        "{text}"
    );
}
