"""The atlas as a page holds it: what is unpacked is what was packed, as exactly as it says."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from typing import Any

import numpy as np
import pytest

from attnviz.renderers.page.atlas_parts import LOWEST, STEPS, encode_weights, pack_atlas
from attnviz.renderers.page.document import content
from attnviz.report import FigureStyle
from tests.renderers.page.atlases import WORDS, atlas, atlas_report, moment


def unpack() -> tuple[Any, bytes]:
    written, _, codes = zlib.decompress(b64decode(pack_atlas(atlas()))).partition(b"\n")
    return json.loads(written), codes


def test_weights_are_within_what_the_page_says() -> None:
    weights = np.geomspace(1 / 16 / 100, 1.0, 500)
    codes = np.frombuffer(encode_weights(moment("random", weights=tuple(weights))), np.uint8)
    n_keys = moment("random")["n_keys"]
    multiples = weights * n_keys
    held = multiples >= 2.0**LOWEST
    read = 2.0 ** ((codes[held] - 1.0) / STEPS + LOWEST)
    assert held.sum() > 100
    assert np.abs(read / multiples[held] - 1).max() < 0.022
    assert (codes[multiples < 2.0 ** (LOWEST - 1 / STEPS)] == 0).all()
    assert encode_weights(moment("random", weights=(0.0,))) == b"\0"


def test_an_atlas_is_read_back() -> None:
    found, codes = unpack()
    (title, options, runs, pieces) = found["texts"][0]
    assert (title, options, runs) == ("sample train[7]", "--dataset sample --index 7", [0, 4, 10, 6])
    assert tuple(found["pieces"][piece] for piece in pieces) == WORDS
    assert found["heads"][4]["names"] == [["first token", "0.61"], ["induction on repeated tokens", "0.88"]]
    assert found["measures"][2]["values"][2] is None  # NaN
    assert found["heads"][0]["moments"][0] == ["s", 0, 14, [1, 2, 13, 2], 15, 0.07, 1.4]
    assert len(codes) == 6 * 12 * 4


def test_a_page_of_an_atlas_leaves_out_what_it_shows() -> None:
    found = content(atlas_report(), FigureStyle()).document
    tables: Any = found["tables"]
    assert [table["title"] for table in tables] == ["Each head"]
    assert tables[0]["shown"][1] == ["0", "1", "0.500"]


def test_cells_that_are_written_as_they_are_stand_in_the_page_once() -> None:
    from dataclasses import replace

    whole = atlas_report()
    (table, _) = whole.tables
    worded = replace(table, rows=tuple((*row[:2], f"{row[2]} ± 0.1") for row in table.rows))
    tables: Any = content(replace(whole, blocks=(worded,)), FigureStyle()).document["tables"]
    assert tables[0]["shown"][1] == ["0", "1", None]
    assert tables[0]["rows"][1] == [0, 1, "0.5 ± 0.1"]


@pytest.mark.parametrize("letter", ["P", "F", "I"])
def test_letters_are_those_of_patterns(letter: str) -> None:
    found, _ = unpack()
    assert letter in found["letters"].values()
