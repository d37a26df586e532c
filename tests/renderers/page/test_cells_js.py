"""How the page reads its cells, in node: each number of it, where the tests in a browser look at a few."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64encode
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from attnviz.renderers.page.bundle import IMPORT
from attnviz.renderers.page.packing import EXACT, LADDER, Precision, pack
from tests.renderers.page.test_cells import intervals

SHAPE = (7, 5)  # odd, so that the last pair of queries is half empty
DRIVER = """
const given = JSON.parse(process.argv[1]);
const write = (name, { low, high }) => (name === "ui.below" ? `below ${high}` : `${low} to ${high}`);
const parts = given.parts.map(bytesOf);
const [nRows, nColumns] = given.shape;
const stored = given.precision
  ? unpackedRanges(...parts, nRows, nColumns, given.precision)
  : unpackedExact(...parts, nRows * nColumns);
const cells = new Cells(nRows, nColumns, null, stored, given.precision);
const places = Array.from({ length: nRows * nColumns }, (_, at) => [Math.floor(at / nColumns), at % nColumns]);
console.log(JSON.stringify({
  at: places.map((place) => cells.at(...place)),
  said: places.map((place) => cells.said(...place)),
  known: given.precision && [...stored].map((code) => intervalOf(code, given.precision)),
  best: cells.best(4),
  strongest: cells.strongestOf(1, null, 2),
}));
"""


def read(cells: np.ndarray, precision: Precision | None) -> dict[str, Any]:
    """What the page's own module makes of packed cells."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node")
    module = files("attnviz.renderers.page").joinpath("cells.js").read_text(encoding="utf-8")
    kept = None if precision is None else {"floor": precision.floor, "fine": precision.fine}
    given = {
        "parts": [b64encode(part).decode("ascii") for part in pack(cells, precision)],
        "shape": cells.shape,
        "precision": kept,
    }
    script = [node, "--input-type=module", "--eval", IMPORT.sub("", module) + DRIVER, json.dumps(given)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def some_weights(seed: int = 0) -> np.ndarray:
    """From 1 down to nothing, by all sizes."""
    weights = 10.0 ** -np.random.default_rng(seed).uniform(0, 9, size=SHAPE)
    weights[0, :3] = [1, 0, 0.25]
    return weights.astype(np.float32)


def test_exact_weights_are_said_with_the_digits_that_give_them_again() -> None:
    weights = some_weights()
    found = read(weights, EXACT)
    assert np.float32(found["at"]).reshape(SHAPE).tobytes() == weights.tobytes()
    assert [np.float32(said) for said in found["said"]] == list(weights.ravel())
    assert max(map(len, found["said"])) <= len("0.00012345678") + 4


def test_differences_keep_their_sign() -> None:
    differences = some_weights() - some_weights(1)
    assert (np.float32(read(differences, EXACT)["at"]).reshape(SHAPE) == differences).all()


@pytest.mark.parametrize("precision", LADDER)
def test_ranges_are_read_as_they_were_written(precision: Precision) -> None:
    weights = some_weights()
    low, high = intervals(pack(weights, precision), SHAPE, precision)
    found = read(weights, precision)
    known = np.array(found["known"])
    assert (known[:, 0] == low.ravel()).all()
    assert (known[:, 1] == np.minimum(high, 1).ravel()).all()


def test_strongest_first_and_of_equal_ones_the_earlier() -> None:
    weights = np.full((3, 4), 0.05, dtype=np.float32)
    weights[2, 1], weights[0, 3], weights[1, 0], weights[1, 2] = 0.5, 0.5, 0.2, 0.4
    found = read(weights, EXACT)
    assert found["best"] == [[0, 3], [2, 1], [1, 2], [1, 0]]
    assert found["strongest"] == [[1, 2], [1, 0]]
