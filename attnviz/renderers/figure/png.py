"""Pixels as a PNG file. Knows neither matplotlib nor what a picture shows.

Pillow's writer, which matplotlib uses, tries all five filters on each row and cannot be told not to. One suffices here:
in maps most rows repeat the one above, as cells are many pixels high. And ISA-L packs such rows in a tenth of the time
that zlib takes (1.5 ms against 14 for a usual page, with a tenth more bytes), which would be most of a picture's.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping

import numpy as np
from isal import isal_zlib
from jaxtyping import UInt8

SIGNATURE = b"\x89PNG\r\n\x1a\n"
UP = 2  # the filter that keeps of each pixel its difference from the one above
LEVEL = 1  # of 0 to 3: the next saves nothing, the last takes as long as zlib
INCH = 0.0254  # metres


def png_of(pixels: UInt8[np.ndarray, "row column 3"], dpi: int, facts: Mapping[str, str]) -> bytes:
    """The file of pixels, at least one, with `facts` as its text: the same pixels and facts, the same bytes.

    That is for one version of ISA-L and one kind of processor: others may pack the same pixels differently.
    """
    n_rows, n_columns, _ = pixels.shape
    density = int(dpi / INCH + 0.5)  # as Pillow rounds
    chunks = (
        _chunk(b"IHDR", struct.pack(">IIBBBBB", n_columns, n_rows, 8, 2, 0, 0, 0)),  # 8 bits of each of 3 colours
        *_texts(facts),
        _chunk(b"pHYs", struct.pack(">IIB", density, density, 1)),
        _chunk(b"IDAT", isal_zlib.compress(_filtered(pixels).data, LEVEL)),
        _chunk(b"IEND", b""),
    )
    return b"".join((SIGNATURE, *chunks))


def _texts(facts: Mapping[str, str]) -> Iterator[bytes]:
    """As matplotlib has Pillow write them: only what Latin-1 lacks as the younger kind of chunk, in UTF-8."""
    for name, text in facts.items():
        keyword = name.encode("latin-1") + b"\0"
        try:
            yield _chunk(b"tEXt", keyword + text.encode("latin-1"))
        except UnicodeEncodeError:
            yield _chunk(b"iTXt", keyword + b"\0\0\0\0" + text.encode())  # not packed, in no language


def _filtered(pixels: UInt8[np.ndarray, "row column 3"]) -> UInt8[np.ndarray, "row byte"]:
    """Rows, each led by its filter."""
    colours = pixels.reshape(len(pixels), -1)
    rows = np.empty((len(colours), 1 + colours.shape[1]), dtype=np.uint8)
    rows[:, 0], rows[0, 1:] = UP, colours[0]
    np.subtract(colours[1:], colours[:-1], out=rows[1:, 1:])
    return rows


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(content, zlib.crc32(kind)))
