"""Images on figures and pages: what lies under patches, figures made small, and two held against each other.

Knows bytes, and no report.
"""

import warnings
from base64 import b64encode
from contextlib import suppress
from io import BytesIO
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageChops, ImageOps, ImageStat

from attnviz.errors import InvalidSource, raising
from attnviz.shapes import Grey

THUMB = 480, 360  # pixels at most of a figure on a page that leads to it: sharp at half the size on a dense screen
MAX_PIXELS = 100_000_000  # as of a figure of ours
PART = 640, 640  # pixels at most of a picture beside the other


def resize(pixels: Grey, height: int, width: int) -> Grey:
    """Resize a grey image."""
    return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR))


def shrink(path: Path) -> str:
    """Return a figure of ours, made small, as a data: address; "" where it can be read no more."""
    with suppress(OSError, ValueError, Image.DecompressionBombError), Image.open(path, formats=("PNG",)) as figure:
        figure.thumbnail(THUMB)
        return write_address(figure)
    return ""


def write_address(image: Image.Image) -> str:
    """Write an image as a data: address."""
    written = BytesIO()
    image.convert("RGB").save(written, "WEBP", quality=80)
    return f"data:image/webp;base64,{b64encode(written.getvalue()).decode()}"


class PixelDifference(NamedTuple):
    """How far two pictures are apart: root mean square over all pixels' channels, each 0 to 255."""

    sizes: tuple[tuple[int, int], tuple[int, int]]  # width and height; where they are not equal, nothing else is known
    rms: float = 0.0
    n_pixels: int = 0  # that are not equal


def compare(before: bytes, after: bytes, max_pixels: int = MAX_PIXELS) -> PixelDifference:
    """Compare two PNGs. Raises InvalidSource for bytes that are no PNG, or more than `max_pixels`."""
    one, other = _open(before, max_pixels), _open(after, max_pixels)
    sizes = one.size, other.size
    if one.size != other.size:
        return PixelDifference(sizes)
    apart = ImageChops.difference(one, other)
    mean_square = sum(ImageStat.Stat(apart).sum2) / np.asarray(apart).size
    return PixelDifference(sizes, sqrt(mean_square), int(np.asarray(apart).any(axis=-1).sum()))


def show_difference(before: bytes, after: bytes) -> str:
    """Return two PNGs and, if they are of one size, where they differ: small, side by side, as a data: address.

    Raises as `compare`.
    """
    one, other = shown = [_open(data, MAX_PIXELS).convert("RGB") for data in (before, after)]
    if one.size == other.size:
        shown.append(ImageOps.invert(ImageOps.autocontrast(ImageChops.difference(one, other))))
    parts = [ImageOps.contain(each, PART) for each in shown]
    strip = Image.new("RGB", (len(parts) * PART[0], max(part.height for part in parts)), "white")
    for place, part in enumerate(parts):
        strip.paste(part, (place * PART[0], 0))
    return write_address(strip)


def _open(data: bytes, max_pixels: int) -> Image.Image:
    """Open a PNG as four channels, red, green, blue and opacity."""
    with (
        warnings.catch_warnings(action="ignore"),  # of many pixels: that is for us to refuse
        raising(InvalidSource, "a picture has too many pixels", "Draw it smaller.", (Image.DecompressionBombError,)),
        raising(InvalidSource, "not a PNG that can be read", told=(OSError, SyntaxError, ValueError)),
        Image.open(BytesIO(data), formats=["PNG"]) as image,
    ):
        if image.width * image.height > max_pixels:
            raise InvalidSource(f"a picture has {image.width} × {image.height} pixels", hint="Draw it smaller.")
        return image.convert("RGBA")
