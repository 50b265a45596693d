//! Real events, redelivered as another program would write them: `dedup` gives back exactly the
//! first copies.

use std::path::Path;

use serde_json::Value;

use crate::tool::Folder;

/// SplitMix64, so that the test is the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// `value` with spaces, ASCII escapes, shuffled members, and doubles off in the ninth decimal or
/// beyond (by less than half of the eighth).
fn render(value: &Value, random: &mut Random, out: &mut String) {
    match value {
        Value::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                render(element, random, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            random.shuffle(&mut members);
            out.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                render(&Value::String(name.clone()), random, out);
                out.push_str(": ");
                render(member, random, out);
            }
            out.push('}');
        }
        Value::Number(number) if number.is_f64() => {
            let drift = [0.0, 3e-9, -3e-9, 4e-10, 1e-13][random.below(5) as usize];
            out.push_str(&format!("{:?}", number.as_f64().unwrap() + drift));
        }
        Value::String(text) => {
            let mut units = [0; 2];
            for character in Value::from(text.as_str()).to_string().chars() {
                if character.is_ascii() {
                    out.push(character);
                } else {
                    character
                        .encode_utf16(&mut units)
                        .iter()
                        .for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
                }
            }
        }
        plain => out.push_str(&plain.to_string()),
    }
}

#[test]
fn real_events_come_back_as_their_first_copies() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/usgs-earthquakes.jsonl");
    let original = std::fs::read_to_string(path).unwrap();
    let events: Vec<&str> = original.lines().collect();
    assert_eq!(events.len(), 1707);
    let mut random = Random(20_180_207);
    let mut feed = String::new();
    let mut redelivered = 0;
    for (index, event) in events.iter().enumerate() {
        feed.push_str(event);
        feed.push('\n');
        // Copies of this event or one before it.
        for _ in 0..random.below(3) {
            let Value::Object(mut copy) =
                serde_json::from_str(events[random.below(index as u64 + 1) as usize]).unwrap()
            else {
                panic!("an event is an object");
            };
            copy.insert("delivery_id".to_owned(), format!("d-{redelivered}").into());
            copy.insert("attempt".to_owned(), 2.into());
            copy.insert("received_at".to_owned(), "2018-02-07T01:26:13.5Z".into());
            render(&Value::Object(copy), &mut random, &mut feed);
            feed.push('\n');
            redelivered += 1;
        }
    }
    assert!(redelivered > 1000);

    let folder = Folder::new();
    folder.file("feed.jsonl", &feed);
    for options in
        [&[][..], &["--no-mmap", "--threads", "8", "--chunk-bytes", "2000", "--batch-bytes", "9000"]]
    {
        let run =
            folder.run(&[&["dedup", "feed.jsonl", "-o", "first.jsonl"], options].concat()).expect_code(0);
        assert!(String::from_utf8(folder.read("first.jsonl")).unwrap() == original);
        let summary = format!("1,707 unique, {},{:03} duplicates", redelivered / 1000, redelivered % 1000);
        assert!(run.stderr.contains(&summary), "{}", run.stderr);
    }
}
