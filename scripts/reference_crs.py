"""The readable reference of `[geometry] crs = "wgs84"`, for the one projection that has a short
formula: EPSG:3857, as EPSG Guidance Note 7-2, section 3.5.3, has it. Others are for the Rust tests.
"""

import math
import re

from reference_geometry import GEOJSON, GEOMETRIES, LEVELS, is_object_of, is_well_formed

WGS84, WEB_MERCATOR = "WGS 84", "EPSG:3857"
RADIUS = 6378137.0


class Unknown(ValueError):
    """No system that coordinates can be brought from, or coordinates that cannot be."""


def named(name):
    """The system of that name."""
    forms = (r"(?:urn:(?:x-)?ogc:def:crs:)?(epsg|ogc):(?:[^:]*:)?([^:]*)",
             r"https?://www\.opengis\.net/def/crs/(epsg|ogc)/(?:[^/]*/)?([^/]*)")
    match = next(filter(None, (re.fullmatch(form, name.lower()) for form in forms)), None)
    if match and match.groups() in (("ogc", "crs84"), ("epsg", "4326")):
        return WGS84
    if match and match.groups() == ("epsg", "3857"):
        return WEB_MERCATOR
    if match and match[1] == "epsg" and re.fullmatch("[0-9]+", match[2]) and int(match[2]) not in (0, 1):
        raise NotImplementedError(f"the reference knows nothing of {name}")
    raise Unknown(name)


def system_of(crs):
    """The system that a `crs` member names, as in the GeoJSON of 2008, section 3.1."""
    if not isinstance(crs, dict) or crs.get("type") != "name" or not isinstance(crs.get("properties"), dict):
        raise Unknown("no named system")
    name = crs["properties"].get("name")
    if not isinstance(name, str):
        raise Unknown("no name")
    return named(name)


def longitude_latitude(position):
    x, y, *rest = position
    try:
        latitude = math.degrees(2 * math.atan(math.exp(y / RADIUS)) - math.pi / 2)
    except OverflowError as error:
        raise Unknown("too far north") from error
    longitude = math.degrees(x / RADIUS)
    if abs(longitude) > 180.0000001 or abs(latitude) >= 90:
        raise Unknown("past the antimeridian or a pole")
    # The sign of a zero that is computed says nothing.
    return [longitude + 0.0, latitude + 0.0, *rest]


def brought(coordinates, levels):
    if levels == 0:
        return longitude_latitude(coordinates)
    return [brought(element, levels - 1) for element in coordinates]


class ToWgs84:
    """Brings all coordinates of an event to longitude and latitude. `source` is the system of what
    names none."""

    def __init__(self, source):
        self.source = source

    def walk(self, value, skipped=frozenset()):
        if is_object_of(GEOJSON, value):
            self.enter(value, self.source)
        elif isinstance(value, dict):
            for name, member in value.items():
                if name not in skipped:
                    self.walk(member)
        elif isinstance(value, list):
            for element in value:
                self.walk(element)

    def enter(self, geojson, outer):
        system = system_of(geojson["crs"]) if "crs" in geojson else outer
        geojson.pop("crs", None)
        geojson.repeated -= {"crs"}
        kind = geojson["type"]
        if kind == "FeatureCollection":
            self.enter_all(geojson.get("features"), {"Feature"}, system)
        elif kind == "Feature":
            self.enter_all([geojson.get("geometry")], GEOMETRIES, system)
        elif kind == "GeometryCollection":
            self.enter_all(geojson.get("geometries"), GEOMETRIES, system)
        elif "coordinates" in geojson and system != WGS84:
            if not is_well_formed(geojson["coordinates"], LEVELS[kind]):
                raise Unknown("no positions")
            geojson["coordinates"] = brought(geojson["coordinates"], LEVELS[kind])

    def enter_all(self, values, types, system):
        for value in values if isinstance(values, list) else []:
            if is_object_of(types, value):
                self.enter(value, system)
