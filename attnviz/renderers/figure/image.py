"""Images of a user's as grey pixels over which patches are drawn. What Pillow cannot read is refused in one line."""

from __future__ import annotations

import warnings
from base64 import b64encode
from contextlib import suppress
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from attnviz.bounded import read_bytes
from attnviz.errors import InvalidSource, TooLarge
from attnviz.shapes import Grey

MAX_PIXELS = 16_000_000
MAX_BYTES = 100_000_000
MAX_SIDE = 256  # pixels that are kept: enough to see what is where, 64 KiB at most
PER_PATCH = 16  # pixels of a patch, unless that is too many
MAX_SCANS = 200  # of a JPEG: each of a few bytes costs time for all of its pixels, and encoders write about ten
SCAN = b"\xff\xda"  # how one begins
THUMB = 480, 360  # pixels at most of a figure on a page that leads to it: sharp at half the size on a dense screen
TILE = 1024  # pixels either way that are held with four channels at a time
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")  # told by what a file holds; of others some would run a program
READABLE = "PNG, JPEG, GIF, WebP and BMP are."


def grey_pixels(image: Any, n_rows: int, n_columns: int) -> Grey:
    """All of an image over a grid of patches, each of as many pixels: a file, or an image of Pillow.

    Raises InvalidSource for what is no image, TooLarge before the pixels of one that is too large are read.
    """
    side = max(1, min(PER_PATCH, MAX_SIDE // max(n_rows, n_columns)))
    size = n_columns * side, n_rows * side
    if isinstance(image, Image.Image):
        return _grey(image, size, "the image")
    if not isinstance(image, str | Path):
        raise InvalidSource(f"a {type(image).__name__} is not an image", hint="Give a file, or an image of Pillow.")
    data = read_bytes(Path(image), MAX_BYTES, InvalidSource)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes: they are checked here
            with Image.open(BytesIO(data), formats=FORMATS) as opened:
                if opened.format not in ("PNG", "GIF", "WEBP", "BMP") and data.count(SCAN) > MAX_SCANS:
                    raise TooLarge(f"{image} has more than {MAX_SCANS} scans", hint="Save it as a JPEG of one scan.")
                return _grey(opened, size, str(image))
    except UnidentifiedImageError as error:
        raise InvalidSource(f"{image} cannot be read as an image", hint=READABLE) from error
    except (TooLarge, MemoryError):
        raise
    except Exception as error:  # of a damaged file: the library lets everything through, from zlib's to struct's
        raise InvalidSource(f"{image} is a damaged image ({' '.join(str(error).split())})", hint=READABLE) from error


def _grey(image: Image.Image, size: tuple[int, int], name: str) -> Grey:
    width, height = image.size
    if width * height > MAX_PIXELS:
        found = f"{name} has {width:,} × {height:,} pixels"
        raise TooLarge(found, hint=f"At most {MAX_PIXELS / 1e6:.0f} million: make it smaller.")
    upright = ImageOps.exif_transpose(image)
    grey = Image.new("L", upright.size)
    for left, top in product(range(0, upright.width, TILE), range(0, upright.height, TILE)):
        right, bottom = min(left + TILE, upright.width), min(top + TILE, upright.height)
        tile = upright.crop((left, top, right, bottom)).convert("RGBA")
        paper = Image.new("RGBA", tile.size, "white")
        paper.alpha_composite(tile)
        grey.paste(paper.convert("L"), (left, top))
    return np.asarray(grey.resize(size, Image.Resampling.BOX))


def resize(pixels: Grey, height: int, width: int) -> Grey:
    """The same, of another size."""
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
