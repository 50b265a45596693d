//! The geometries of an event, in one form for each shape, and in WGS 84.
//!
//! In: the tape of an event. Out: a tape of the same event in which the coordinates are as the protocol's
//! `[geometry]` asks: see [`shape`] for what is one shape, and [`crs`](crate::crs) for what is brought to
//! longitude and latitude. Numbers are not rounded here, but are compared as they will be written.

mod find;
mod shape;

use memchr::memmem;

use crate::crs::{Crs, Projection};
use crate::draft::Draft;
use crate::error::{Invalid, Reason};
use crate::protocol::Protocol;
use crate::tape::{ExactNode, Tape};
use find::{Finder, Kind, Projections, What, unknown_crs};
use shape::{Shaper, number, well_formed};

/// What is worth telling about events that have a key all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Events with a `crs` member that names another system than WGS 84, and is left as it is.
    pub(crate) foreign_crs: u64,
    /// Rings that enclose nothing, whose order is left as it is.
    pub(crate) degenerate_rings: u64,
}

impl Notes {
    pub(crate) fn add(&mut self, other: Self) {
        self.foreign_crs += other.foreign_crs;
        self.degenerate_rings += other.degenerate_rings;
    }
}

/// The normal form of the geometries of events under one protocol, with reusable buffers.
pub(crate) struct Geometer {
    /// `None` where geometries of one shape are not one.
    shaper: Option<Shaper>,
    finder: Finder,
    names_crs: memmem::Finder<'static>,
    draft: Draft,
    reprojected: Draft,
}

impl Geometer {
    pub(crate) fn new(protocol: &Protocol) -> Self {
        let settings = protocol.settings();
        let finder = Finder::new(settings);
        Self {
            shaper: finder.is_shaped().then(|| Shaper::new(settings)),
            finder,
            names_crs: memmem::Finder::new("\"crs\""),
            draft: Draft::default(),
            reprojected: Draft::default(),
        }
    }

    /// Whether a `crs` member may be in the line, as it is or with escapes.
    fn may_name_crs(&self, line: &[u8]) -> bool {
        self.names_crs.find(line).is_some() || memmem::find(line, b"\\u00").is_some()
    }

    /// Whether geometries of one shape are one.
    pub(crate) fn is_shaped(&self) -> bool {
        self.finder.is_shaped()
    }

    /// Whether coordinates are brought from another system where no `crs` member says so.
    pub(crate) fn brings_all(&self) -> bool {
        self.finder.brings_all()
    }

    /// Whether this has nothing to do, and to tell, in any line that differs from the one of this tape
    /// in scalar values only: without a `crs` member, and without an array in an array, which every
    /// geometry with an order of its own has.
    pub(crate) fn leaves_alone(&self, tape: &Tape<'_>, line: &[u8]) -> bool {
        let nests =
            || (0..tape.after(0)).any(|index| tape.elements(index).any(|element| tape.is_array(element)));
        !(self.finder.brings_all() || self.may_name_crs(line) || self.finder.is_shaped() && nests())
    }

    /// The tape of the line with its geometries in their normal form; `None` if they are in it
    /// already. Adds to `notes`.
    pub(crate) fn normalise(
        &mut self,
        tape: &Tape<'_>,
        line: &[u8],
        notes: &mut Notes,
    ) -> Result<Option<Tape<'_>>, Invalid> {
        let always = self.finder.is_shaped() || self.finder.brings_all();
        if !always && !self.may_name_crs(line) {
            return Ok(None);
        }
        self.finder.find(tape)?;
        notes.foreign_crs += u64::from(self.finder.foreign_crs);
        if self.finder.parts.is_empty() {
            return Ok(None);
        }
        let Self { shaper, finder: Finder { parts, projections, .. }, draft, reprojected, .. } = self;
        let mut writer = CoordinatesWriter { shaper, projections, reprojected };
        let mut fault = None;
        draft.clear();
        draft.copy_but(tape, 0, &mut |draft, name| {
            let Ok(part) = parts.binary_search_by_key(&name, |part| part.name) else { return false };
            if let What::Coordinates(kind, crs) = parts[part].what {
                draft.copy(tape, name);
                if let Err(invalid) = writer.write(tape, name + 1, (kind, crs), draft) {
                    fault.get_or_insert(invalid);
                }
            }
            true
        });
        // Also after a fault, so that nothing is left for the next event.
        notes.degenerate_rings += shaper.as_mut().map_or(0, Shaper::take_degenerate);
        if let Some(invalid) = fault {
            return Err(invalid);
        }
        Ok(Some(self.draft.tape()))
    }

    /// Gives back what a long line needed.
    pub(crate) fn give_back(&mut self) {
        self.draft = Draft::default();
        self.reprojected = Draft::default();
        self.finder.parts = Vec::new();
        if let Some(shaper) = &mut self.shaper {
            shaper.give_back();
        }
    }
}

/// Writes the coordinates of one geometry after another.
struct CoordinatesWriter<'a> {
    shaper: &'a mut Option<Shaper>,
    projections: &'a mut Projections,
    reprojected: &'a mut Draft,
}

impl CoordinatesWriter<'_> {
    fn write(
        &mut self,
        tape: &Tape<'_>,
        index: usize,
        (kind, crs): (Kind, Crs),
        draft: &mut Draft,
    ) -> Result<(), Invalid> {
        if crs == Crs::Wgs84 {
            self.write_shaped(tape, index, kind, draft);
            return Ok(());
        }
        let projection =
            self.projections.of(crs).ok_or_else(|| tape.fault(index, unknown_crs(Some(&crs.to_string()))))?;
        if !well_formed(tape, index, kind.depth()) {
            return Err(tape.fault(index, Reason::Unprojectable));
        }
        let mut reprojected = std::mem::take(self.reprojected);
        reprojected.clear();
        let done = reproject(tape, (index, kind.depth()), &projection, &mut reprojected);
        if done.is_ok() {
            self.write_shaped(&reprojected.tape(), 0, kind, draft);
        }
        *self.reprojected = reprojected;
        done
    }

    fn write_shaped(&mut self, tape: &Tape<'_>, index: usize, kind: Kind, draft: &mut Draft) {
        match self.shaper {
            Some(shaper) if well_formed(tape, index, kind.depth()) => match kind {
                Kind::MultiPoint => shaper.write_points(tape, index, draft),
                Kind::Polygon => shaper.write_polygon(tape, index, draft),
                Kind::MultiPolygon => shaper.write_polygons(tape, index, draft),
                _ => draft.copy(tape, index),
            },
            _ => draft.copy(tape, index),
        }
    }
}

/// Copies coordinates of which positions stand in `depth` arrays, brought to longitude and latitude.
/// What a position has beside these travels with it.
fn reproject(
    tape: &Tape<'_>,
    (index, depth): (usize, usize),
    projection: &Projection,
    draft: &mut Draft,
) -> Result<(), Invalid> {
    let open = draft.open();
    let mut len = 0;
    let mut elements = tape.elements(index);
    if depth == 0
        && let (Some(x), Some(y)) = (elements.next(), elements.next())
    {
        let point = number(tape, x).zip(number(tape, y));
        let point = point.and_then(|(x, y)| projection.longitude_latitude(x, y));
        let (longitude, latitude) = point.ok_or_else(|| tape.fault(x, Reason::Unprojectable))?;
        draft.push(ExactNode::Double { value: longitude, byte: tape.byte_of(x).unwrap_or(0) });
        draft.push(ExactNode::Double { value: latitude, byte: tape.byte_of(y).unwrap_or(0) });
        len = 2;
    }
    for element in elements {
        match depth {
            0 => draft.copy(tape, element),
            _ => reproject(tape, (element, depth - 1), projection, draft)?,
        }
        len += 1;
    }
    draft.close(open, len, false);
    Ok(())
}
