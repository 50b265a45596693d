//! Where the geometries of an event are, and in which systems.
//!
//! In: the tape of an event. Out: the [`Part`]s of it that do not stay as they are.
//!
//! What is a geometry is a matter of RFC 7946: a GeoJSON object is the event, or what is
//! outermost in it, that has one of the nine types; from there on `features`, `geometry`, `geometries` and
//! `coordinates` are followed, by type, and nothing else. What stands in `properties` or in
//! foreign members is no geometry, whatever it looks like (sections 3.2 and 6.1).

use std::sync::Arc;

use crate::crs::{Crs, Projection};
use crate::error::{Invalid, Reason, printable};
use crate::protocol::{CrsPolicy, Identity, NameSet, Settings};
use crate::tape::{Node, Tape};

/// The types of GeoJSON objects.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Feature,
    FeatureCollection,
    GeometryCollection,
    Point,
    MultiPoint,
    LineString,
    MultiLineString,
    Polygon,
    MultiPolygon,
}

/// A member that does not stay as it is, by the node of its name.
pub(super) struct Part {
    pub(super) name: usize,
    pub(super) what: What,
}

pub(super) enum What {
    /// The coordinates of a geometry of that kind, in that system.
    Coordinates(Kind, Crs),
    /// What names the system.
    Crs,
}

/// Finds what there is to do in an event.
pub(super) struct Finder {
    /// Whether geometries of one shape are one.
    shaped: bool,
    reproject: bool,
    /// The system of what names none.
    source_crs: Crs,
    strip: NameSet,
    pub(super) projections: Projections,
    /// In the order of the tape.
    pub(super) parts: Vec<Part>,
    /// Whether a system is named that is not WGS 84, and stays as it is.
    pub(super) foreign_crs: bool,
}

impl Finder {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            shaped: settings.identity == Identity::Shape,
            reproject: settings.crs == CrsPolicy::Wgs84,
            source_crs: settings.source_crs.unwrap_or(Crs::Wgs84),
            strip: settings.strip.clone(),
            projections: Projections::default(),
            parts: Vec::new(),
            foreign_crs: false,
        }
    }

    /// Whether geometries of one shape are one.
    pub(super) fn is_shaped(&self) -> bool {
        self.shaped
    }

    /// Whether coordinates of events that name no system are brought to WGS 84.
    pub(super) fn brings_all(&self) -> bool {
        self.source_crs != Crs::Wgs84
    }

    pub(super) fn find(&mut self, tape: &Tape<'_>) -> Result<(), Invalid> {
        self.parts.clear();
        self.foreign_crs = false;
        match Kind::of(tape, 0) {
            Some(kind) => self.enter(tape, 0, kind, self.source_crs)?,
            None => {
                for (name, value) in tape.members(0) {
                    if !matches!(tape.node(name), Node::Str(name) if self.strip.contains(name)) {
                        self.walk(tape, value)?;
                    }
                }
            }
        }
        self.parts.sort_unstable_by_key(|part| part.name);
        Ok(())
    }

    /// Looks for GeoJSON objects in what may hold some.
    fn walk(&mut self, tape: &Tape<'_>, index: usize) -> Result<(), Invalid> {
        if let Some(kind) = Kind::of(tape, index) {
            return self.enter(tape, index, kind, self.source_crs);
        }
        for (_, value) in tape.members(index) {
            self.walk(tape, value)?;
        }
        for element in tape.elements(index) {
            self.walk(tape, element)?;
        }
        Ok(())
    }

    /// Goes through a GeoJSON object. What names no system has the one of what it stands in.
    fn enter(&mut self, tape: &Tape<'_>, index: usize, kind: Kind, outer: Crs) -> Result<(), Invalid> {
        let (mut part, mut crs) = (None, None);
        for (name, value) in tape.members(index) {
            match tape.node(name) {
                Node::Str("crs") => {
                    crs = Some(value);
                    if self.reproject {
                        self.parts.push(Part { name, what: What::Crs });
                    }
                }
                // Of members with one name the last one counts.
                Node::Str(text) if text == kind.part() => part = Some((name, value)),
                _ => {}
            }
        }
        let crs = match crs.map(|value| (value, crs_name(tape, value))) {
            None => outer,
            Some((_, name)) if !self.reproject => {
                self.foreign_crs |= name.and_then(Crs::parse) != Some(Crs::Wgs84);
                outer
            }
            Some((value, name)) => match name.and_then(Crs::parse) {
                Some(crs) if self.projections.of(crs).is_some() => crs,
                _ => return Err(tape.fault(value, unknown_crs(name))),
            },
        };
        let Some((name, value)) = part else { return Ok(()) };
        let is_part = |other: &Kind| match kind {
            Kind::FeatureCollection => *other == Kind::Feature,
            _ => other.is_geometry(),
        };
        let enter_part = |finder: &mut Self, index| match Kind::of(tape, index).filter(is_part) {
            Some(kind) => finder.enter(tape, index, kind, crs),
            None => Ok(()),
        };
        match kind {
            Kind::Feature => enter_part(self, value)?,
            Kind::FeatureCollection | Kind::GeometryCollection => {
                tape.elements(value).try_for_each(|element| enter_part(self, element))?;
            }
            _ if crs != Crs::Wgs84 || (self.shaped && kind.has_orders()) => {
                self.parts.push(Part { name, what: What::Coordinates(kind, crs) });
            }
            _ => {}
        }
        Ok(())
    }
}

/// The name that a `crs` member gives its system, by the GeoJSON of 2008, section 3.1.
fn crs_name<'a>(tape: &Tape<'a>, index: usize) -> Option<&'a str> {
    let text = |index: usize| if let Node::Str(text) = tape.node(index) { Some(text) } else { None };
    if text(tape.member(index, "type")?)? != "name" {
        return None;
    }
    text(tape.member(tape.member(index, "properties")?, "name")?)
}

/// Why an event is rejected whose `crs` member has this name, or none.
pub(super) fn unknown_crs(name: Option<&str>) -> Reason {
    /// The longest name that has a place in a message.
    const LETTERS_MAX: usize = 60;
    let what = "a coordinate reference system that is not known";
    Reason::UnknownCrs(match name {
        Some(name) if name.chars().count() <= LETTERS_MAX => format!("{what}: `{}`", printable(name)).into(),
        _ => what.into(),
    })
}

impl Kind {
    /// The type that an object says it has.
    fn of(tape: &Tape<'_>, index: usize) -> Option<Self> {
        let Node::Str(name) = tape.node(tape.member(index, "type")?) else { return None };
        Some(match name {
            "Feature" => Self::Feature,
            "FeatureCollection" => Self::FeatureCollection,
            "GeometryCollection" => Self::GeometryCollection,
            "Point" => Self::Point,
            "MultiPoint" => Self::MultiPoint,
            "LineString" => Self::LineString,
            "MultiLineString" => Self::MultiLineString,
            "Polygon" => Self::Polygon,
            "MultiPolygon" => Self::MultiPolygon,
            _ => return None,
        })
    }

    fn is_geometry(self) -> bool {
        !matches!(self, Self::Feature | Self::FeatureCollection)
    }

    /// The member that holds what it is made of.
    fn part(self) -> &'static str {
        match self {
            Self::Feature => "geometry",
            Self::FeatureCollection => "features",
            Self::GeometryCollection => "geometries",
            _ => "coordinates",
        }
    }

    /// How many arrays positions stand in (RFC 7946, section 3.1).
    pub(super) fn depth(self) -> usize {
        match self {
            Self::MultiPoint | Self::LineString => 1,
            Self::MultiLineString | Self::Polygon => 2,
            Self::MultiPolygon => 3,
            _ => 0,
        }
    }

    /// Whether one shape may be written in several orders.
    fn has_orders(self) -> bool {
        matches!(self, Self::MultiPoint | Self::Polygon | Self::MultiPolygon)
    }
}

/// The ways to WGS 84 that events have asked for.
#[derive(Default)]
pub(super) struct Projections(Vec<(Crs, Option<Arc<Projection>>)>);

impl Projections {
    pub(super) fn of(&mut self, crs: Crs) -> Option<Arc<Projection>> {
        if let Some((_, projection)) = self.0.iter().find(|(known, _)| *known == crs) {
            return projection.clone();
        }
        let projection = crs.projection().map(Arc::new);
        self.0.push((crs, projection.clone()));
        projection
    }
}
