"""Pictures compared pixel by pixel."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from matplotlib.testing.compare import calculate_rms
from PIL import Image

from attnviz.errors import InvalidSource, TooLarge
from attnviz.renderers.figure.compare import compare


def png(pixels: np.ndarray, **more: object) -> bytes:
    file = BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, format="png", **more)
    return file.getvalue()


def white(height: int = 40, width: int = 60) -> np.ndarray:
    return np.full((height, width, 3), 255)


def test_the_same_pixels_are_the_same_whatever_the_bytes() -> None:
    one, other = png(white()), png(white(), compress_level=0)
    assert one != other
    assert compare(one, other) == (((60, 40), (60, 40)), 0, 0)


def test_one_pixel_is_found() -> None:
    pixels = white()
    pixels[10, 20] = [255, 0, 255]
    found = compare(png(white()), png(pixels))
    assert found.n_pixels == 1
    assert found.rms == pytest.approx(255 / np.sqrt(40 * 60 * 4))


def test_it_is_matplotlibs_number() -> None:
    one, other = (np.random.default_rng(seed).integers(0, 256, (700, 30, 4)) for seed in (0, 1))  # more than one band
    found = compare(png(one), png(other))
    assert found.rms == pytest.approx(calculate_rms(one.astype(np.int16), other.astype(np.int16)))
    assert found.rms == compare(png(other), png(one)).rms


def test_of_another_size_nothing_else_is_said() -> None:
    assert compare(png(white(40, 60)), png(white(45, 50))) == (((60, 40), (50, 45)), 0, 0)


def test_kinds_of_png_are_compared_by_what_they_show() -> None:
    grey = png(np.full((4, 4), 9))
    assert compare(grey, png(np.full((4, 4, 3), 9))).rms == 0
    assert compare(grey, png(np.dstack([np.full((4, 4, 3), 9), np.full((4, 4), 128)]))).rms > 0  # transparent


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", png(white())[:-40], png(white())[:60]])
def test_what_is_no_png_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidSource, match="not a PNG"):
        compare(png(white()), data)


def test_too_many_pixels_are_refused() -> None:
    with pytest.raises(TooLarge, match="60 × 40"):
        compare(png(white()), png(white()), max_pixels=40 * 60 - 1)
