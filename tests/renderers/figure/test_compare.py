"""Pictures compared pixel by pixel."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from matplotlib.testing.compare import calculate_rms
from PIL import Image

from attnviz.errors import InvalidSource, TooLarge
from attnviz.renderers.figure.compare import AWAY, FAINTEST, MARK, PALE, compare


def png(pixels: np.ndarray, **more: object) -> bytes:
    file = BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, format="png", **more)
    return file.getvalue()


def white(height: int = 40, width: int = 60) -> np.ndarray:
    return np.full((height, width, 3), 255)


def opened(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(data)))


def test_the_same_pixels_are_the_same_whatever_the_bytes() -> None:
    one, other = png(white()), png(white(), compress_level=0)
    assert one != other
    found = compare(one, other)
    assert (found.rms, found.n_pixels, found.same_size) == (0, 0, True)
    assert (opened(found.picture()) == 255).all()


def test_one_pixel_is_found_marked_and_framed() -> None:
    pixels = white()
    pixels[10, 20] = [255, 0, 255]
    found = compare(png(white()), png(pixels))
    assert found.n_pixels == 1
    assert found.rms == pytest.approx(255 / np.sqrt(40 * 60 * 4))
    shown = opened(found.picture())
    marked = (shown == MARK).all(axis=-1)
    assert marked[10, 20]
    assert marked[10 - AWAY, 20]
    assert marked[10, 20 + AWAY]
    assert marked.sum() == 1 + 4 * 2 * AWAY
    assert (shown[~marked] == 255).all()


def test_the_further_the_redder() -> None:
    less, more = white(), white()
    less[5, 5], more[5, 5] = 254, 0
    faint, strong = (opened(compare(png(white()), png(pixels)).picture())[5, 5] for pixels in (less, more))
    assert (strong == MARK).all()
    share = FAINTEST + (1 - FAINTEST) / 255
    assert faint == pytest.approx(255 * (1 - share) + np.array(MARK) * share, abs=1)


def test_what_did_not_change_is_the_expected_picture_but_pale() -> None:
    expected = white()
    expected[:, :30] = 0
    actual = expected.copy()
    actual[39, 59] = 0
    shown = opened(compare(png(expected), png(actual)).picture())
    assert shown[0, 0] == pytest.approx([255 * (1 - PALE)] * 3, abs=1)
    assert (shown[0, 40] == 255).all()


def test_it_is_matplotlibs_number() -> None:
    one, other = (np.random.default_rng(seed).integers(0, 256, (700, 30, 4)) for seed in (0, 1))  # more than one band
    found = compare(png(one), png(other))
    assert found.rms == pytest.approx(calculate_rms(one.astype(np.int16), other.astype(np.int16)))
    assert found.rms == compare(png(other), png(one)).rms


def test_another_size_is_a_difference_of_its_own() -> None:
    found = compare(png(white(40, 60)), png(white(45, 50)))
    assert (found.expected_size, found.actual_size, found.same_size) == ((60, 40), (50, 45), False)
    assert found.n_pixels == 45 * 60 - 40 * 50
    shown = opened(found.picture())
    assert shown.shape == (45, 60, 3)
    assert (shown[42, 10] == MARK).all()
    assert (shown[10, 55] == MARK).all()


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
    with pytest.raises(TooLarge, match="together they cover 60 × 40 pixels"):
        compare(png(white(1, 60)), png(white(40, 1)), max_pixels=40 * 60 - 1)


def test_same_pictures_same_bytes() -> None:
    pixels = white()
    pixels[3:9, 5] = 7
    assert compare(png(white()), png(pixels)).picture() == compare(png(white()), png(pixels)).picture()
