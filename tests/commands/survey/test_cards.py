"""Cards of single heads: pictures of their moments and of attention by offset, for heads that are there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnviz.commands.survey.spec import MergeSpec
from attnviz.errors import InvalidOption
from attnviz.options import build
from attnviz.records import Tokens
from attnviz.report import Charts, HeatmapGrid
from attnviz.views.tokens import BYTE, read_piece
from tests.commands.survey.made import run
from tests.events import report, result
from tests.made import columns_by
from tests.starting import merge


def test_a_card_holds_the_moments_and_the_curve_of_its_head(tmp_path: Path) -> None:
    found = run(tmp_path / "out", split="train[:4]", head_card=("0.1",))
    whole = report(found)
    (text,) = (picture for picture in whole.pictures if isinstance(picture, HeatmapGrid))
    assert whole.atlas is not None
    head = whole.atlas["heads"][1]
    assert len(text.maps) == len(head["moments"]) == 10  # four texts give four strongest ones
    for shown, moment in zip(text.maps, head["moments"], strict=True):
        assert shown.values[0] == pytest.approx(moment["weights"])
        assert shown.equal_share == pytest.approx([1 / moment["n_keys"]])
        assert shown.rows[0].startswith(f"{moment['kind']}: {moment['query']} “")
    curve = next(picture for picture in whole.pictures if isinstance(picture, Charts) and "offsets" in picture.name)
    assert columns_by(curve.charts[0], "group", "y")["head 0.1"] == [tuple(head["curve"])]
    assert curve.charts[0].at is not None
    assert curve.charts[0].at[0] == int(np.argmax(head["curve"])) - 16
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"head-0-1.png", "head-0-1-offsets.png", "atlas.png", "distance.png"} <= names
    merged = build(MergeSpec, parts=(str(tmp_path / "out"),), out=str(tmp_path / "again"), head_card=("0.0",))
    result(merge(merged))
    assert (tmp_path / "again" / "head-0-0.png").is_file()


@pytest.mark.parametrize("written", ["0.2", "2.0", "x", "0.0,1", "-1.0"])
def test_a_head_that_is_not_there_is_refused_before_the_first_text(written: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"is not a head of multi:2\. Write LAYER\.HEAD"):
        run(tmp_path / "out", head_card=(written,))
    assert not list((tmp_path / "out").glob("*.safetensors"))


def test_tokens_that_are_bytes_of_one_character_are_shown_once() -> None:
    offsets = ((0, 0), (0, 1), (0, 1), (1, 5), (5, 6), (7, 8))
    tokens = Tokens(("[CLS]", "猫", "猫", " cat", "s", "."), offsets, (True, *[False] * 5))
    assert [read_piece(tokens, position) for position in range(6)] == [" [CLS]", "猫", BYTE, " cat", "s", " ."]
