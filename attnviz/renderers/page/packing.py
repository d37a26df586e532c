"""The cells of a map as few bytes: exactly, or within stated bounds. Knows numpy and nothing of reports or pages.

Two codings. A browser undoes them with its own inflate and a few lines (page/cells.js):

    exact    float32, its four bytes in four planes, the most significant first: alike bytes lie together.
    ranges   every weight known to a factor of four, and those from `fine` upwards to 8 significant bits more.

Ranges are of powers of four because these are whole bits of a float32: of 2w, the upper byte is the sign, which is 0,
and all of the exponent but its last bit. No logarithm is taken, which is why it is quick.
"""

import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.shapes import Cells

ROOM = 820_000  # bytes for the cells of a page: as base64 and with all else, the page stays below 1.25 MB
EXACT_ROOM = 32_000  # bytes up to which every bit is kept: all heads of a packaged model over 20 tokens
MIN_BITS = 1.5  # of room for each cell of a larger page
EXACT_BITS = 28  # that a float32 takes when compressed, as measured
PACKED = 0.7  # of the entropy of the levels is what they take: a pair of keys is packed, and rows are alike
UNIT_LEVEL = 64  # the level of weight 1; each level below is a factor of four
N_LEVELS = 16  # that are told apart on one page
DOUBLE = np.uint16(0x0080)  # one more in the exponent of a float32, in its upper half
MANY = 1 << 20  # cells, beyond which levels are counted in some of the rows


@dataclass(frozen=True)
class Precision:
    """What is kept of weights, as powers of 1/4. None at all: everything."""

    floor: int  # below this power a weight is only known to be below
    fine: int  # from this power upwards 8 significant bits are kept


EXACT = None
LADDER = tuple(
    Precision(*rung) for rung in ((14, 14), (10, 10), (8, 8), (6, 6), (6, 4), (6, 3), (5, 3), (5, 2), (4, 1))
)


def precision_for(maps: Sequence[Cells], *, pooled: bool = False, room: int = ROOM) -> Precision | None:
    """Choose the best precision at which these weights, each 0 to 1, fit `room` bytes on a page; the same for all.

    Means of blocks, `pooled`, lie far below 1 and close together: of them there are fewer, and all are fine.
    """
    n_cells = sum(cells.size for cells in maps)
    if n_cells * EXACT_BITS <= EXACT_ROOM * 8:
        return EXACT
    if pooled:
        highest = np.array([[max(cells.max() for cells in maps)]], dtype=np.float32)
        lowest = N_LEVELS - 2 + UNIT_LEVEL - int(_codes(highest)[0, 0] >> 8)
        return Precision(lowest, lowest)
    step = 1 if n_cells <= MANY else 4
    counts = np.zeros(256, dtype=np.int64)  # of cells at each level, in every `step`-th row only
    for cells in maps:
        counts += np.bincount(_codes(cells[::step]).view(np.uint8)[:, 1::2].ravel(), minlength=256)
    shares, bits = counts / counts.sum(), max(room * 8, n_cells * MIN_BITS) / n_cells
    return next((each for each in LADDER if _count_bits(shares, each) <= bits), LADDER[-1])


def fits_ranges(cells: Cells) -> bool:
    """Check whether all are 0 to 1, up to what float32 sums leave: differences are not."""
    return bool(cells.min() >= 0 and cells.max() <= 1.001)  # written so that NaN fits nothing


def pack(cells: Cells, precision: Precision | None) -> tuple[bytes, bytes]:
    """Return what deflate makes shorter, and bits as good as random, of which it does not.

    Cells that `fits_ranges` does not take are to be kept exactly."""
    if precision is EXACT:
        # float32, every bit: signs, exponents and the first bits behind them, and the rest.
        planes = cells.astype("<f4").reshape(-1, 1).view(np.uint8)[:, ::-1].T
        return planes[:2].tobytes(), planes[2:].tobytes()
    # Levels, key by key, two queries to a byte; as they are, query by query, one byte for each cell that is fine.
    codes = _codes(cells)
    levels = codes.view(np.uint8)[:, 1::2]
    below = UNIT_LEVEL - 1 - precision.floor
    nibbles = np.maximum(levels, below) - np.uint8(below)
    if len(nibbles) % 2:
        nibbles = np.pad(nibbles, ((0, 1), (0, 0)))
    pairs = (nibbles[0::2] << 4 | nibbles[1::2]).T
    return pairs.tobytes(), codes[levels >= UNIT_LEVEL - precision.fine].astype(np.uint8).tobytes()


def write_parts(parts: Sequence[tuple[bytes, bytes]]) -> str:
    """Write what was packed of all maps as one: base64 of what is deflated, a space, base64 of what is not.

    To look for repetitions other than runs takes fifty times as long and saves a few percent of levels.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_RLE)
    deflated = packer.compress(b"".join(first for first, _ in parts)) + packer.flush()
    return " ".join(b64encode(each).decode("ascii") for each in (deflated, b"".join(rest for _, rest in parts)))


def _codes(cells: Cells) -> np.ndarray:
    """Return the upper half of each weight's float32, doubled: the level, then the 8 bits below it."""
    halves = np.ascontiguousarray(cells, dtype="<f4").view("<u2")
    return (halves[:, 1::2] + DOUBLE).astype("<u2", copy=False)


def _count_bits(shares: np.ndarray, precision: Precision) -> float:
    """Return about how many bits a cell takes, by the shares of cells at each level."""
    lowest = UNIT_LEVEL - precision.floor
    kept = np.append(shares[lowest:], shares[:lowest].sum())
    kept = kept[kept > 0]
    entropy = -float((kept * np.log2(kept)).sum())
    return PACKED * entropy + 8 * float(shares[UNIT_LEVEL - precision.fine :].sum())
