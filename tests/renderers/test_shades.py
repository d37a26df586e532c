"""Shades can be told apart and read on, in pictures of characters as in 256 colours."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.renderers import shades
from attnviz.report import Scale


def test_places_on_the_scales() -> None:
    values = np.array([[0.0, 0.01, 0.1, 1.0]])
    assert shades.places(values, Scale("log", 0.01, 1.0, "")).tolist() == [pytest.approx([0, 0, 0.5, 1])]
    assert shades.places(100 * values, Scale("lift", 1.0, 16.0, "")).tolist() == [
        pytest.approx([0, 0, np.log2(10) / 4, 1])
    ]
    assert shades.places(values, Scale("shared", 0.0, 0.1, "")).tolist() == [pytest.approx([0, 0.1, 1, 1])]
    assert shades.places(values, Scale("shared", 0.0, 0.0, "")).tolist() == [[0, 0.01, 0.1, 1]]


@pytest.mark.parametrize(("kind", "darker"), [("fixed", False), ("lift", True)])
def test_shades_never_turn(kind: str, darker: bool) -> None:
    lights = [shades.luminance(shades.colour(place, kind)) for place in np.linspace(0, 1, 101).tolist()]
    assert lights == sorted(lights, reverse=darker)
    cube = [0, 95, 135, 175, 215, 255]
    greys = [(8 + 10 * step,) * 3 for step in range(24)]
    colours = [(cube[n // 36], cube[n // 6 % 6], cube[n % 6]) for n in range(216)] + greys
    lights = [shades.luminance(colours[shades.colour_256(p, kind) - 16]) for p in np.linspace(0, 1, 101).tolist()]
    assert lights == sorted(lights, reverse=darker)


@pytest.mark.parametrize("kind", ["fixed", "lift"])
def test_digits_can_be_read_on_every_colour(kind: str) -> None:
    for place in np.linspace(0, 1, 101).tolist():
        background = shades.colour(place, kind)
        lights = sorted(shades.luminance(c) + 0.05 for c in (background, shades.ink(background)))
        assert lights[1] / lights[0] >= 4.5
