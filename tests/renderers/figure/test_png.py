"""PNG files: what is written is read back, and two are held against each other by their pixels."""

from io import BytesIO

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from PIL.PngImagePlugin import PngImageFile, iTXt

from attnviz.errors import InvalidSource
from attnviz.renderers.figure.image import compare
from attnviz.renderers.figure.page import Pixels, png_of

SIDES = st.integers(1, 50)
COLOURS = arrays(np.uint8, st.tuples(SIDES, SIDES, st.just(3)))
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=99)
FACTS = st.dictionaries(NAMES, TEXTS, max_size=4)
LONG = {"Title": "猫坐在垫子上" * 9000, "Description": "naïve" * 9000}


def noise(n_rows: int, n_columns: int) -> Pixels:
    return np.random.default_rng(0).integers(0, 256, (n_rows, n_columns, 3), np.uint8)


@given(COLOURS, st.integers(30, 2400), FACTS)
@example(noise(1, 1), 150, LONG)
@example(noise(50, 1), 30, {"both": "naïve 猫", "Empty": ""})
def test_pillow_reads_back_what_was_written(pixels: Pixels, dpi: int, facts: dict[str, str]) -> None:
    content = png_of(pixels, dpi, facts)
    image = Image.open(BytesIO(content))
    assert isinstance(image, PngImageFile)
    assert image.mode == "RGB"
    assert np.array_equal(np.asarray(image), pixels)
    image.load()
    assert image.text == facts
    beyond_latin = {name for name, text in facts.items() if max(text, default="") > "\xff"}
    assert {name for name, text in image.text.items() if isinstance(text, iTXt)} == beyond_latin
    assert image.info["dpi"] == pytest.approx((dpi, dpi), abs=0.02)  # whole pixels per metre
    Image.open(BytesIO(content)).verify()  # the checksums
    assert content == png_of(pixels.copy(), dpi, dict(facts))


# --- Pictures compared pixel by pixel ---


def png(pixels: np.ndarray) -> bytes:
    file = BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, format="png")
    return file.getvalue()


WHITE = np.full((40, 60, 3), 255)


def test_kinds_of_png_are_compared_by_what_they_show() -> None:
    grey = png(np.full((4, 4), 9))
    assert compare(grey, png(np.full((4, 4, 3), 9))).rms == 0
    assert compare(grey, png(np.dstack([np.full((4, 4, 3), 9), np.full((4, 4), 128)]))).rms > 0  # transparent


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", png(WHITE)[:-40], png(WHITE)[:60]])
def test_what_is_no_png_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidSource, match="not a PNG"):
        compare(png(WHITE), data)


def test_too_many_pixels_are_refused() -> None:
    with pytest.raises(InvalidSource, match="60 × 40"):
        compare(png(WHITE), png(WHITE), max_pixels=40 * 60 - 1)
