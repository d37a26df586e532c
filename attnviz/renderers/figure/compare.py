"""Two pictures of what should be one, pixel by pixel, and a picture of where they differ. Knows bytes, no files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image

from attnviz.errors import InvalidSource, TooLarge

MAX_PIXELS = 100_000_000  # as of a figure of ours
BAND = 512  # lines at a time
PALE = 0.3  # how much of the expected picture's contrast is left beneath the marks
MARK = (214, 0, 60)
FAINTEST = 0.25  # share of the mark where a pixel differs by next to nothing
AWAY = 3  # pixels from what differs to the frame, so that a single one is found
WHITE = 255

Pixels = UInt8[np.ndarray, "row column 4"]


@dataclass(frozen=True, eq=False)
class PixelDifference:
    """How far two pictures are apart: root mean square over all pixels' channels, each 0 to 255."""

    rms: float
    n_pixels: int  # that are not equal
    expected_size: tuple[int, int]  # width and height
    actual_size: tuple[int, int]
    apart: UInt8[np.ndarray, "row column"]  # of each pixel, the channel that differs most
    pale: UInt8[np.ndarray, "row column"]

    @property
    def same_size(self) -> bool:
        """Whether both pictures have as many pixels each way."""
        return self.expected_size == self.actual_size

    def picture(self) -> bytes:
        """The expected picture, pale; red where pixels differ, the more the further, in one frame. As PNG."""
        shown = np.repeat(self.pale[..., None], 3, axis=-1)
        where = self.apart > 0
        if where.any():
            for start in range(0, len(shown), BAND):
                rows = slice(start, start + BAND)
                strength = np.where(where[rows], FAINTEST + (1 - FAINTEST) * self.apart[rows] / WHITE, 0)[..., None]
                shown[rows] = np.rint(shown[rows] * (1 - strength) + np.array(MARK) * strength)
            for edge in _frame(where):
                shown[edge] = MARK
        file = BytesIO()
        Image.fromarray(shown).save(file, format="png")
        return file.getvalue()


def compare(expected: bytes, actual: bytes, max_pixels: int = MAX_PIXELS) -> PixelDifference:
    """Compare two PNGs. What only the larger one has is as far apart as can be.

    Raises InvalidSource for bytes that are no PNG, TooLarge for more than `max_pixels` of both laid over each other.
    """
    one, other = _pixels(expected, max_pixels), _pixels(actual, max_pixels)
    height, width = (max(one.shape[axis], other.shape[axis]) for axis in (0, 1))
    if height * width > max_pixels:  # a line across and one down
        raise TooLarge(f"together they cover {width} × {height} pixels", hint="Draw them in one size.")
    rows, columns = (min(one.shape[axis], other.shape[axis]) for axis in (0, 1))
    apart = np.full((height, width), WHITE, dtype=np.uint8)
    squares = (height * width - rows * columns) * 4 * WHITE**2
    for start in range(0, rows, BAND):
        band = slice(start, min(start + BAND, rows))
        left, right = (pixels[band, :columns].astype(np.int64) for pixels in (one, other))
        squares += int(((left - right) ** 2).sum())
        apart[band, :columns] = np.abs(left - right).max(axis=-1)
    pale = np.full((height, width), WHITE, dtype=np.uint8)
    pale[: one.shape[0], : one.shape[1]] = WHITE - PALE * (WHITE - one[..., :3].mean(axis=-1, dtype=np.float32))
    return PixelDifference(
        rms=float(np.sqrt(squares / (height * width * 4))),
        n_pixels=int(np.count_nonzero(apart)),
        expected_size=(one.shape[1], one.shape[0]),
        actual_size=(other.shape[1], other.shape[0]),
        apart=apart,
        pale=pale,
    )


def _frame(where: Bool[np.ndarray, "row column"]) -> Iterator[tuple[int | slice, int | slice]]:
    """The four sides of a frame around all that is True, a little away from it where there is room."""
    (top, bottom), (left, right) = (
        (max(int(found[0]) - AWAY, 0), min(int(found[-1]) + AWAY, size - 1))
        for found, size in ((np.flatnonzero(where.any(axis=1 - axis)), where.shape[axis]) for axis in (0, 1))
    )
    down, across = slice(top, bottom + 1), slice(left, right + 1)
    yield from ((top, across), (bottom, across), (down, left), (down, right))


def _pixels(data: bytes, max_pixels: int) -> Pixels:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of many pixels: that is for us to refuse
        try:
            with Image.open(BytesIO(data), formats=["PNG"]) as image:
                if image.width * image.height > max_pixels:
                    raise TooLarge(f"a picture has {image.width} × {image.height} pixels", hint="Draw it smaller.")
                return np.asarray(image.convert("RGBA"))
        except Image.DecompressionBombError as error:
            raise TooLarge("a picture has too many pixels", hint="Draw it smaller.") from error
        except (OSError, SyntaxError, ValueError) as error:
            raise InvalidSource("not a PNG that can be read") from error
