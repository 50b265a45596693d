//! Coordinate reference systems, by the names that events call them by.
//!
//! In: a name, as the `crs` member of the GeoJSON of 2008 holds it (RFC 7946 has done away with it).
//! Out: a [`Crs`], and the [`Projection`] from it to longitude and latitude. Coordinates are easting
//! and northing, or longitude and latitude, in that order, whatever order a system's authority has:
//! so the GeoJSON of 2008 has it (section 2.1.1), and what is written in it.

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
        Some(Projection {
            from: Proj::from_proj_string(definition).ok()?,
            to: Proj::from_proj_string(WGS84).ok()?,
        })
    }
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
    /// Longitude and latitude, in degrees, of a point; `None` if it has none.
    pub(crate) fn longitude_latitude(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let mut point = match self.from.is_latlong() {
            true => (x.to_radians(), y.to_radians(), 0.0),
            false => (x, y, 0.0),
        };
        transform(&self.from, &self.to, &mut point).ok()?;
        let (longitude, latitude) = (point.0.to_degrees(), point.1.to_degrees());
        (longitude.is_finite() && latitude.is_finite()).then_some((longitude, latitude))
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
        // NAD27 needs a grid, and nobody has defined 1.
        assert!(Crs::Epsg(4267).projection().is_none());
        assert!(Crs::Epsg(1).projection().is_none());
    }
}
