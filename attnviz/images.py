"""Images as a user has them, within bounds: by their content, upright, on white. Knows Pillow and no models.

Of a file its form is told by what it holds, among a few that no program has to be run for. How many pixels it has is
read before any of them is. Nothing of a file but its pixels and which side is up goes any further.
"""

from __future__ import annotations

import hashlib
import warnings
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.bounded import read_bytes
from attnviz.display import escape_for_display
from attnviz.errors import InvalidSource, TooLarge
from attnviz.shapes import Grey

if TYPE_CHECKING:  # it is imported where an image is opened
    from PIL import Image

MAX_PIXELS = 16_000_000
MAX_BYTES = 100_000_000
MAX_SIDE = 256  # pixels that are kept: enough to see what is where, 64 KiB at most
PER_PATCH = 16  # pixels of a patch, unless that is too many
MAX_SCANS = 200  # of a JPEG: each of a few bytes costs time for all of its pixels, and encoders write about ten
SCAN = b"\xff\xda"  # how one begins
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")  # told by what a file holds; of others some would run a program
READABLE = "PNG, JPEG, GIF, WebP and BMP are."


class Photo(str):
    """An image that a model reads in the place of a text: as a text it is its name in quotes, and what is asked."""

    image: Image.Image
    sha256: str  # of the file and the question
    question: str

    @classmethod
    def open(cls, path: Path, question: str = "") -> Photo:
        """Open a file. Raises as `open_image`."""
        asked = f": {escape_for_display(question, 60)}" if question else ""
        photo = cls(f"“{escape_for_display(path.name, 40)}”{asked}")
        photo.image, photo.question = open_image(path), question
        photo.sha256 = hashlib.sha256(path.read_bytes() + question.encode("utf-8", "replace")).hexdigest()
        return photo


def open_image(image: Any) -> Image.Image:
    """Open a file, or take an image of Pillow, as RGB: upright, and on white where it can be seen through.

    Raises InvalidSource for what is no image, TooLarge before the pixels of one that is too large are read.
    """
    from PIL import Image, UnidentifiedImageError

    if isinstance(image, Image.Image):
        return _flatten(image, "the image")
    if not isinstance(image, str | Path):
        raise InvalidSource(f"image is {type(image).__name__}", hint="Give a file, or an image of Pillow.")
    data = read_bytes(Path(image), MAX_BYTES, InvalidSource)
    try:
        # The warnings are of sizes: they are checked here.
        with warnings.catch_warnings(action="ignore"), Image.open(BytesIO(data), formats=FORMATS) as opened:
            if opened.format not in ("PNG", "GIF", "WEBP", "BMP") and data.count(SCAN) > MAX_SCANS:
                raise TooLarge(f"{image} has more than {MAX_SCANS} scans", hint="Save it as a JPEG of one scan.")
            return _flatten(opened, str(image))
    except UnidentifiedImageError as error:
        raise InvalidSource(f"{image} cannot be read as an image", hint=READABLE) from error
    except (TooLarge, MemoryError):
        raise
    except Exception as error:  # of a damaged file: the library lets everything through, from zlib's to struct's
        raise InvalidSource(f"{image} is a damaged image ({' '.join(str(error).split())})", hint=READABLE) from error


def _flatten(image: Image.Image, name: str) -> Image.Image:
    from PIL import Image, ImageOps

    width, height = image.size
    if width * height > MAX_PIXELS:
        found = f"{name} has {width:,} × {height:,} pixels"
        raise TooLarge(found, hint=f"At most {MAX_PIXELS / 1e6:.0f} million: make it smaller.")
    upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I"):  # 16 bits of grey, of which Pillow would cut off what is above the lower 8
        upright = Image.fromarray((np.asarray(upright) >> 8).astype(np.uint8))
    paper = Image.new("RGBA", upright.size, "white")
    paper.alpha_composite(upright.convert("RGBA"))
    return paper.convert("RGB")


def grey_pixels(image: Any, n_rows: int, n_columns: int) -> Grey:
    """Resample all of an image over a grid of patches, each of as many pixels. Raises as `open_image`."""
    side = max(1, min(PER_PATCH, MAX_SIDE // max(n_rows, n_columns)))
    flat = open_image(image).convert("L")
    return np.asarray(flat.resize((n_columns * side, n_rows * side), resample=4))  # 4: the mean of each box
