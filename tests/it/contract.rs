//! `record` and `verify`: what stands, and what is told when it does not.

use std::path::Path;

use serde_json::Value;

use crate::tool::Folder;

const CAPTURES: &str = "{\"delivery_id\":\"d1\",\"x\":1.5}\n{\"x\":1.50,\"delivery_id\":\"d2\"}\n\n{\"delivery_id\":3,\"x\":2}\n{\"x\":4}\n";

fn recorded() -> Folder {
    let folder = Folder::new();
    folder.file("captures.jsonl", CAPTURES);
    folder.run(&["record", "captures.jsonl", "-o", "seen.json"]).expect_code(0);
    folder
}

#[track_caller]
fn check_verify(folder: &Folder, options: &[&str], code: i32, expected: &str) {
    let run = folder.run(&[&["verify", "captures.jsonl", "seen.json"], options].concat()).expect_code(code);
    assert_eq!(String::from_utf8(run.stdout).unwrap(), expected);
}

fn keys(folder: &Folder) -> Vec<String> {
    let run = folder.run(&["key", "captures.jsonl"]).expect_code(0);
    String::from_utf8(run.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_record_names_the_first_delivery_of_each_key() {
    let folder = recorded();
    let record: Value = serde_json::from_slice(&folder.read("seen.json")).unwrap();
    let keys = keys(&folder);
    assert_eq!(record["protocol"]["name"], "geojson-v1");
    assert_eq!(record["protocol"]["fingerprint"], "06f50e9a8b432ab147296028e784a407");
    let expected = serde_json::json!({&keys[0]: "d1", &keys[2]: "3", &keys[3]: "#4"});
    assert_eq!(record["keys"], expected);
    let again = folder.read("seen.json");
    folder.run(&["record", "captures.jsonl", "-o", "seen.json"]).expect_code(0);
    assert_eq!(folder.read("seen.json"), again);
    assert_eq!(folder.names(), ["captures.jsonl", "seen.json"]);
    check_verify(&folder, &[], 0, "stable 4 deliveries\n");
}

#[test]
fn a_bare_map_is_verified_too() {
    let folder = recorded();
    let record: Value = serde_json::from_slice(&folder.read("seen.json")).unwrap();
    folder.file("seen.json", serde_json::to_vec(&record["keys"]).unwrap());
    check_verify(&folder, &[], 0, "stable 4 deliveries\n");
}

#[test]
fn new_lost_and_changed_keys_are_told() {
    let folder = recorded();
    let before = keys(&folder);
    folder.file("captures.jsonl", "{\"x\":1.5,\"delivery_id\":\"d2\"}\n{\"delivery_id\":\"d1\",\"x\":1.5}\n{\"delivery_id\":3,\"x\":2}\n{\"delivery_id\":\"d9\",\"x\":9}\n");
    let after = keys(&folder);
    let expected = format!(
        "new key {} (first d9)\nlost key {} (was #4)\nkey {} was first claimed by d1, now by d2\n",
        after[3], before[3], before[0]
    );
    check_verify(&folder, &[], 1, &expected);
}

#[test]
fn a_protocol_that_drifted_is_told_first() {
    let folder = recorded();
    let run = folder.run(&["verify", "captures.jsonl", "seen.json", "--decimals", "7"]).expect_code(1);
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(
        text.starts_with("protocol drift: recorded under geojson-v1 (06f50e9a8b432ab147296028e784a407), verified under geojson-v1+decimals=7 ("),
        "{text}"
    );
    // These captures have the same keys under both.
    assert_eq!(text.lines().count(), 1, "{text}");
    let text = String::from_utf8(
        folder.run(&["verify", "captures.jsonl", "seen.json", "--hash", "sha256"]).expect_code(1).stdout,
    )
    .unwrap();
    assert_eq!((text.matches("new key").count(), text.matches("lost key").count()), (3, 3), "{text}");
}

#[test]
fn ids_are_where_the_pointer_says() {
    let folder = Folder::new();
    folder.file("captures.jsonl", "{\"meta\":{\"id\":\"a\"},\"x\":1}\n{\"meta\":17,\"x\":2}\n");
    folder.run(&["record", "captures.jsonl", "-o", "seen.json", "--id", "/meta/id"]).expect_code(0);
    let record: Value = serde_json::from_slice(&folder.read("seen.json")).unwrap();
    let mut ids: Vec<&str> =
        record["keys"].as_object().unwrap().values().map(|id| id.as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["#2", "a"]);
    folder
        .run(&["record", "captures.jsonl", "-o", "seen.json", "--id", "meta"])
        .expect_trouble("`meta` is no JSON Pointer");
}

#[test]
fn trouble_leaves_the_record_that_was_there() {
    let folder = recorded();
    let before = folder.read("seen.json");
    folder.file("bad.jsonl", "{}\n{\"a\":01}\n");
    let run = folder.run(&["record", "captures.jsonl", "bad.jsonl", "-o", "seen.json"]).expect_code(2);
    assert_eq!(run.stderr, "bad.jsonl:2:7: malformed number\n");
    folder
        .run(&["record", "captures.jsonl", "-o", "seen.gz"])
        .expect_trouble("seen.gz: a record is not compressed");
    folder.run(&["record", "seen.json", "-o", "seen.json"]).expect_trouble("seen.json is also an input");
    assert_eq!(folder.read("seen.json"), before);
    folder.run(&["verify", "captures.jsonl", "missing.json"]).expect_trouble("cannot read missing.json");
    folder
        .run(&["verify", "captures.jsonl", "captures.jsonl"])
        .expect_trouble("captures.jsonl: no record of keys");
}

#[test]
fn the_checkout_handler_is_recorded_with_its_retry() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let [v1, v2, captures] = ["checkout-v1.toml", "checkout-v2.toml", "deliveries.jsonl"]
        .map(|name| examples.join(name).display().to_string());
    let folder = Folder::new();
    for (protocol, ids) in [(&v1, &["d1", "d2", "d3"][..]), (&v2, &["d1", "d3"])] {
        folder.run(&["record", &captures, "-o", "seen.json", "--protocol", protocol]).expect_code(0);
        let record: Value = serde_json::from_slice(&folder.read("seen.json")).unwrap();
        let keys = record["keys"].as_object().unwrap();
        assert!(keys.keys().all(|key| key.starts_with("inv:")));
        let mut recorded: Vec<&str> = keys.values().map(|id| id.as_str().unwrap()).collect();
        recorded.sort_unstable();
        assert_eq!(recorded, ids);
        let run = folder.run(&["verify", &captures, "seen.json", "--protocol", protocol]).expect_code(0);
        assert_eq!(run.stdout, b"stable 3 deliveries\n");
    }
}

#[test]
fn a_damaged_record_is_trouble_and_no_difference() {
    let folder = recorded();
    let record = folder.read("seen.json");
    let mut damaged: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let keys = damaged["keys"].take();
    let (key, _) = keys.as_object().unwrap().iter().next().unwrap();
    for (text, message) in [
        (r#"{"keys":{}}"#.to_owned(), "missing field `protocol`".to_owned()),
        (damaged.to_string(), "invalid type: null, expected an object of keys and ids".to_owned()),
        (format!("{{\"kyes\":{keys}}}"), "what stands for the id of `kyes` is none".to_owned()),
        (format!("{{\"{key}\":null}}"), format!("what stands for the id of `{key}` is none")),
        (format!("{{\"{key}\":\"a\",\"{key}\":\"b\"}}"), format!("`{key}` is there twice")),
        (String::from_utf8_lossy(&record[..record.len() / 2]).into_owned(), "EOF".to_owned()),
        ("[]".to_owned(), "invalid type: sequence".to_owned()),
    ] {
        folder.file("damaged.json", &text);
        let run = folder.run(&["verify", "captures.jsonl", "damaged.json"]);
        run.expect_trouble("damaged.json: no record of keys").expect_trouble(&message);
    }
}

#[test]
fn a_record_comes_through_a_pipe_as_well() {
    let folder = recorded();
    let record = folder.read("seen.json");
    let run = folder.pipe(&["verify", "captures.jsonl", "-"], &record).expect_code(0);
    assert_eq!(run.stdout, b"stable 4 deliveries\n");
    folder.pipe(&["verify", "-", "-"], &record).expect_trouble("standard input is given twice");
}

#[test]
fn ids_do_nothing_to_a_terminal() {
    let folder = Folder::new();
    folder.file("captures.jsonl", "{\"delivery_id\":\"d1)\\nstable 3 deliveries\\u001b[31m\",\"x\":1}\n");
    folder.file("seen.json", "{}");
    let text =
        String::from_utf8(folder.run(&["verify", "captures.jsonl", "seen.json"]).expect_code(1).stdout)
            .unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains(r#"(first "d1)\nstable 3 deliveries\u001b[31m")"#), "{text}");
}
