//! A seeded, realistic sensor feed, to measure and check with.
//!
//! ```text
//! cargo run --release --example make_feed -- [--events N] [--redeliveries SHARE] [--seed N]
//!                                            [--shuffle] -o FILE
//! ```
//!
//! Writes N lines of 200 to 300 bytes: GeoJSON point events of three kinds of sensor, rendered by
//! one of three serializers each. The given share of lines are redeliveries of one of the last
//! 50,000 events: another envelope, and another order of members, white space, number formatting
//! or float drift. With `--shuffle` every event has its members in an order of its own. At the end
//! it prints, as one line of JSON, how many events there are and how many of them are unique.
//!
//! What an event says is a function of the seed and its number, so nothing has to be remembered.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

/// How far back redeliveries reach, in events.
const WINDOW: u64 = 50_000;

struct Options {
    events: u64,
    redeliveries: f64,
    seed: u64,
    shuffle: bool,
    output: String,
}

fn main() -> ExitCode {
    let Some(options) = parse(std::env::args().skip(1)) else {
        eprintln!("usage: make_feed [--events N] [--redeliveries SHARE] [--seed N] [--shuffle] -o FILE");
        return ExitCode::from(2);
    };
    match make(&options) {
        Ok(unique) => {
            println!("{{\"events\": {}, \"unique\": {unique}}}", options.events);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("make_feed: {}: {error}", options.output);
            ExitCode::from(2)
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options =
        Options { events: 1_000_000, redeliveries: 0.25, seed: 1, shuffle: false, output: String::new() };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--events" => options.events = arguments.next()?.parse().ok()?,
            "--redeliveries" => options.redeliveries = arguments.next()?.parse().ok()?,
            "--seed" => options.seed = arguments.next()?.parse().ok()?,
            "--shuffle" => options.shuffle = true,
            "-o" => options.output = arguments.next()?,
            _ => return None,
        }
    }
    (!options.output.is_empty()).then_some(options)
}

fn make(options: &Options) -> std::io::Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&options.output)?);
    let mut random = Random(options.seed);
    let mut unique = 0;
    let mut line = String::new();
    for _ in 0..options.events {
        line.clear();
        let again = unique > 0 && random.share() < options.redeliveries;
        let number = if again { unique - 1 - random.below(unique.min(WINDOW)) } else { unique };
        unique += u64::from(!again);
        let event = Event::new(options.seed, number);
        let mut style = Style::of(number % 3);
        if again {
            style.vary(&mut random);
        }
        if options.shuffle {
            random.shuffle(&mut style.top);
            random.shuffle(&mut style.properties);
        }
        event.render(&style, if again { 2 + random.below(3) } else { 1 }, &mut random, &mut line);
        line.push('\n');
        out.write_all(line.as_bytes())?;
    }
    out.flush()?;
    Ok(unique)
}

/// What an event says. Its sequence number makes it unique.
struct Event {
    number: u64,
    sensor: u64,
    /// In units of 1e-7 degrees; `None` for a sensor that has lost its fix.
    place: Option<(i64, i64)>,
    /// In thousandths.
    reading: i64,
    battery: u64,
    /// Seconds since the feed began.
    seconds: u64,
}

impl Event {
    fn new(seed: u64, number: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x5851_F42D_4C95_7F2D) ^ number);
        let (longitude, latitude) = (random.below(3_600_000_000), random.below(1_700_000_000));
        Self {
            number,
            sensor: random.below(20_000),
            place: (random.below(100) > 0)
                .then(|| (longitude as i64 - 1_800_000_000, latitude as i64 - 850_000_000)),
            reading: random.below(80_000) as i64 - 20_000,
            battery: random.below(101),
            seconds: number / 50,
        }
    }

    fn render(&self, style: &Style, attempt: u64, random: &mut Random, out: &mut String) {
        let space = if style.spaced { " " } else { "" };
        out.push('{');
        for (index, member) in style.top.iter().enumerate() {
            if index > 0 {
                let _ = write!(out, ",{space}");
            }
            let _ = match member {
                'd' => write!(out, "\"delivery_id\":{space}\"d-{:08x}\"", random.next() as u32),
                'r' => write!(out, "\"received_at\":{space}{}", 1_790_000_000 + self.seconds + attempt * 60),
                'a' => write!(out, "\"attempt\":{space}{attempt}"),
                't' => write!(out, "\"type\":{space}\"Feature\""),
                'g' => {
                    let _ = write!(out, "\"geometry\":{space}");
                    self.render_geometry(style, space, random, out);
                    Ok(())
                }
                _ => {
                    let _ = write!(out, "\"properties\":{space}{{");
                    self.render_properties(style, space, out);
                    out.push('}');
                    Ok(())
                }
            };
        }
        out.push('}');
    }

    fn render_geometry(&self, style: &Style, space: &str, random: &mut Random, out: &mut String) {
        let Some((longitude, latitude)) = self.place else { return out.push_str("null") };
        let coordinates = |out: &mut String, random: &mut Random| {
            let _ = write!(out, "\"coordinates\":{space}[");
            style.number(longitude, 7, random, out);
            let _ = write!(out, ",{space}");
            style.number(latitude, 7, random, out);
            out.push(']');
        };
        out.push('{');
        if style.coordinates_first {
            coordinates(out, random);
            let _ = write!(out, ",{space}\"type\":{space}\"Point\"");
        } else {
            let _ = write!(out, "\"type\":{space}\"Point\",{space}");
            coordinates(out, random);
        }
        out.push('}');
    }

    fn render_properties(&self, style: &Style, space: &str, out: &mut String) {
        const METRICS: [&str; 3] = ["pm2_5", "air_temperature", "wind_speed"];
        let metric = METRICS[(self.sensor % 3) as usize];
        for (index, member) in style.properties.iter().enumerate() {
            if index > 0 {
                let _ = write!(out, ",{space}");
            }
            let _ = match member {
                's' => write!(out, "\"sensor_id\":{space}\"SN-{:05}\"", self.sensor),
                'm' => write!(out, "\"metric\":{space}\"{metric}\""),
                'v' => {
                    let _ = write!(out, "\"reading\":{space}");
                    style.number(self.reading, 3, &mut Random(self.number), out);
                    Ok(())
                }
                'b' => write!(out, "\"battery\":{space}{}", self.battery),
                'o' => {
                    let (day, second) = (self.seconds / 86_400, self.seconds % 86_400);
                    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
                    write!(
                        out,
                        "\"observed_at\":{space}\"2026-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z\"",
                        1 + day / 28 % 12,
                        1 + day % 28
                    )
                }
                _ => write!(out, "\"seq\":{space}{}", self.number),
            };
        }
    }
}

/// How a serializer writes.
struct Style {
    top: [char; 6],
    properties: [char; 6],
    coordinates_first: bool,
    spaced: bool,
    numbers: Numbers,
}

#[derive(Clone, Copy)]
enum Numbers {
    /// The shortest digits.
    Shortest,
    /// Trailing zeros, as a fixed format leaves them.
    Padded,
    /// Off in the thirteenth decimal, as arithmetic leaves it.
    Drifted,
    Exponent,
}

impl Style {
    fn of(serializer: u64) -> Self {
        let (top, properties) = match serializer {
            0 => (['t', 'g', 'p', 'd', 'r', 'a'], ['s', 'm', 'v', 'b', 'o', 'q']),
            1 => (['a', 'd', 'g', 'p', 'r', 't'], ['b', 'm', 'o', 'v', 's', 'q']),
            _ => (['d', 'r', 'a', 't', 'p', 'g'], ['q', 'o', 's', 'v', 'm', 'b']),
        };
        Self {
            top,
            properties,
            coordinates_first: serializer == 1,
            spaced: false,
            numbers: Numbers::Shortest,
        }
    }

    /// Another serializer than before, or another habit of the same.
    fn vary(&mut self, random: &mut Random) {
        if random.below(2) == 0 {
            *self = Self::of(random.below(3));
        }
        self.spaced = random.below(4) == 0;
        self.numbers = match random.below(4) {
            0 => Numbers::Padded,
            1 => Numbers::Drifted,
            2 => Numbers::Exponent,
            _ => Numbers::Shortest,
        };
    }

    /// `value · 10^-decimals` in this style.
    fn number(&self, value: i64, decimals: u32, random: &mut Random, out: &mut String) {
        let power = 10_u64.pow(decimals);
        let (whole, fraction) = (value.unsigned_abs() / power, value.unsigned_abs() % power);
        let sign = if value < 0 { "-" } else { "" };
        let width = decimals as usize;
        let _ = match self.numbers {
            Numbers::Padded => write!(out, "{sign}{whole}.{fraction:0width$}00"),
            Numbers::Drifted => {
                write!(out, "{sign}{whole}.{fraction:0width$}{:06}{}", 0, 1 + random.below(9))
            }
            // Fifteen digits read back as they are, wherever the point stands.
            Numbers::Exponent => write!(out, "{sign}{}.0e-{decimals}", value.unsigned_abs()),
            Numbers::Shortest => {
                let digits = format!("{fraction:0width$}");
                let significant = digits.trim_end_matches('0');
                write!(out, "{sign}{whole}.{}", if significant.is_empty() { "0" } else { significant })
            }
        };
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
