//! RFC 8785: the samples of its section 3.2, the numbers of its Appendix B, and random ones against another implementation.

use std::process::Command;

use firstseen::{Keyer, Protocol};

use crate::tool::Folder;

/// The canonical text of `{"v": TOKEN}` under `jcs-v1`, without what is around the value.
fn canonical(token: &str) -> Option<String> {
    let mut keyer = Keyer::new(&Protocol::built_in("jcs-v1").unwrap());
    let canonical = keyer.canonical(format!("{{\"v\":{token}}}").as_bytes()).ok()?;
    let text = String::from_utf8(canonical.to_vec()).unwrap();
    Some(text.strip_prefix("{\"v\":").unwrap().strip_suffix('}').unwrap().to_owned())
}

/// The canonical form of an event under `jcs-v1`.
fn canonical_event(event: &str) -> String {
    let mut keyer = Keyer::new(&Protocol::built_in("jcs-v1").unwrap());
    String::from_utf8(keyer.canonical(event.as_bytes()).unwrap().to_vec()).unwrap()
}

#[test]
fn values_are_serialised_as_in_section_3_2_2() {
    let event = r#"{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"#;
    let text = concat!(
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
        r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    assert_eq!(canonical_event(event), text);
    // Section 3.2.4 gives the bytes: the euro sign is e2 82 ac.
    assert!(text.as_bytes().windows(4).any(|bytes| bytes == [0xe2, 0x82, 0xac, b'$']));
}

#[test]
fn names_are_sorted_as_in_section_3_2_3() {
    let event = r#"{
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    let sorted = canonical_event(event);
    let values: Vec<&str> = sorted.split('"').skip(3).step_by(4).collect();
    assert_eq!(
        values,
        [
            "Carriage Return",
            "One",
            "Control",
            "Latin Small Letter O With Diaeresis",
            "Euro Sign",
            "Emoji: Grinning Face",
            "Hebrew Letter Dalet With Dagesh",
        ]
    );
}

#[test]
fn numbers_are_those_of_appendix_b() {
    for (bits, expected) in [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        let number = f64::from_bits(bits);
        for token in [format!("{number:e}"), format!("{number:?}")] {
            assert_eq!(canonical(&token).as_deref(), Some(expected), "{bits:016x}");
        }
    }
    for token in ["NaN", "Infinity", "-Infinity", "1e999"] {
        assert_eq!(canonical(token), None, "{token}");
    }
    assert_eq!(canonical(&format!("1{}", "0".repeat(308))).as_deref(), Some("1e+308"));
    assert_eq!(canonical(&format!("1{}", "0".repeat(309))), None, "an integer past the range of a double");
}

#[test]
fn a_hundred_thousand_doubles_are_written_as_by_node() {
    let script = "const lines = require('fs').readFileSync('feed', 'utf8').trimEnd().split('\\n');
        process.stdout.write(lines.map((line) => JSON.stringify(JSON.parse(line)) + '\\n').join(''))";
    let folder = Folder::new();
    let mut feed = String::new();
    let mut state = 20_180_207_u64;
    while feed.len() < 3_200_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = state ^ (state >> 33);
        let number = f64::from_bits(bits);
        if number.is_finite() {
            // Every magnitude, and the magnitudes that are not written with an exponent.
            let plain = (bits % 1_000_000_007) as f64 / 10_f64.powi((bits >> 40) as i32 % 16);
            feed.push_str(&format!("{{\"v\":{number:e}}}\n{{\"v\":{plain:?}}}\n"));
        }
    }
    assert!(feed.lines().count() > 100_000);
    folder.file("feed", &feed);
    let node = match Command::new("node").args(["-e", script]).current_dir(folder.path()).output() {
        Ok(node) => node,
        Err(error) => return eprintln!("skipped: node, to compare with, does not start: {error}"),
    };
    assert!(node.status.success(), "{}", String::from_utf8_lossy(&node.stderr));
    let run = folder.run(&["key", "--canonical", "--protocol", "jcs-v1", "feed"]).expect_code(0);
    let ours = String::from_utf8(run.stdout).unwrap();
    let theirs = String::from_utf8(node.stdout).unwrap();
    assert_eq!(ours.lines().count(), theirs.lines().count());
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        assert_eq!(ours.split_once('\t').unwrap().1, theirs);
    }
}
