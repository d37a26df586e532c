"""The cells of a page: exact, or within the bounds that it states, as they are written and as the page reads them."""

import json
import shutil
import subprocess
import zlib
from base64 import b64decode, b64encode
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from attnviz.renderers.page.html import IMPORT
from attnviz.renderers.page.packing import (
    EXACT,
    LADDER,
    MIN_BITS,
    ROOM,
    Precision,
    fits_ranges,
    pack,
    precision_for,
    write_parts,
)

SOME = Precision(floor=5, fine=3)
WEIGHTS = stn.arrays(np.float32, (5, 3), elements=st.floats(0, 1, width=32))
NUMBERS = stn.arrays(np.float32, (3, 4), elements=st.floats(width=32, allow_nan=False))


def from_page(block: str, lengths: list[list[int]]) -> list[tuple[bytes, ...]]:
    """What was packed of each map, from the block of a page."""
    deflated, rest = map(b64decode, block.split(" "))
    halves = [BytesIO(zlib.decompress(deflated)), BytesIO(rest)]
    return [tuple(half.read(n) for half, n in zip(halves, each, strict=True)) for each in lengths]


def unpacked_exact(data: tuple[bytes, ...], shape: tuple[int, int]) -> np.ndarray:
    """What the page does, another way: big-endian numbers whose bytes lie apart."""
    planes = np.frombuffer(data[0] + data[1], dtype=np.uint8).reshape(4, -1)
    return np.frombuffer(planes.T.tobytes(), dtype=">f4").reshape(shape)


def intervals(data: tuple[bytes, ...], shape: tuple[int, int], precision: Precision) -> tuple[np.ndarray, np.ndarray]:
    """What is known of each cell: at least, and below. By arithmetic on numbers, where the page works on bits."""
    n_rows, n_columns = shape
    height = -(-n_rows // 2)
    pairs = np.frombuffer(data[0], dtype=np.uint8).reshape(n_columns, height)
    nibbles = np.stack([pairs >> 4, pairs & 15], axis=-1).reshape(n_columns, -1)[:, :n_rows].T.astype(int)
    low = np.where(nibbles == 0, 0.0, 4.0 ** (nibbles - 1 - precision.floor))
    high = 4.0 ** (nibbles - precision.floor)
    fine = nibbles > precision.floor - precision.fine
    steps = np.frombuffer(data[1], dtype=np.uint8).astype(int)
    assert len(steps) == fine.sum()
    octave, within = np.divmod(steps, 128)  # a factor of four is two octaves of 128 steps each
    low[fine] = low[fine] * 2.0**octave * (1 + within / 128)
    high[fine] = low[fine] + 4.0 ** (nibbles[fine] - 1 - precision.floor) * 2.0**octave / 128
    return low, high


@given(NUMBERS)
def test_exact_is_every_bit(cells: np.ndarray) -> None:
    assert unpacked_exact(pack(cells, EXACT), cells.shape).tobytes() == cells.astype(">f4").tobytes()


@given(WEIGHTS, st.sampled_from(LADDER))
def test_every_weight_lies_in_a_range_as_narrow_as_the_page_says(cells: np.ndarray, precision: Precision) -> None:
    low, high = intervals(pack(cells, precision), cells.shape, precision)
    assert (low <= cells).all()
    assert (cells < high).all()
    fine = cells >= 4.0**-precision.fine
    middle = (low + np.minimum(high, 1.0)) / 2
    assert (np.abs(middle - cells)[fine] <= 0.004 * cells[fine]).all()  # 0.5 % with the rounding of what is shown
    coarse = ~fine & (cells >= 4.0**-precision.floor)
    assert np.allclose(high[coarse], 4 * low[coarse])
    assert (high[cells < 4.0**-precision.floor] == 4.0**-precision.floor).all()


def test_sums_of_float32_may_be_a_little_more_than_one() -> None:
    cells = np.array([[1 + 1e-6]], dtype=np.float32)
    assert fits_ranges(cells)
    low, _ = intervals(pack(cells, SOME), (1, 1), SOME)
    assert low[0, 0] == 1


@pytest.mark.parametrize("value", [-1e-6, 1.1, np.nan, np.inf])
def test_what_is_no_weight_has_no_range(value: float) -> None:
    assert not fits_ranges(np.array([[0.5, value]], dtype=np.float32))


def test_small_pages_are_exact() -> None:
    assert precision_for([np.full((8, 8), 1 / 8, dtype=np.float32)]) is EXACT
    assert precision_for([]) is EXACT


@pytest.mark.parametrize("sharpness", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("n_maps", [8, 24])
def test_what_is_kept_finds_room(n_maps: int, sharpness: float) -> None:
    scores = sharpness * np.random.default_rng(0).normal(size=(n_maps, 256, 256)).astype(np.float32)
    maps = list(np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True))
    precision: Any = precision_for(maps)
    taken = 0.75 * len(write_parts([pack(each, precision) for each in maps]))
    assert taken <= 1.25 * max(ROOM, n_maps * 256 * 256 * MIN_BITS / 8)  # noise is harder to pack than attention


def test_sharper_maps_are_kept_better() -> None:
    scores = np.random.default_rng(0).normal(size=(24, 256, 256)).astype(np.float32)
    blunt, sharp = ([np.exp(s * x) / np.exp(s * x).sum(-1, keepdims=True) for x in scores] for s in (0.5, 8.0))
    rank: Any = LADDER.index
    assert rank(precision_for(sharp)) < rank(precision_for(blunt))


# --- How the page reads its cells, in node: each number of it, where the tests in a browser look at a few ---


SHAPE = (7, 5)  # odd, so that the last pair of queries is half empty
DRIVER = """
const given = JSON.parse(process.argv[1]);
const stored = unpackedRanges(...given.parts.map(bytesOf), ...given.shape, given.precision);
console.log(JSON.stringify([...stored].map((code) => intervalOf(code, given.precision))));
"""


def read(cells: np.ndarray, precision: Precision) -> list[list[float]]:
    """What the page's own module knows of packed cells: at least, and at most."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node")
    module = files("attnviz.renderers.page").joinpath("cells.js").read_text(encoding="utf-8")
    given = {
        "parts": [b64encode(part).decode("ascii") for part in pack(cells, precision)],
        "shape": cells.shape,
        "precision": {"floor": precision.floor, "fine": precision.fine},
    }
    script = [node, "--input-type=module", "--eval", IMPORT.sub("", module) + DRIVER, json.dumps(given)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=True)
    found: list[list[float]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("precision", LADDER)
def test_ranges_are_read_as_they_were_written(precision: Precision) -> None:
    """Weights from 1 down to nothing, of all sizes."""
    weights = 10.0 ** -np.random.default_rng(0).uniform(0, 9, size=SHAPE).astype(np.float32)
    weights[0, :3] = [1, 0, 0.25]
    low, high = intervals(pack(weights, precision), SHAPE, precision)
    known = np.array(read(weights, precision))
    assert (known[:, 0] == low.ravel()).all()
    assert (known[:, 1] == np.minimum(high, 1).ravel()).all()
