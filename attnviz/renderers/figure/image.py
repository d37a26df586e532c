"""Images on figures and pages: what lies under patches, and figures made small."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from attnviz.shapes import Grey

THUMB = 480, 360  # pixels at most of a figure on a page that leads to it: sharp at half the size on a dense screen


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
