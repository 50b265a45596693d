//! Coordinates of one shape, written in one order.
//!
//! ```text
//! ring:          if it encloses nothing, it stays as it is; otherwise
//!                  the last position, which repeats the first, is set aside
//!                  it is reversed if it goes the wrong way round: counter-clockwise is right for
//!                    the first ring of a polygon, clockwise for others (RFC 7946, section 3.1.6)
//!                  it is started where that makes it the least, so at its smallest vertex
//!                  its first position is repeated at its end
//! Polygon:       its rings as above, those after the first sorted
//! MultiPolygon:  its polygons as above, sorted
//! MultiPoint:    its positions, sorted
//! ```
//!
//! A ring encloses nothing if it has fewer than four positions, is not closed, or its area is zero.
//! Positions are ordered by their ordinates, rings by their positions, polygons by their rings.
//! Ordinates are ordered by value; one that is written as an integer comes before the double of its
//! value. So two are equal in this order exactly if they are written alike, and equal ones may change
//! places. All of that is said of numbers as they will be written, rounded.

use std::cmp::Ordering;
use std::ops::Range;

use num_bigint::{BigInt, Sign};

use crate::draft::Draft;
use crate::number::{NumberStyle, as_written};
use crate::protocol::{Scheme, Settings};
use crate::tape::{Node, Tape};

/// A number of a position.
#[derive(Clone, Copy)]
struct Ordinate {
    /// As it will be written; of an integer, the double nearest to it.
    value: f64,
    /// Whether it is written as an integer.
    is_integer: bool,
}

/// A position: its first two numbers, and its node, which theirs follow.
#[derive(Clone, Copy)]
struct Vertex {
    x: Ordinate,
    y: Ordinate,
    node: usize,
}

/// How numbers will be written.
#[derive(Clone, Copy)]
struct Style {
    numbers: NumberStyle,
    integers_are_doubles: bool,
}

/// Writes coordinates in their normal order. Its buffers are reused.
pub(super) struct Shaper {
    style: Style,
    vertices: Vec<Vertex>,
    /// Ranges of `vertices`.
    rings: Vec<Range<usize>>,
    /// Ranges of `rings`.
    polygons: Vec<Range<usize>>,
    degenerate: u64,
}

impl Shaper {
    pub(super) fn new(settings: &Settings) -> Self {
        let numbers = NumberStyle::new(settings);
        Self {
            style: Style { numbers, integers_are_doubles: settings.scheme == Scheme::Jcs },
            vertices: Vec::new(),
            rings: Vec::new(),
            polygons: Vec::new(),
            degenerate: 0,
        }
    }

    /// How many rings have been left as they are since this was last asked.
    pub(super) fn take_degenerate(&mut self) -> u64 {
        std::mem::take(&mut self.degenerate)
    }

    pub(super) fn give_back(&mut self) {
        self.vertices = Vec::new();
        self.rings = Vec::new();
        self.polygons = Vec::new();
    }

    /// Writes the coordinates of a `MultiPoint`. These, as all that follow, must be well-formed.
    pub(super) fn write_points(&mut self, tape: &Tape<'_>, index: usize, draft: &mut Draft) {
        let Self { style, vertices, .. } = self;
        vertices.clear();
        vertices.extend(tape.elements(index).map(|node| style.vertex(tape, node)));
        vertices.sort_by(|a, b| style.cmp_vertices(tape, a, b));
        write_positions(tape, vertices, draft);
    }

    /// Writes the coordinates of a `Polygon`.
    pub(super) fn write_polygon(&mut self, tape: &Tape<'_>, index: usize, draft: &mut Draft) {
        self.clear();
        self.add_polygon(tape, index);
        write_rings(tape, &self.vertices, &self.rings, draft);
    }

    /// Writes the coordinates of a `MultiPolygon`.
    pub(super) fn write_polygons(&mut self, tape: &Tape<'_>, index: usize, draft: &mut Draft) {
        self.clear();
        tape.elements(index).for_each(|polygon| self.add_polygon(tape, polygon));
        let Self { style, vertices, rings, polygons, .. } = self;
        polygons.sort_by(|a, b| {
            let cmp = |a: &Range<usize>, b: &Range<usize>| style.cmp_rings(tape, vertices, a, b);
            cmp_all(&rings[a.clone()], &rings[b.clone()], cmp)
        });
        let open = draft.open();
        for polygon in polygons.iter() {
            write_rings(tape, vertices, &rings[polygon.clone()], draft);
        }
        draft.close(open, polygons.len(), false);
    }

    fn clear(&mut self) {
        self.vertices.clear();
        self.rings.clear();
        self.polygons.clear();
    }

    fn add_polygon(&mut self, tape: &Tape<'_>, index: usize) {
        let Self { style, vertices, rings, polygons, degenerate } = self;
        let first = rings.len();
        for (position, ring) in tape.elements(index).enumerate() {
            let start = vertices.len();
            vertices.extend(tape.elements(ring).map(|node| style.vertex(tape, node)));
            if !style.normalise_ring(tape, &mut vertices[start..], position == 0) {
                *degenerate += 1;
            }
            rings.push(start..vertices.len());
        }
        if let Some(holes) = rings.get_mut(first + 1..) {
            holes.sort_by(|a, b| style.cmp_rings(tape, vertices, a, b));
        }
        polygons.push(first..rings.len());
    }
}

impl Style {
    fn vertex(&self, tape: &Tape<'_>, node: usize) -> Vertex {
        // A position has two numbers at least.
        Vertex { x: self.ordinate(tape, node + 1), y: self.ordinate(tape, node + 2), node }
    }

    #[inline]
    fn ordinate(&self, tape: &Tape<'_>, node: usize) -> Ordinate {
        // It has been seen to be a number.
        let value = number(tape, node).unwrap_or(0.0);
        let is_double = self.integers_are_doubles || matches!(tape.node(node), Node::Double(_));
        if !is_double {
            return Ordinate { value, is_integer: true };
        }
        let value = as_written(value, &self.numbers);
        let may_be_integer = !self.integers_are_doubles && self.numbers.is_integer(value);
        Ordinate { value, is_integer: may_be_integer && value.fract() == 0.0 }
    }

    fn cmp_vertices(&self, tape: &Tape<'_>, a: &Vertex, b: &Vertex) -> Ordering {
        let (node, other) = (a.node, b.node);
        let x = cmp_ordinates(tape, (a.x, node + 1), (b.x, other + 1));
        let order = x.then_with(|| cmp_ordinates(tape, (a.y, node + 2), (b.y, other + 2)));
        order.then_with(|| self.cmp_rest(tape, node, other))
    }

    /// Compares two positions by what they have beside their first two numbers.
    #[cold]
    fn cmp_rest(&self, tape: &Tape<'_>, a: usize, b: usize) -> Ordering {
        let rest = |node| tape.elements(node).skip(2).map(|node| (self.ordinate(tape, node), node));
        let (mut a, mut b) = (rest(a), rest(b));
        loop {
            match (a.next(), b.next()) {
                (Some(a), Some(b)) => match cmp_ordinates(tape, a, b) {
                    Ordering::Equal => {}
                    order => return order,
                },
                (a, b) => return a.is_some().cmp(&b.is_some()),
            }
        }
    }

    fn cmp_rings(
        &self,
        tape: &Tape<'_>,
        vertices: &[Vertex],
        a: &Range<usize>,
        b: &Range<usize>,
    ) -> Ordering {
        cmp_all(&vertices[a.clone()], &vertices[b.clone()], |a, b| self.cmp_vertices(tape, a, b))
    }

    /// False for a ring that encloses nothing.
    fn normalise_ring(&self, tape: &Tape<'_>, ring: &mut [Vertex], is_exterior: bool) -> bool {
        let [first, .., last] = ring else { return false };
        let is_closed = self.cmp_vertices(tape, first, last).is_eq();
        if ring.len() < 4 || !is_closed {
            return false;
        }
        let right = if is_exterior { Ordering::Greater } else { Ordering::Less };
        let direction = area_sign(ring);
        if direction == Ordering::Equal {
            return false;
        }
        let end = ring.len() - 1;
        let first = ring[0].node;
        let open = &mut ring[..end];
        if direction != right {
            open.reverse();
        }
        let start = least_rotation(end, |a, b| self.cmp_vertices(tape, &open[a], &open[b]));
        open.rotate_left(start);
        if ring[0].node != first {
            ring[end] = ring[0];
        }
        true
    }
}

/// Compares two ordinates, each given with its node.
#[inline]
fn cmp_ordinates(tape: &Tape<'_>, (a, node): (Ordinate, usize), (b, other): (Ordinate, usize)) -> Ordering {
    /// Below, integers are told apart by their doubles.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let order = a.value.total_cmp(&b.value).then(b.is_integer.cmp(&a.is_integer));
    if order.is_ne() || !a.is_integer || a.value.abs() < EXACT {
        return order;
    }
    integer(tape, node).cmp(&integer(tape, other))
}

/// Compares as words in a dictionary.
fn cmp_all<T>(a: &[T], b: &[T], cmp: impl Fn(&T, &T) -> Ordering) -> Ordering {
    let differing = a.iter().zip(b).map(|(a, b)| cmp(a, b)).find(|order| order.is_ne());
    differing.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Where a cycle of `len` elements is to be started so that it is the least, in time that is linear:
/// of two starts, `k` elements after which are the same and then one is greater, none of the `k + 1` from
/// the greater one on is the best.
fn least_rotation(len: usize, cmp: impl Fn(usize, usize) -> Ordering) -> usize {
    let (mut one, mut other, mut same) = (0, 1, 0);
    while one < len && other < len && same < len {
        match cmp((one + same) % len, (other + same) % len) {
            Ordering::Equal => {
                same += 1;
                continue;
            }
            Ordering::Greater => one += same + 1,
            Ordering::Less => other += same + 1,
        }
        if one == other {
            other += 1;
        }
        same = 0;
    }
    one.min(other)
}

/// The sign of the area of a closed ring: greater for counter-clockwise. It is that of the exact area
/// by the shoelace formula, so that it depends neither on the start of the ring nor on rounding.
fn area_sign(ring: &[Vertex]) -> Ordering {
    let origin = ring[0];
    let (mut area, mut magnitude) = (0.0, 0.0);
    for pair in ring.windows(2) {
        let [(ax, ay), (bx, by)] = [pair[0], pair[1]]
            .map(|vertex| (vertex.x.value - origin.x.value, vertex.y.value - origin.y.value));
        let (one, other) = (ax * by, bx * ay);
        area += one - other;
        magnitude += one.abs() + other.abs();
    }
    // Differences, products and their difference are off by a unit in the last place each, and every sum by
    // one more; products below the range of a double by less than its least normal number.
    let steps = ring.len() as f64;
    let error = (steps + 8.0) * f64::EPSILON * magnitude + steps * f64::MIN_POSITIVE;
    if area > error {
        return Ordering::Greater;
    }
    if area < -error {
        return Ordering::Less;
    }
    // Too near to zero to tell, or past the range of a double.
    exact_area(ring).cmp(&BigInt::ZERO)
}

/// Twice the area, in some unit.
fn exact_area(ring: &[Vertex]) -> BigInt {
    let least =
        ring.iter().flat_map(|vertex| [vertex.x, vertex.y]).map(|ordinate| decode(ordinate.value).1).min();
    let scaled = |ordinate: Ordinate| {
        let (mantissa, exponent) = decode(ordinate.value);
        BigInt::from(mantissa) << (exponent - least.unwrap_or(0))
    };
    let cross =
        |pair: &[Vertex]| scaled(pair[0].x) * scaled(pair[1].y) - scaled(pair[1].x) * scaled(pair[0].y);
    ring.windows(2).map(cross).sum()
}

/// A finite double as an integer and a power of two (IEEE 754, section 3.4).
fn decode(value: f64) -> (i64, i64) {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7FF) as i64;
    let fraction = (bits & ((1 << 52) - 1)) as i64;
    let magnitude = if exponent == 0 { fraction } else { fraction | 1 << 52 };
    (if value < 0.0 { -magnitude } else { magnitude }, exponent.max(1) - 1075)
}

/// The integer that the number at a node is written as.
#[cold]
fn integer(tape: &Tape<'_>, node: usize) -> BigInt {
    let digits = match tape.node(node) {
        Node::Unsigned(value) => return BigInt::from(value),
        Node::Signed(value) => return BigInt::from(value),
        Node::BigInteger(digits) => digits,
        // A double that is written as an integer has at most 2^53, to which rounding does nothing.
        _ => return BigInt::from(number(tape, node).unwrap_or(0.0) as i64),
    };
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => (Sign::Minus, digits),
        None => (Sign::Plus, digits),
    };
    let digits: Vec<u8> = digits.bytes().map(|digit| digit - b'0').collect();
    // They are decimal digits, so there is a number that they stand for.
    BigInt::from_radix_be(sign, &digits, 10).unwrap_or_default()
}

/// The finite number at a node: of an integer, the double nearest to it.
pub(super) fn number(tape: &Tape<'_>, index: usize) -> Option<f64> {
    match tape.node(index) {
        Node::Unsigned(value) => Some(value as f64),
        Node::Signed(value) => Some(value as f64),
        Node::Double(value) => Some(value),
        Node::BigInteger(digits) => digits.parse().ok().filter(|value: &f64| value.is_finite()),
        _ => None,
    }
}

/// Whether coordinates are positions, of two finite numbers at least, inside `depth` arrays.
pub(super) fn well_formed(tape: &Tape<'_>, index: usize, depth: usize) -> bool {
    match (tape.node(index), depth) {
        (Node::Array { len, .. }, 0) => {
            len >= 2 && tape.elements(index).all(|node| number(tape, node).is_some())
        }
        (Node::Array { .. }, _) => tape.elements(index).all(|element| well_formed(tape, element, depth - 1)),
        _ => false,
    }
}

fn write_rings(tape: &Tape<'_>, vertices: &[Vertex], rings: &[Range<usize>], draft: &mut Draft) {
    let open = draft.open();
    rings.iter().for_each(|ring| write_positions(tape, &vertices[ring.clone()], draft));
    draft.close(open, rings.len(), false);
}

fn write_positions(tape: &Tape<'_>, positions: &[Vertex], draft: &mut Draft) {
    let open = draft.open();
    positions.iter().for_each(|position| draft.copy_numbers(tape, position.node));
    draft.close(open, positions.len(), false);
}
