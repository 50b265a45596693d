#!/usr/bin/env python3
"""Try the laws of shape identity on nasty geometries, with the reference.

    shape_laws.py N [--seed S]

An event whose rings start elsewhere or run the other way, or whose holes, polygons or points come in
another order, has the same canonical form. The canonical form is its own. An event in which one
vertex was moved has another one. Stops at the first event of which that is not so.
"""

import argparse
import json
import random
import sys

import nasty
import reference
from reference_geometry import Shapes

SETTINGS = ("", "[numbers]\ndecimals = 8\n", "[numbers]\ndecimals = 2\n", '[numbers]\nintegral = "unify"\nnegative_zero = "fold"\n',
            '[numbers]\ndecimals = 2\nintegral = "unify"\nnegative_zero = "fold"\n', '[canonical]\nscheme = "jcs"\n',
            '[numbers]\ndecimals = 2\n[canonical]\nscheme = "jcs"\n')


class Rewriter(Shapes):
    """Walks as the reference does, and writes each shape down in another way."""

    def __init__(self, written, all_doubles, rng):
        super().__init__(written, all_doubles)
        self.rng = rng

    def shuffled(self, values):
        return self.rng.sample(values, len(values))

    def coordinates(self, kind, coordinates):
        if kind == "Polygon":
            return self.polygon(coordinates)
        if kind == "MultiPolygon":
            return self.shuffled([self.polygon(rings) for rings in coordinates])
        return self.shuffled(coordinates) if kind == "MultiPoint" else coordinates

    def polygon(self, rings):
        rings = [self.ring(ring) for ring in rings]
        return rings[:1] + self.shuffled(rings[1:])

    def ring(self, ring):
        if self.is_degenerate(ring):
            return ring
        vertices = ring[:-1]
        turn = self.rng.randrange(len(vertices))
        vertices = (vertices[turn:] + vertices[:turn])[::self.rng.choice([1, -1])]
        return vertices + vertices[:1]


class Mover(Shapes):
    """Walks as the reference does, and moves one vertex of the first ring it finds away from all."""

    moved = False

    def coordinates(self, kind, coordinates):
        rings = coordinates if kind == "Polygon" else coordinates[0] if kind == "MultiPolygon" and coordinates else []
        if rings and rings[0] and not self.moved:
            self.moved = True
            ring = rings[0]
            is_closed = len(ring) > 1 and self.order(ring[0]) == self.order(ring[-1])
            ring[0] = [123456.5, *ring[0][1:]]
            if is_closed:
                ring[-1] = ring[0]
        return coordinates


def walk(line, walker):
    event = json.loads(line)
    walker.walk(event)
    return json.dumps(event).encode()


def check(line, settings, rng):
    """Whether the shapes of the line could be written in another way, and whether a vertex moved."""
    rounding = [lambda value: reference.number(value, settings, in_coordinates=True), settings.scheme == "jcs"]
    mover = Mover(*rounding)
    other, elsewhere = walk(line, Rewriter(*rounding, rng)), walk(line, mover)
    form = reference.canonical(line, settings)
    if {form} != {reference.canonical(same, settings) for same in (other, form)}:
        sys.exit(f"one shape has two canonical forms:\n{line}\n{other}\n{form}")
    if mover.moved and reference.canonical(elsewhere, settings) == form:
        sys.exit(f"two shapes have one canonical form:\n{line}\n{elsewhere}")
    return other != line, mover.moved


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=20180207)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    tried = []
    for index in range(args.count):
        text = f'name = "p"\n[geometry]\nidentity = "shape"\n{SETTINGS[index % len(SETTINGS)]}'
        # Repeated members are gone then, which are no part of a shape.
        line = json.dumps(json.loads(nasty.geometry(rng))).encode()
        try:
            tried.append(check(line, reference.Settings.from_toml(text), rng))
        except reference.Refused:  # a number that scheme jcs does not take
            continue
    rewritten, moved = map(sum, zip(*tried))
    print(f"{len(tried)} events, {rewritten} written in another way, {moved} with a vertex moved: every law holds")


if __name__ == "__main__":
    main()
