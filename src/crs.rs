//! Coordinate reference systems, by the names that events call them by.
//!
//! In: a name, as the `crs` member of the GeoJSON of 2008 holds it (RFC 7946 has done away with it).
//! Out: a [`Crs`], and the [`Projection`] from it to longitude and latitude. Coordinates are easting
//! and northing, or degrees of longitude and latitude, in that order, whatever order a system's authority
//! has: so the GeoJSON of 2008 has it (section 2.1.1), and what is written in it. Systems whose axes
//! point elsewhere are not known.

use std::fmt;

use proj4rs::Proj;
use proj4rs::transform::transform;

/// A coordinate reference system that has a known name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crs {
    /// WGS 84, in degrees of longitude and latitude: what RFC 7946 has.
    Wgs84,
    /// The system of this code in the EPSG dataset. It need not be one that coordinates can be
    /// brought from.
    Epsg(u16),
}

impl Crs {
    /// The system of that name: `EPSG:3857`, `urn:ogc:def:crs:EPSG::3857`,
    /// `http://www.opengis.net/def/crs/EPSG/0/3857`, and the same with `OGC` and `CRS84`, in any case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        const PREFIXES: [&str; 4] = [
            "urn:ogc:def:crs:",
            "urn:x-ogc:def:crs:",
            "http://www.opengis.net/def/crs/",
            "https://www.opengis.net/def/crs/",
        ];
        let name = name.to_ascii_lowercase();
        let (separator, rest) =
            match PREFIXES.iter().find_map(|prefix| Some((prefix, name.strip_prefix(prefix)?))) {
                Some((prefix, rest)) if prefix.ends_with('/') => ('/', rest),
                Some((_, rest)) => (':', rest),
                None => (':', &name[..]),
            };
        let parts: Vec<&str> = rest.split(separator).collect();
        match parts[..] {
            ["ogc", "crs84"] | ["ogc", _, "crs84"] => Some(Self::Wgs84),
            ["epsg", code] | ["epsg", _, code] if code.bytes().all(|byte| byte.is_ascii_digit()) => {
                match code.parse().ok()? {
                    4326 => Some(Self::Wgs84),
                    code => Some(Self::Epsg(code)),
                }
            }
            _ => None,
        }
    }

    /// The way from this system to WGS 84; `None` if there is none without a grid of corrections, or
    /// the system is not known.
    pub(crate) fn projection(self) -> Option<Projection> {
        const WGS84: &str = "+proj=longlat +datum=WGS84 +no_defs";
        let definition = match self {
            Self::Wgs84 => WGS84,
            Self::Epsg(code) => crs_definitions::from_code(code)?.proj4,
        };
        if !is_handled(definition) {
            return None;
        }
        Some(Projection {
            from: Proj::from_proj_string(definition).ok()?,
            to: Proj::from_proj_string(WGS84).ok()?,
        })
    }
}

/// Whether two coordinates under this definition are easting and northing, or degrees of longitude and
/// latitude. Geocentric ones are three; axes may point elsewhere; and longitudes from another meridian than
/// that of Greenwich come in grads as well as in degrees, which definitions do not tell.
fn is_handled(definition: &str) -> bool {
    let has = |word: &str| definition.split_whitespace().any(|part| part.starts_with(word));
    !(has("+proj=geocent") || has("+axis=") || has("+proj=longlat") && has("+pm="))
}

/// The name in its shortest form.
impl fmt::Display for Crs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wgs84 => f.write_str("OGC:CRS84"),
            Self::Epsg(code) => write!(f, "EPSG:{code}"),
        }
    }
}

/// The way from a system to WGS 84.
pub(crate) struct Projection {
    from: Proj,
    to: Proj,
}

impl Projection {
    /// Longitude and latitude, in degrees, of a point; `None` if it has no place on the earth: if it is none
    /// of the system's, or the way back does not lead to it, as from past the antimeridian or the poles.
    pub(crate) fn longitude_latitude(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let is_geographic = self.from.is_latlong();
        if is_geographic && !(x.abs() <= 180.0 && y.abs() <= 90.0) {
            return None;
        }
        let start = if is_geographic { (x.to_radians(), y.to_radians()) } else { (x, y) };
        let mut point = (start.0, start.1, 0.0);
        transform(&self.from, &self.to, &mut point).ok()?;
        let (longitude, latitude) = (point.0.to_degrees(), point.1.to_degrees());
        if !is_geographic {
            transform(&self.to, &self.from, &mut point).ok()?;
            // A shift of datum is undone to a millimetre or so; what is wrapped or clamped is far off.
            let is_near = |one: f64, other: f64| (one - other).abs() <= 1.0;
            if !(is_near(point.0, x) && is_near(point.1, y)) {
                return None;
            }
        }
        let is_on_earth = longitude.abs() <= 180.000_000_1 && latitude.abs() < 90.000_000_1;
        // The sign of a zero that is computed says nothing.
        is_on_earth.then_some((longitude + 0.0, latitude + 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_systems() {
        for (name, crs) in [
            ("EPSG:4326", Some(Crs::Wgs84)),
            ("urn:ogc:def:crs:OGC:1.3:CRS84", Some(Crs::Wgs84)),
            ("urn:ogc:def:crs:OGC::CRS84", Some(Crs::Wgs84)),
            ("http://www.opengis.net/def/crs/OGC/1.3/CRS84", Some(Crs::Wgs84)),
            ("OGC:CRS84", Some(Crs::Wgs84)),
            ("epsg:3857", Some(Crs::Epsg(3857))),
            ("urn:ogc:def:crs:EPSG::3857", Some(Crs::Epsg(3857))),
            ("urn:ogc:def:crs:EPSG:9.8:3857", Some(Crs::Epsg(3857))),
            ("urn:x-ogc:def:crs:EPSG:3857", Some(Crs::Epsg(3857))),
            ("https://www.opengis.net/def/crs/EPSG/0/3857", Some(Crs::Epsg(3857))),
            ("EPSG:70000", None),
            ("EPSG:+3857", None),
            ("EPSG:", None),
            ("EPSG", None),
            ("", None),
            ("3857", None),
            ("ESRI:102100", None),
            ("urn:ogc:def:crs:EPSG::3857:1", None),
        ] {
            assert_eq!(Crs::parse(name), crs, "{name}");
        }
    }

    /// Known places in systems of several kinds. The figures are those of the systems' own
    /// definitions: origins and false origins, and for EPSG:3857 the formula of EPSG Guidance Note
    /// 7-2, section 3.5.3.
    #[test]
    fn points_are_brought_to_longitude_and_latitude() {
        let mercator = |x: f64, y: f64| {
            let radius = 6_378_137.0;
            ((x / radius).to_degrees(), (2.0 * (y / radius).exp().atan()).to_degrees() - 90.0)
        };
        for (code, (x, y), (longitude, latitude)) in [
            (3857, (0.0, 0.0), (0.0, 0.0)),
            (3857, (-8_238_310.24, 4_970_071.58), mercator(-8_238_310.24, 4_970_071.58)),
            (3857, (15_550_408.91, 4_257_980.73), mercator(15_550_408.91, 4_257_980.73)),
            (32633, (500_000.0, 0.0), (15.0, 0.0)),
            (32733, (500_000.0, 10_000_000.0), (15.0, 0.0)),
            (2154, (700_000.0, 6_600_000.0), (3.0, 46.5)),
            (3035, (4_321_000.0, 3_210_000.0), (10.0, 52.0)),
            (4269, (-75.0, 40.0), (-75.0, 40.0)),
        ] {
            let projection = Crs::Epsg(code).projection().expect("a known system");
            let (x, y) = projection.longitude_latitude(x, y).expect("a point on the earth");
            assert!((x - longitude).abs() < 1e-9 && (y - latitude).abs() < 1e-9, "EPSG:{code}: {x} {y}");
        }
        // NAD27 needs a grid; nobody has defined 1; 4978 is geocentric, 4807 in grads, and 2048 counts
        // to the west and south.
        for code in [4267, 1, 4978, 4807, 2048] {
            assert!(Crs::Epsg(code).projection().is_none(), "EPSG:{code}");
        }
        // What is past the antimeridian or the poles has no place, but the antimeridian itself has.
        let edge = 20_037_508.342_789_244;
        let mercator = Crs::Epsg(3857).projection().expect("a known system");
        for (x, longitude) in [(edge, 180.0), (-edge, -180.0)] {
            assert_eq!(mercator.longitude_latitude(x, 0.0), Some((longitude, 0.0)));
        }
        for (x, y) in [(edge + 2.0, 0.0), (30_000_000.0, 1.0), (1e300, 0.0), (0.0, 1e300), (0.0, f64::MAX)] {
            assert_eq!(mercator.longitude_latitude(x, y), None, "{x} {y}");
        }
        let degrees = Crs::Epsg(4269).projection().expect("a known system");
        for (x, y) in [(500_000.5, 200_000.25), (10.0, 95.0), (-181.0, 0.0)] {
            assert_eq!(degrees.longitude_latitude(x, y), None, "{x} {y}");
        }
        let zero = mercator.longitude_latitude(-0.0, -0.0).expect("a point on the earth");
        assert!(zero.0.is_sign_positive() && zero.1.is_sign_positive());
    }
}
