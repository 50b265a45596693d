//! Shape identity and coordinate reference systems: what is one geometry, and what is not.

use std::fs;
use std::path::Path;

use firstseen::{Keyer, Protocol};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::tool::Folder;

/// Ordinates in units of the last decimal that is kept.
type Point = (i64, i64);
/// Positions, without the last one that repeats the first.
type Ring = Vec<Point>;
type Polygon = Vec<Ring>;

const UNITS: f64 = 1e8;

fn position(point: &Point) -> Value {
    // Up to 180 degrees, these are integers that a double holds, so the quotient is the decimal's double.
    json!([point.0 as f64 / UNITS, point.1 as f64 / UNITS])
}

fn ring(ring: &Ring) -> Value {
    ring.iter().chain(ring.first()).map(position).collect()
}

fn polygon(polygon: &Polygon) -> Value {
    polygon.iter().map(ring).collect()
}

fn event(kind: &str, coordinates: Value) -> String {
    json!({"type": "Feature", "geometry": {"type": kind, "coordinates": coordinates}, "properties": {}})
        .to_string()
}

fn event_of(polygons: &[Polygon]) -> String {
    match polygons {
        [only] => event("Polygon", polygon(only)),
        several => event("MultiPolygon", several.iter().map(polygon).collect()),
    }
}

/// Random numbers for shuffles (the generator xorshift64 of Marsaglia, 2003).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }

    /// The same shape, written in another way.
    fn rewrite(&mut self, polygons: &mut [Polygon]) {
        for polygon in polygons.iter_mut() {
            for ring in polygon.iter_mut() {
                let start = self.below(ring.len());
                ring.rotate_left(start);
                if self.below(2) == 1 {
                    ring.reverse();
                }
            }
            self.shuffle(&mut polygon[1..]);
        }
        self.shuffle(polygons);
    }

    /// Another shape: one vertex moves by one unit.
    fn move_a_vertex(&mut self, polygons: &mut [Polygon]) {
        let polygon = self.below(polygons.len());
        let ring = self.below(polygons[polygon].len());
        let vertex = self.below(polygons[polygon][ring].len());
        let (x, y) = &mut polygons[polygon][ring][vertex];
        *[x, y][self.below(2)] += [-1, 1][self.below(2)];
    }
}

struct Shapes(Keyer);

impl Shapes {
    fn new() -> Self {
        Self(Keyer::new(&Protocol::built_in("geojson-shape-v1").unwrap()))
    }

    fn key(&mut self, event: &str) -> String {
        self.0.key(event.as_bytes()).unwrap().to_string()
    }

    /// However the polygons are written they have one key, and none with a vertex elsewhere.
    fn check(&mut self, polygons: &[Polygon], dice: &mut Dice, rounds: usize) {
        let key = self.key(&event_of(polygons));
        for _ in 0..rounds {
            let mut other = polygons.to_vec();
            dice.rewrite(&mut other);
            assert_eq!(self.key(&event_of(&other)), key, "{polygons:?} as {other:?}");
            dice.move_a_vertex(&mut other);
            assert_ne!(self.key(&event_of(&other)), key, "{polygons:?} and {other:?}");
        }
    }
}

fn twice_the_area(ring: &Ring) -> i128 {
    let next = ring.iter().cycle().skip(1);
    ring.iter()
        .zip(next)
        .map(|(a, b)| i128::from(a.0) * i128::from(b.1) - i128::from(b.0) * i128::from(a.1))
        .sum()
}

/// The polygons of the countries of the world.
fn countries() -> Vec<Vec<Polygon>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/countries.geojsonl");
    let units = |value: &Value| (value.as_f64().unwrap() * UNITS).round() as i64;
    let ring = |ring: &Value| -> Ring {
        let positions = ring.as_array().unwrap();
        positions[1..].iter().map(|position| (units(&position[0]), units(&position[1]))).collect()
    };
    let polygon = |polygon: &Value| -> Polygon { polygon.as_array().unwrap().iter().map(ring).collect() };
    let geometry = |line: &str| {
        let geometry = serde_json::from_str::<Value>(line).unwrap()["geometry"].take();
        match geometry["type"].as_str() {
            Some("Polygon") => vec![polygon(&geometry["coordinates"])],
            _ => geometry["coordinates"].as_array().unwrap().iter().map(polygon).collect(),
        }
    };
    fs::read_to_string(path).unwrap().lines().map(geometry).collect()
}

#[test]
fn countries_have_one_key_however_their_borders_are_written() {
    let countries = countries();
    assert_eq!(countries.len(), 177);
    let (mut shapes, mut dice) = (Shapes::new(), Dice(2017));
    let mut keys: Vec<String> = countries.iter().map(|country| shapes.key(&event_of(country))).collect();
    for country in &countries {
        shapes.check(country, &mut dice, 6);
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 177);
}

prop_compose! {
    /// Rings on a small grid, so that they meet themselves and each other, repeat vertices, and have spikes.
    fn ring_on_a_grid()(ring in proptest::collection::vec((0..4_i64, 0..4_i64), 3..9), unit in prop_oneof![Just(1), Just(100_000_000), Just(12_345_678)],
                        far in prop_oneof![Just(0), Just(17_000_000_000_i64)]) -> Ring {
        ring.into_iter().map(|(x, y)| (far + x * unit, y * unit - far)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn rotating_reversing_and_reordering_never_count_and_moving_always_does(
        mut polygons in proptest::collection::vec(proptest::collection::vec(ring_on_a_grid(), 1..4), 1..4), seed in 1..u64::MAX
    ) {
        // Rings that enclose nothing are not in this.
        polygons.iter_mut().for_each(|polygon| polygon.retain(|ring| twice_the_area(ring) != 0));
        polygons.retain(|polygon| !polygon.is_empty());
        prop_assume!(!polygons.is_empty());
        Shapes::new().check(&polygons, &mut Dice(seed), 4);
    }

    #[test]
    fn the_order_of_points_does_not_count_and_moving_one_always_does(points in proptest::collection::vec((0..3_i64, 0..3_i64), 1..8), seed in 1..u64::MAX) {
        let mut shapes = Shapes::new();
        let mut dice = Dice(seed);
        let event = |points: &Ring| event("MultiPoint", points.iter().map(position).collect());
        let key = shapes.key(&event(&points));
        let mut points = points;
        dice.shuffle(&mut points);
        prop_assert_eq!(shapes.key(&event(&points)), key.clone());
        let at = dice.below(points.len());
        points[at].0 += 1;
        prop_assert_ne!(shapes.key(&event(&points)), key);
    }
}

/// The canonical text of an event's coordinates under `settings`.
fn canonical(settings: &str, event: &str) -> String {
    let protocol = Protocol::from_toml("test", &format!("name = \"test\"\n{settings}")).unwrap();
    match Keyer::new(&protocol).canonical(event.as_bytes()) {
        Ok(canonical) => String::from_utf8(canonical.to_vec()).unwrap(),
        Err(invalid) => invalid.to_string(),
    }
}

const SHAPE: &str = "geometry.identity = 'shape'\nnumbers.decimals = 8";

#[test]
fn each_rule_of_shape_identity() {
    for (what, kind, coordinates, expected) in [
        ("clockwise", "Polygon", "[[[0,0],[0,1],[1,1],[0,0]]]", "[[[0,0],[1,1],[0,1],[0,0]]]"),
        ("not the smallest first", "Polygon", "[[[1,1],[0,1],[0,0],[1,1]]]", "[[[0,0],[1,1],[0,1],[0,0]]]"),
        ("smallest by x, then by y", "Polygon", "[[[0,2],[0,1],[1,0],[0,2]]]", "[[[0,1],[1,0],[0,2],[0,1]]]"),
        (
            "negative before positive",
            "Polygon",
            "[[[0,0],[1,0],[-1,1],[0,0]]]",
            "[[[-1,1],[0,0],[1,0],[-1,1]]]",
        ),
        (
            "holes are clockwise, and sorted",
            "Polygon",
            "[[[0,0],[9,0],[9,9],[0,0]],[[5,2],[6,2],[6,3],[5,2]],[[3,1],[4,2],[4,1],[3,1]]]",
            "[[[0,0],[9,0],[9,9],[0,0]],[[3,1],[4,2],[4,1],[3,1]],[[5,2],[6,3],[6,2],[5,2]]]",
        ),
        (
            "the exterior stays the first",
            "Polygon",
            "[[[5,5],[6,5],[6,6],[5,5]],[[0,0],[0,1],[1,1],[0,0]]]",
            "[[[5,5],[6,5],[6,6],[5,5]],[[0,0],[0,1],[1,1],[0,0]]]",
        ),
        (
            "other ordinates travel",
            "Polygon",
            "[[[1,1,7],[0,1],[0,0,9,6],[1,1,7]]]",
            "[[[0,0,9,6],[1,1,7],[0,1],[0,0,9,6]]]",
        ),
        (
            "1 and 1.0 are two",
            "Polygon",
            "[[[1,1],[0,1],[0,0],[1.000000001,1]]]",
            "[[[1,1],[0,1],[0,0],[1.0,1]]]",
        ),
        (
            "closed after rounding",
            "Polygon",
            "[[[1.0,1],[0,1],[0,0],[1.000000001,1]]]",
            "[[[0,0],[1.0,1],[0,1],[0,0]]]",
        ),
        ("open", "Polygon", "[[[1,1],[0,1],[0,0],[1,0]]]", "[[[1,1],[0,1],[0,0],[1,0]]]"),
        (
            "closed but for the height",
            "Polygon",
            "[[[1,1,1],[0,1,1],[0,0,1],[1,1,2]]]",
            "[[[1,1,1],[0,1,1],[0,0,1],[1,1,2]]]",
        ),
        ("too short", "Polygon", "[[[1,1],[0,0],[1,1]]]", "[[[1,1],[0,0],[1,1]]]"),
        ("no area", "Polygon", "[[[2,2],[0,0],[1,1],[2,2]]]", "[[[2,2],[0,0],[1,1],[2,2]]]"),
        (
            "no area after rounding",
            "Polygon",
            "[[[2,2],[0,0],[1,1.000000001],[2,2]]]",
            "[[[2,2],[0,0],[1,1.0],[2,2]]]",
        ),
        (
            "a figure of eight of no area",
            "Polygon",
            "[[[1,1],[0,1],[1,0],[0,0],[1,1]]]",
            "[[[1,1],[0,1],[1,0],[0,0],[1,1]]]",
        ),
        (
            "a vertex twice is not once",
            "Polygon",
            "[[[0,0],[1,0],[1,0],[1,1],[0,0]]]",
            "[[[0,0],[1,0],[1,0],[1,1],[0,0]]]",
        ),
        (
            "the smallest vertex twice",
            "Polygon",
            "[[[0,0],[2,1],[1,2],[0,0],[1,0],[1,-1],[0,0]]]",
            "[[[0,0],[1,0],[1,-1],[0,0],[2,1],[1,2],[0,0]]]",
        ),
        ("no rings", "Polygon", "[]", "[]"),
        ("an empty ring", "Polygon", "[[]]", "[[]]"),
        (
            "polygons are sorted",
            "MultiPolygon",
            "[[[[5,5],[6,5],[6,6],[5,5]]],[[[0,0],[0,1],[1,1],[0,0]]]]",
            "[[[[0,0],[1,1],[0,1],[0,0]]],[[[5,5],[6,5],[6,6],[5,5]]]]",
        ),
        (
            "the fewer holes first",
            "MultiPolygon",
            "[[[[0,0],[1,0],[1,1],[0,0]],[]],[[[0,0],[1,0],[1,1],[0,0]]]]",
            "[[[[0,0],[1,0],[1,1],[0,0]]],[[[0,0],[1,0],[1,1],[0,0]],[]]]",
        ),
        (
            "points are sorted",
            "MultiPoint",
            "[[1,0],[0,1],[0,1],[0,0,5],[0,0]]",
            "[[0,0],[0,0,5],[0,1],[0,1],[1,0]]",
        ),
        ("integers before doubles", "MultiPoint", "[[0.0,1],[-0.0,1],[0,1]]", "[[-0.0,1],[0,1],[0.0,1]]"),
        (
            "integers past 2^53 have all their digits",
            "MultiPoint",
            "[[9007199254740993,1],[9007199254740992,2],[-340282366920938463463374607431768211457,0],[-340282366920938463463374607431768211456,0]]",
            "[[-340282366920938463463374607431768211457,0],[-340282366920938463463374607431768211456,0],[9007199254740992,2],[9007199254740993,1]]",
        ),
        ("lines keep their direction", "LineString", "[[1,0],[0,0]]", "[[1,0],[0,0]]"),
        (
            "so do several",
            "MultiLineString",
            "[[[1,0],[0,0]],[[0,1],[0,0]]]",
            "[[[1,0],[0,0]],[[0,1],[0,0]]]",
        ),
        ("a string is no ordinate", "MultiPoint", "[[1,0],[0,\"0\"]]", "[[1,0],[0,\"0\"]]"),
        ("nor is null", "MultiPoint", "[[1,0],[0,0,null]]", "[[1,0],[0,0,null]]"),
        ("nor is NaN", "MultiPoint", "[[1,0],[0,NaN]]", "[[1,0],[0,NaN]]"),
        ("one number is no position", "MultiPoint", "[[1,0],[0]]", "[[1,0],[0]]"),
        ("arrays too few", "Polygon", "[[1,0],[0,0]]", "[[1,0],[0,0]]"),
        (
            "past the range of a double",
            "Polygon",
            "[[[1e308,1e308],[-1e308,1e308],[-1e308,-1e308],[1e308,1e308]]]",
            "[[[-1e+308,-1e+308],[1e+308,1e+308],[-1e+308,1e+308],[-1e+308,-1e+308]]]",
        ),
    ] {
        let event = |coordinates| format!(r#"{{"coordinates":{coordinates},"type":"{kind}"}}"#);
        assert_eq!(canonical(SHAPE, &event(coordinates)), event(expected), "{what}");
    }
}

#[test]
fn areas_too_small_for_doubles_still_have_a_sign() {
    let shape = "geometry.identity = 'shape'";
    let slivers = [
        // One unit in the last place off a straight line, far from the origin and from each other.
        "[[[0.1,0.1],[179.3,179.3],[179.29999999999998,179.3],[0.1,0.1]]]",
        "[[[0.1,0.1],[179.3,179.3],[179.29999999999998,179.29999999999995],[0.1,0.1]]]",
        "[[[5e-324,5e-324],[0.0,5e-324],[5e-324,0.0],[5e-324,5e-324]]]",
        "[[[1e-200,1e-200],[0.0,1e-200],[1e200,0.0],[1e-200,1e-200]]]",
    ];
    for sliver in slivers {
        let mut positions: Vec<&str> = sliver[2..sliver.len() - 2].split_inclusive("],").collect();
        positions.iter_mut().for_each(|position| *position = position.trim_end_matches(','));
        let event =
            |positions: &[&str]| format!(r#"{{"type":"Polygon","coordinates":[[{}]]}}"#, positions.join(","));
        let once = canonical(shape, &event(&positions));
        positions.reverse();
        assert_eq!(canonical(shape, &event(&positions)), once);
        positions.pop();
        positions.rotate_left(1);
        positions.push(positions[0]);
        assert_eq!(canonical(shape, &event(&positions)), once);
    }
}

#[test]
fn where_geometries_are_found() {
    let wrong = r#"{"type":"MultiPoint","coordinates":[[1,0],[0,0]]}"#;
    let right = r#"{"coordinates":[[0,0],[1,0]],"type":"MultiPoint"}"#;
    let left = r#"{"coordinates":[[1,0],[0,0]],"type":"MultiPoint"}"#;
    for (event, expected) in [
        (r#"{"geometry":@,"type":"Feature"}"#, right),
        (r#"{"features":[{"geometry":@,"type":"Feature"}],"type":"FeatureCollection"}"#, right),
        (
            r#"{"geometries":[{"geometries":[@],"type":"GeometryCollection"}],"type":"GeometryCollection"}"#,
            right,
        ),
        (r#"{"data":[{"geometry":@,"type":"Feature"}],"type":"zone.entered"}"#, right),
        (r#"{"geometry":@}"#, right),
        (r#"{"geometry":null,"properties":{"place":@},"type":"Feature"}"#, left),
        (r#"{"geometry":null,"place":@,"type":"Feature"}"#, left),
        (r#"{"features":[@],"type":"FeatureCollection"}"#, left),
        (r#"{"geometry":{"geometry":@,"type":"Feature"},"type":"Feature"}"#, left),
        (r#"{"geometry":@,"type":"feature","z":{"type":"Feature"}}"#, right),
    ] {
        let want = event.replace('@', expected);
        assert_eq!(canonical(SHAPE, &event.replace('@', wrong)), want);
    }
    // Of members with one name the last one counts.
    let twice =
        r#"{"type":"Point","coordinates":[[3,0],[2,0]],"type":"MultiPoint","coordinates":[[1,0],[0,0]]}"#;
    assert_eq!(canonical(SHAPE, twice), right);
    // What is selected is selected from the normal form.
    let selected = format!("{SHAPE}\nselect = [{{member = 'first', pointer = '/geometry/coordinates/0'}}]");
    assert_eq!(canonical(&selected, &format!(r#"{{"geometry":{wrong}}}"#)), r#"{"first":[0,0]}"#);
    // A geometry of null is not one that is missing, nor an empty one.
    for event in [
        r#"{"geometry":null,"type":"Feature"}"#,
        r#"{"geometry":{},"type":"Feature"}"#,
        r#"{"type":"Feature"}"#,
    ] {
        assert_eq!(canonical(SHAPE, event), event);
    }
}

#[test]
fn equal_by_other_settings_is_equal_in_the_order_too() {
    for (settings, coordinates, expected) in [
        // Without `unify`, 1 comes before 1.0, whatever follows.
        ("", "[[1.0,0],[1,5]]", "[[1,5],[1.0,0]]"),
        ("[numbers]\nintegral = 'unify'", "[[1.0,5],[1,0]]", "[[1,0],[1,5]]"),
        ("[numbers]\nnegative_zero = 'fold'", "[[0.0,1],[-0.0,0]]", "[[0.0,0],[0.0,1]]"),
        ("[numbers]\ndecimals = 1", "[[1.04,2],[1.01,1]]", "[[1.0,1],[1.0,2]]"),
        ("[numbers]\ndecimals = 1\nwhere = 'coordinates'", "[[1.04,2],[1.01,1]]", "[[1.0,1],[1.0,2]]"),
        (
            "[numbers]\nintegral = 'unify'",
            "[[9007199254740993,0],[9007199254740992.0,1]]",
            "[[9007199254740992,1],[9007199254740993,0]]",
        ),
        ("canonical.scheme = 'jcs'", "[[1.0,5],[1,0],[-0.0,1],[0,0]]", "[[0,0],[0,1],[1,0],[1,5]]"),
    ] {
        let event = |coordinates| format!(r#"{{"coordinates":{coordinates},"type":"MultiPoint"}}"#);
        let settings = format!("geometry.identity = 'shape'\n{settings}");
        assert_eq!(canonical(&settings, &event(coordinates)), event(expected), "{settings}");
    }
}

/// A point in the Web Mercator projection, and where that is.
const MERCATOR: &str = "[-8238310.24,4970071.58,17]";
const PLACE: &str = "[-74.00600004,40.71280001,17]";
const WGS84: &str = "geometry.crs = 'wgs84'\nnumbers.decimals = 8";

#[test]
fn coordinates_are_brought_to_longitude_and_latitude() {
    let named = |name: &str| format!(r#"{{"properties":{{"name":"{name}"}},"type":"name"}}"#);
    let point = |coordinates: &str| format!(r#"{{"coordinates":{coordinates},"type":"Point"}}"#);
    let feature = |geometry: &str| format!(r#"{{"geometry":{geometry},"type":"Feature"}}"#);
    let (there, here) = (feature(&point(MERCATOR)), feature(&point(PLACE)));
    let with_crs = |event: &str, crs: &str| format!("{{\"crs\":{crs},{}", &event[1..]);
    let mercator = named("urn:ogc:def:crs:EPSG::3857");
    let collection = |feature: &str| format!(r#"{{"features":[{feature}],"type":"FeatureCollection"}}"#);
    let null = r#"{"geometry":null,"type":"Feature"}"#;
    for (what, event, expected) in [
        ("named by the event", with_crs(&there, &mercator), here.as_str()),
        ("named by a collection", with_crs(&collection(&there), &mercator), &collection(&here)),
        ("named by the geometry", feature(&with_crs(&point(MERCATOR), &named("EPSG:3857"))), &here),
        (
            "the inner name counts",
            with_crs(&feature(&with_crs(&point(MERCATOR), &mercator)), &named("EPSG:32633")),
            &here,
        ),
        ("of two names the last counts", with_crs(&with_crs(&there, &mercator), &named("EPSG:1")), &here),
        ("WGS 84 is what it is", with_crs(&here, &named("urn:ogc:def:crs:OGC:1.3:CRS84")), &here),
        ("none is WGS 84", here.clone(), &here),
        ("no geometry", with_crs(null, &mercator), null),
        ("escaped names", with_crs(&there, &mercator).replace("crs\"", "c\\u0072s\""), &here),
        (
            "a line",
            with_crs(&feature(r#"{"type":"LineString","coordinates":[[0,0],[0.0,1e-320]]}"#), &mercator),
            r#"{"geometry":{"coordinates":[[0.0,0.0],[0.0,0.0]],"type":"LineString"},"type":"Feature"}"#,
        ),
        (
            "wrapped",
            format!(r#"{{"data":{},"type":"zone.entered"}}"#, with_crs(&there, &mercator)),
            &format!(r#"{{"data":{here},"type":"zone.entered"}}"#),
        ),
        (
            "a name of no event's",
            r#"{"crs":"LHR","type":"train"}"#.to_owned(),
            r#"{"crs":"LHR","type":"train"}"#,
        ),
    ] {
        assert_eq!(canonical(WGS84, &event), expected, "{what}: {event}");
    }
    let source = format!("{WGS84}\ngeometry.source_crs = 'epsg:3857'");
    assert_eq!(canonical(&source, &there), here);
    assert_eq!(canonical(&source, &with_crs(&here, &named("EPSG:4326"))), here);
}

#[test]
fn what_cannot_be_brought_to_longitude_and_latitude_is_rejected() {
    let event = |crs: &str, coordinates: &str| {
        format!(
            r#"{{"crs":{crs},"type":"Feature","geometry":{{"type":"Point","coordinates":{coordinates}}}}}"#
        )
    };
    let named = |name: &str| format!(r#"{{"type":"name","properties":{{"name":"{name}"}}}}"#);
    for (crs, which) in [
        (named("EPSG:999"), ": `EPSG:999`"),
        (named("EPSG:4267"), ": `EPSG:4267`"),
        (named(""), ": ``"),
        (named("a\\nb"), ": `\"a\\nb\"`"),
        (named(&"x".repeat(1_000)), ""),
        ("null".to_owned(), ""),
        ("\"EPSG:3857\"".to_owned(), ""),
        ("{}".to_owned(), ""),
        (r#"{"type":"link","properties":{"href":"http://example.com"}}"#.to_owned(), ""),
    ] {
        let message = canonical(WGS84, &event(&crs, "[1,2]"));
        let place = event(&crs, "").find(&crs).unwrap();
        let (byte, reason) = message.split_once(": ").unwrap();
        assert_eq!(reason, format!("a coordinate reference system that is not known{which}"), "{crs}");
        // The member's name, or what it holds.
        let byte: usize = byte["byte ".len()..].parse().unwrap();
        assert!(byte > 1 && byte <= place + 1, "{crs}: {message}");
    }
    for coordinates in ["null", "[]", "[1]", "[1,\"2\"]", "[[1,2]]", "[NaN,1]", "[1e999,1]", "[1e300,1e300]"]
    {
        let message = canonical(WGS84, &event(&named("EPSG:32633"), coordinates));
        assert!(
            message.ends_with("coordinates that cannot be brought to longitude and latitude"),
            "{coordinates}: {message}"
        );
    }
}

#[test]
fn the_shape_is_that_in_longitude_and_latitude() {
    let both = format!("{WGS84}\ngeometry.identity = 'shape'");
    let event = |ring: &str| {
        let crs = r#"{"type":"name","properties":{"name":"EPSG:3857"}}"#;
        format!(r#"{{"crs":{crs},"type":"Feature","geometry":{{"type":"Polygon","coordinates":[{ring}]}}}}"#)
    };
    let one = canonical(&both, &event("[[0,0],[0,1000],[1000,1000],[0,0]]"));
    assert_eq!(canonical(&both, &event("[[1000,1000.0],[0.0,0],[0,1000],[1000,1000]]")), one);
    assert_eq!(
        one,
        r#"{"geometry":{"coordinates":[[[0.0,0.0],[0.00898315,0.00898315],[0.0,0.00898315],[0.0,0.0]]],"type":"Polygon"},"type":"Feature"}"#
    );
}

#[test]
fn foreign_systems_and_degenerate_rings_are_counted_once_for_all() {
    let folder = Folder::new();
    let foreign =
        r#"{"type":"Feature","crs":{"type":"name","properties":{"name":"EPSG:3857"}},"geometry":null,"n":@}"#;
    let wgs84 = foreign.replace("EPSG:3857", "EPSG:4326");
    let train = r#"{"type":"train","crs":"LHR","n":@}"#;
    let flat = r#"{"type":"Polygon","coordinates":[[[0,0],[1,1],[2,2],[0,0]],[[0,0],[1,1]]],"n":@}"#;
    let mut feed = String::new();
    for n in 0..500 {
        for line in [foreign, &wgs84, train, flat] {
            feed.push_str(&line.replace('@', &n.to_string()));
            feed.push('\n');
        }
    }
    folder.file("feed.jsonl", &feed);
    let warning = "firstseen: warning: 500 events carry a `crs` member that is not WGS 84, and were keyed as they are; \
                   a protocol with `crs = \"wgs84\"` brings them to longitude and latitude\n";
    for threads in ["1", "2", "8"] {
        for chunk in ["200", "65536"] {
            let arguments = [
                "dedup",
                "feed.jsonl",
                "-o",
                "out.jsonl",
                "--quiet",
                "--threads",
                threads,
                "--chunk-bytes",
                chunk,
            ];
            let run = folder.run(&arguments);
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), warning));
            let run = folder.run(
                &[&arguments[..], &["--protocol", "geojson-shape-v1", "--report", "report.json"]].concat(),
            );
            assert_eq!(run.code, Some(0));
            assert!(
                run.stderr.starts_with(warning) && run.stderr.contains("1,000 rings enclose nothing"),
                "{}",
                run.stderr
            );
            let report: Value = serde_json::from_slice(&folder.read("report.json")).unwrap();
            assert_eq!(
                (&report["total"]["foreign_crs"], &report["total"]["degenerate_rings"]),
                (&json!(500), &json!(1000))
            );
            assert_eq!(folder.read("out.jsonl"), feed.as_bytes());
        }
    }
    folder.file("wgs84.toml", format!("name = 'ours'\n{WGS84}"));
    let run = folder.run(&["dedup", "feed.jsonl", "-o", "out.jsonl", "--quiet", "--protocol", "wgs84.toml"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_source_system_needs_a_protocol_that_reprojects() {
    let folder = Folder::new();
    folder.file("ours.toml", format!("name = 'ours'\n{WGS84}"));
    let event = format!(r#"{{"type":"Point","coordinates":{MERCATOR}}}"#);
    let run = folder.pipe(
        &["key", "--canonical", "--protocol", "ours.toml", "--source-crs", "EPSG:3857"],
        event.as_bytes(),
    );
    assert_eq!(
        String::from_utf8(run.stdout).unwrap().split_once('\t').unwrap().1,
        format!("{{\"coordinates\":{PLACE},\"type\":\"Point\"}}\n")
    );
    let run = folder
        .pipe(&["key", "--long", "--protocol", "ours.toml", "--source-crs", "EPSG:3857"], event.as_bytes());
    assert!(String::from_utf8(run.stdout).unwrap().contains("\tours+source_crs=EPSG:3857\t"));
    for (arguments, message) in [
        (
            ["--protocol", "geojson-v1", "--source-crs", "EPSG:3857"],
            "geojson-v1: it keys coordinates as they are; a source CRS needs a protocol with `crs = \"wgs84\"`",
        ),
        (
            ["--protocol", "ours.toml", "--source-crs", "EPSG:1"],
            "ours: `EPSG:1` is no system that coordinates can be brought from",
        ),
    ] {
        let run = folder.pipe(&[&["key"], &arguments[..]].concat(), event.as_bytes());
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.contains(message), "{}", run.stderr);
    }
}
