//! The golden vectors, which `scripts/make_vectors.py` makes from the reference.

use std::fs;
use std::path::Path;

use firstseen::{Hash, Keyer, Overrides, Protocol, stages};
use serde_json::Value;

use crate::reference;

/// The groups in a folder of `tests/vectors`, in the order of their names.
fn groups(folder: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths.iter().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
}

fn input(case: &Value) -> Vec<u8> {
    match (case["input"].as_str(), case["input_hex"].as_str()) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (_, Some(hex)) => {
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        }
        _ => panic!("a case without input: {case}"),
    }
}

fn protocol(settings: &Value) -> Protocol {
    let overrides = Overrides {
        decimals: Some(settings["decimals"].as_u64().unwrap() as u16),
        hash: Some(if settings["hash"] == "sha256" { Hash::Sha256 } else { Hash::Blake2b }),
        key_bytes: Some(settings["key_bytes"].as_u64().unwrap() as usize),
        ..Overrides::default()
    };
    Protocol::built_in("geojson-v1").unwrap().derive(&overrides).unwrap()
}

/// The key, with its prefix, and the canonical text; `None` where the line is refused.
type KeyAndText = Option<(String, String)>;

fn wanted(case: &Value, index: usize) -> KeyAndText {
    let text = |result: &Value, name: &str| result[name].as_str().unwrap().to_owned();
    let result = &case["results"][index];
    (!result.is_null()).then(|| (text(result, "key"), text(result, "canonical")))
}

fn keyed(keyer: &mut Keyer, prefix: &str, line: &[u8]) -> KeyAndText {
    let (key, canonical) = keyer.key_and_canonical(line).ok()?;
    Some((format!("{prefix}{key}"), String::from_utf8_lossy(canonical).into_owned()))
}

fn canonical_exactly(protocol: &Protocol, line: &[u8]) -> Option<String> {
    let mut canonical = Vec::new();
    stages::canonical_exactly(protocol, line, &mut canonical).ok()?;
    Some(String::from_utf8_lossy(&canonical).into_owned())
}

/// Checks the cases of a group, of which the results at `index` are under `protocol`; returns how many
/// there are. The exact stage alone does not project, and knows no shapes.
fn check(group: &Value, index: usize, protocol: &Protocol, exactly: bool) -> usize {
    let mut keyer = Keyer::new(protocol);
    let cases = group["cases"].as_array().unwrap();
    for case in cases {
        let (line, want) = (input(case), wanted(case, index));
        // Later lines of one structure take another way than the first.
        for _ in 0..3 {
            let got = keyed(&mut keyer, &protocol.settings().prefix, &line);
            assert_eq!(got, want, "{} under {}: {case}", group["group"], protocol.name());
        }
        if exactly {
            let want = want.map(|(_, canonical)| canonical);
            assert_eq!(canonical_exactly(protocol, &line), want, "{}, exactly: {case}", group["group"]);
        }
    }
    cases.len()
}

#[test]
fn keys_and_canonical_texts_are_the_golden_ones() {
    let mut cases = 0;
    for group in groups("") {
        for (index, settings) in group["settings"].as_array().unwrap().iter().enumerate() {
            cases += check(&group, index, &protocol(settings), true);
        }
    }
    assert!(cases > 2000, "only {cases} cases were found");
}

/// Checks the groups that are about protocols, those on geometry or the others.
fn check_protocols(on_geometry: bool) -> usize {
    let mut cases = 0;
    // The bytes of a line are hashed without a look into it.
    let bytes = Protocol::built_in("bytes-v1").unwrap().settings().scheme;
    for group in groups("protocols") {
        let text = group["protocol"].as_str().unwrap();
        if text.contains("[geometry]") == on_geometry {
            let protocol = Protocol::from_toml(group["group"].as_str().unwrap(), text).unwrap();
            let settings = protocol.settings();
            let as_it_is = !on_geometry && !settings.projects() && settings.scheme != bytes;
            cases += check(&group, 0, &protocol, as_it_is);
        }
    }
    cases
}

#[test]
fn every_setting_has_its_golden_keys() {
    let cases = check_protocols(false);
    assert!(cases > 1000, "only {cases} cases were found");
}

#[test]
fn shapes_have_their_golden_keys() {
    let cases = check_protocols(true);
    assert!(cases > 500, "only {cases} cases were found");
}

#[test]
fn the_reference_of_these_tests_agrees_with_the_golden_vectors() {
    for group in groups("") {
        // The reference here knows neither dropped surrogates nor a limit on depth.
        if ["lone-surrogates", "depth"].iter().any(|name| group["group"] == *name) {
            continue;
        }
        for case in group["cases"].as_array().unwrap() {
            let Ok(line) = String::from_utf8(input(case)) else { continue };
            for (settings, result) in
                group["settings"].as_array().unwrap().iter().zip(case["results"].as_array().unwrap())
            {
                let decimals = settings["decimals"].as_u64().unwrap() as usize;
                assert_eq!(
                    reference::canonical(&line, decimals).as_deref(),
                    result["canonical"].as_str(),
                    "{line}"
                );
            }
        }
    }
}
