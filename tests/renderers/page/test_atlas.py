"""The atlas as a page holds it: what is unpacked is what was packed, as exactly as it says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from attnviz.renderers.page.atlas_parts import round_atlas
from attnviz.renderers.page.document import content
from attnviz.report import FigureStyle
from tests.renderers.page.atlases import TEXT, WORDS, atlas, atlas_report, moment


def test_an_atlas_is_read_back() -> None:
    weights = tuple(np.geomspace(1e-6, 1.0, 500).tolist())
    heads = [head | {"moments": (moment("random", weights=weights),)} for head in atlas()["heads"]]
    found = json.loads(json.dumps(round_atlas(atlas() | {"heads": heads}), allow_nan=False))
    assert found["texts"][0] == {**TEXT, "positions": [*TEXT["positions"]], "tokens": [*WORDS]}
    assert found["heads"][4]["names"] == [["first token", "61 %"], ["induction on repeated tokens", "88 %"]]
    assert found["measures"][2]["values"][2] is None  # NaN
    assert found["heads"][0]["moments"][0]["weights"] == pytest.approx(weights, rel=0.0051, abs=6e-6)


def test_cells_that_are_written_as_they_are_stand_in_the_page_once() -> None:
    from dataclasses import replace

    whole = atlas_report()
    (table,) = whole.tables
    worded = replace(table, rows=tuple((*row[:2], f"{row[2]} ± 0.1") for row in table.rows))
    tables: Any = content(replace(whole, blocks=(worded,)), FigureStyle())[0]["tables"]
    assert tables[0]["shown"][1] == ["0", "1", None]
    assert tables[0]["rows"][1] == [0, 1, "0.5 ± 0.1"]
