//! A small sensor feed, made in memory: the input of the benchmarks.
//!
//! GeoJSON point events of about 300 bytes by three serializers, each with its own order of
//! members. Every fourth line delivers an earlier event again: by any of the serializers, in another
//! envelope, and with the drift that arithmetic leaves in coordinates. The same number of lines
//! always gives the same bytes.

/// How far back a redelivery reaches, in events.
const WINDOW: u64 = 50_000;

/// That many lines, of which every fourth is a redelivery.
pub(crate) fn feed(lines: u64) -> Vec<u8> {
    let mut random = Random(1);
    let mut feed = String::new();
    for line in 0..lines {
        let again = line % 4 == 3;
        let delivered = line - line / 4;
        let number = if again { delivered - 1 - random.below(delivered.min(WINDOW)) } else { delivered };
        let serializer = if again { random.below(3) } else { number % 3 };
        feed.push_str(&event(number, serializer, again, random.next()));
        feed.push('\n');
    }
    feed.into_bytes()
}

/// An event in one serializer's order. What it says is a function of its number.
fn event(number: u64, serializer: u64, again: bool, delivery: u64) -> String {
    let mut random = Random(number);
    let sensor = random.below(20_000);
    let (longitude, latitude) = (coordinate(&mut random, 180, again), coordinate(&mut random, 85, again));
    let reading = (random.below(80_000) as f64 - 20_000.0) / 1e3;
    let (minute, second) = (number / 60 % 60, number % 60);
    let battery = random.below(101);
    let attempt = if again { 2 } else { 1 };
    let received = 1_790_000_000 + number + attempt;

    let delivery = format!(r#""delivery_id":"d-{:08x}""#, delivery as u32);
    let receipt = format!(r#""received_at":{received},"attempt":{attempt}"#);
    let point = format!(r#""geometry":{{"type":"Point","coordinates":[{longitude:?},{latitude:?}]}}"#);
    let source = format!(r#""sensor_id":"SN-{sensor:05}","metric":"air_temperature""#);
    let measured = format!(r#""reading":{reading:?},"battery":{battery},"seq":{number}"#);
    let observed = format!(r#""observed_at":"2026-03-14T15:{minute:02}:{second:02}Z""#);
    match serializer {
        0 => format!(
            r#"{{"type":"Feature",{point},"properties":{{{source},{measured},{observed}}},{delivery},{receipt}}}"#
        ),
        1 => format!(
            r#"{{{receipt},{delivery},{point},"properties":{{{measured},{observed},{source}}},"type":"Feature"}}"#
        ),
        _ => format!(
            r#"{{{delivery},{receipt},"type":"Feature","properties":{{{observed},{source},{measured}}},{point}}}"#
        ),
    }
}

/// A coordinate within `bound` degrees, to seven decimals.
pub(crate) fn coordinate(random: &mut Random, bound: u64, drifted: bool) -> f64 {
    // One division of whole numbers: the double nearest to a decimal with seven places.
    let clean = (random.below(20_000_000 * bound) as f64 - 1e7 * bound as f64) / 1e7;
    if drifted { clean + 1e-12 } else { clean }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}
