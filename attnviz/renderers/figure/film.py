"""Pictures one after another as a GIF."""

from collections.abc import Sequence
from io import BytesIO

from PIL import Image

MILLISECONDS = 200  # a frame


def join_frames(pictures: Sequence[bytes]) -> bytes:
    """Join PNGs of one size to a GIF that repeats."""
    first, *others = (Image.open(BytesIO(picture)).convert("RGB") for picture in pictures)
    sink = BytesIO()
    first.save(sink, "GIF", save_all=True, append_images=others, duration=MILLISECONDS, loop=0)
    return sink.getvalue()
