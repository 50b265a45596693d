"""The readable reference of `[geometry] identity = "shape"`: the order that a shape has, however its
geometries were written down.

A ring may start at any of its vertices and run either way round, and the holes of a polygon, the
polygons of a MultiPolygon and the points of a MultiPoint may come in any order. Here each gets one
order. Nothing is removed, merged or rounded; but what is compared are numbers as they are going to
be written, or else what rounding makes one would be ordered by what it drops.
"""

import math
from fractions import Fraction

# How many arrays stand around each position.
LEVELS = {"Point": 0, "MultiPoint": 1, "LineString": 1, "MultiLineString": 2, "Polygon": 2, "MultiPolygon": 3}
GEOMETRIES = {*LEVELS, "GeometryCollection"}
GEOJSON = {*GEOMETRIES, "Feature", "FeatureCollection"}


def is_object_of(types, value):
    return isinstance(value, dict) and isinstance(value.get("type"), str) and value["type"] in types


def is_finite(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer past the range of a double
        return False


def is_well_formed(value, levels):
    """Whether it is positions within so many arrays."""
    if not isinstance(value, list):
        return False
    if levels > 0:
        return all(is_well_formed(element, levels - 1) for element in value)
    return len(value) >= 2 and all(map(is_finite, value))


class Shapes:
    """`written` makes of a number inside coordinates the one that is written, as a double if it has
    the text of one. With `all_doubles`, integers have one too."""

    def __init__(self, written, all_doubles):
        self.written = written
        self.all_doubles = all_doubles

    def walk(self, value, skipped=frozenset()):
        """Finds the GeoJSON in an event, and gives its coordinates their order. Of the event itself,
        the members in `skipped` are no place to look: they are not hashed."""
        if is_object_of(GEOJSON, value):
            self.reorder(value)
        elif isinstance(value, dict):
            for name, member in value.items():
                if name not in skipped:
                    self.walk(member)
        elif isinstance(value, list):
            for element in value:
                self.walk(element)

    def reorder(self, geojson):
        """What is not a part of the shape, as properties are not, is left alone."""
        kind = geojson["type"]
        if kind == "FeatureCollection":
            self.reorder_all(geojson.get("features"), {"Feature"})
        elif kind == "Feature":
            self.reorder_all([geojson.get("geometry")], GEOMETRIES)
        elif kind == "GeometryCollection":
            self.reorder_all(geojson.get("geometries"), GEOMETRIES)
        elif is_well_formed(geojson.get("coordinates"), LEVELS[kind]):
            geojson["coordinates"] = self.coordinates(kind, geojson["coordinates"])

    def reorder_all(self, values, types):
        for value in values if isinstance(values, list) else []:
            if is_object_of(types, value):
                self.reorder(value)

    def coordinates(self, kind, coordinates):
        if kind == "Polygon":
            return self.polygon(coordinates)
        if kind == "MultiPolygon":
            return sorted(map(self.polygon, coordinates), key=self.order)
        if kind == "MultiPoint":
            return sorted(coordinates, key=self.order)
        return coordinates

    def polygon(self, rings):
        """The outer ring counter-clockwise, then the holes, clockwise, in order."""
        shell = [self.ring(ring, counter_clockwise=True) for ring in rings[:1]]
        holes = [self.ring(ring, counter_clockwise=False) for ring in rings[1:]]
        return shell + sorted(holes, key=self.order)

    def is_degenerate(self, ring):
        return len(ring) < 4 or self.order(ring[0]) != self.order(ring[-1]) or self.twice_the_area(ring) == 0

    def ring(self, ring, counter_clockwise):
        """The ring from its least rotation on. One that is degenerate has no direction, and keeps
        its order."""
        if self.is_degenerate(ring):
            return ring
        vertices = ring[:-1]
        if (self.twice_the_area(ring) > 0) != counter_clockwise:
            vertices.reverse()
        places = self.order(vertices)
        start = min(range(len(vertices)), key=lambda first: places[first:] + places[:first])
        return vertices[start:] + vertices[:start] + [vertices[start]]

    def twice_the_area(self, ring):
        """Exactly, and positive if the ring is counter-clockwise."""
        points = [tuple(Fraction(float(self.written(ordinate))) for ordinate in position[:2]) for position in ring]
        return sum(x * next_y - next_x * y for (x, y), (next_x, next_y) in zip(points, points[1:]))

    def order(self, value):
        """What sorts numbers, and arrays of them at any depth; equal for what has one text."""
        if isinstance(value, list):
            return [self.order(element) for element in value]
        number = self.written(value)
        double = float(number)
        if self.all_doubles:
            return (double,)
        is_negative_zero = double == 0 and math.copysign(1, double) < 0
        return double, not is_negative_zero, isinstance(number, float), number
