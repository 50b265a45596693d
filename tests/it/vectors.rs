//! The golden vectors, which `scripts/make_vectors.py` makes from the reference.

use std::fs;
use std::path::Path;

use firstseen::{Hash, Keyer, Overrides, Protocol, stages};
use serde_json::Value;

use crate::reference;

fn groups() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
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

#[test]
fn keys_and_canonical_texts_are_the_golden_ones() {
    let mut cases = 0;
    for group in groups() {
        for (index, settings) in group["settings"].as_array().unwrap().iter().enumerate() {
            let mut keyer = Keyer::new(&protocol(settings));
            for case in group["cases"].as_array().unwrap() {
                let got = keyer.key_and_canonical(&input(case)).ok();
                let got = got.map(|(key, canonical)| {
                    (key.to_string(), String::from_utf8_lossy(canonical).into_owned())
                });
                let want = case["results"][index].as_object().map(|result| {
                    (
                        result["key"].as_str().unwrap().to_owned(),
                        result["canonical"].as_str().unwrap().to_owned(),
                    )
                });
                let mut exactly = Vec::new();
                let exact = stages::canonical_exactly(&protocol(settings), &input(case), &mut exactly).ok();
                let exact = exact.map(|()| String::from_utf8_lossy(&exactly).into_owned());
                assert_eq!(exact.as_ref(), want.as_ref().map(|(_, canonical)| canonical), "{case}");
                assert_eq!(got, want, "{} under {settings}: {case}", group["group"]);
                cases += 1;
            }
        }
    }
    assert!(cases > 2000, "only {cases} cases were found");
}

#[test]
fn the_reference_of_these_tests_agrees_with_the_golden_vectors() {
    for group in groups() {
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
