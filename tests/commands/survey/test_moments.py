"""Moments of heads, held against plain loops over all rows of all texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnviz.commands.survey import plan as survey_plan
from attnviz.commands.survey import texts as survey_texts
from attnviz.commands.survey.file import NAME, load_survey, survey_bytes
from attnviz.commands.survey.moments import N_MOMENTS, NO_TOKEN, mix_hashes
from attnviz.commands.survey.spec import SurveySpec
from attnviz.errors import InvalidRecord
from attnviz.measures.excerpts import choose_shown
from attnviz.models.loading import find_model
from attnviz.options import build
from attnviz.records import AttentionMaps
from attnviz.specs import ModelOptions, TextOptions
from attnviz.text import load_corpus
from tests.events import result
from tests.starting import survey

FAST: dict[str, Any] = {"dataset": "sample", "split": "train[:12]", "null": ("none",), "model": "multi:2"}
Row = tuple[float, int, int, np.ndarray]  # rank, text, query and weights


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (survey_plan, survey_texts):
        monkeypatch.setattr(module, "BLOCK", 2)


@pytest.fixture(scope="module")
def read() -> tuple[tuple[str, ...], list[AttentionMaps]]:
    """The texts, and what the model does with each."""
    texts = load_corpus(TextOptions(dataset="sample", split="train[:12]")).texts
    model = find_model(ModelOptions(model="multi:2", max_tokens=512, keep="head-tail")).open(())
    return texts, [model.attention(text) for text in texts]


def find_strongest(maps: list[AttentionMaps], head: int) -> list[Row]:
    """Of each text the row that aims most at one key, which is not the first token nor a marker; the strongest six."""
    found = []
    for text, each in enumerate(maps):
        rests = [position == 0 or special for position, special in enumerate(each.keys.special)]
        rows: list[Row] = []
        for query, row in enumerate(each.weights[0, head].astype(np.float64)):
            row /= row.sum()
            peak = row.max()
            aims = peak * np.log2(peak * len(row)) if not rests[int(row.argmax())] else -peak
            rows.append((float(aims), text, query, row))
        found.append(max(rows, key=lambda one: one[0]))
    return sorted(found, key=lambda one: -one[0])[:N_MOMENTS]


def find_random(texts: tuple[str, ...], maps: list[AttentionMaps], head: int) -> list[Row]:
    """The six of the smallest hashes among all rows of all texts, but for those of first tokens."""
    found: list[Row] = []
    for text, each in enumerate(maps):
        hashes = mix_hashes(survey_texts.text_hash(text, texts[text]), np.arange(len(each.keys)))
        rows = each.weights[0, head].astype(np.float64)
        found += [(-int(hashes[query]) / 2.0**64, text, query, rows[query]) for query in range(1, len(rows))]
    return sorted(found, key=lambda one: -one[0])[:N_MOMENTS]


def test_moments_are_those_of_a_plain_loop(tmp_path: Path, read: tuple[tuple[str, ...], list[AttentionMaps]]) -> None:
    result(survey(build(SurveySpec, out=str(tmp_path), **FAST)))
    found = load_survey(tmp_path / NAME)
    moments, (texts, maps) = found.moments, read
    for head in range(2):
        for kind, expected in enumerate((find_strongest(maps, head), find_random(texts, maps, head))):
            assert moments.ranks[kind, :, head] == pytest.approx([row[0] for row in expected], rel=1e-5)
            assert moments.texts[kind, :, head].tolist() == [row[1] for row in expected]
            assert moments.queries[kind, :, head].tolist() == [row[2] for row in expected]
            for rank, (_, text, query, row) in enumerate(expected):
                at, excerpt = (kind, rank, head), found.excerpts[text]
                shown = moments.positions[at][moments.positions[at] != NO_TOKEN]
                assert query in shown
                assert moments.weights[at][: len(shown)] == pytest.approx(row[shown] / row.sum(), rel=1e-5)
                assert moments.to_first[at] == pytest.approx(row[0] / row.sum(), rel=1e-5)
                assert moments.n_keys[at] == len(row)
                entropy = -sum(weight * np.log(weight) for weight in row if weight)
                assert moments.effective_keys[at] == pytest.approx(np.exp(entropy), rel=1e-4)
                pieces = dict(zip(excerpt.positions, excerpt.pieces, strict=True))
                assert [pieces[position].strip() for position in shown.tolist()] == [
                    maps[text].keys.pieces[position].strip() for position in shown.tolist()
                ]
    assert len(set(moments.texts[0, :, 0].tolist())) == N_MOMENTS  # no text twice
    assert (moments.queries[1] == moments.queries[1, :, :1]).all()  # the same ones for all heads


def test_the_key_that_a_row_looks_at_is_shown_however_far_away() -> None:
    assert choose_shown(40, 5, 60) == [*range(2, 9), *range(24, 45)]
    assert choose_shown(1, 3, 5) == [0, 1, 2, 3, 4]


def test_without_texts_the_file_holds_no_word(tmp_path: Path) -> None:
    result(survey(build(SurveySpec, out=str(tmp_path), no_text=True, **FAST)))
    found, data = load_survey(tmp_path / NAME), (tmp_path / NAME).read_bytes()
    texts = load_corpus(TextOptions(dataset="sample", split="train[:12]")).texts
    words = {word for text in texts for word in text.split() if word.isalpha() and len(word) > 4}
    said = {"layer", "order", "words", "train", "counts"}  # what a survey says by itself
    assert len(words) > 50
    assert not [word for word in words - said if word.encode() in data]
    assert {excerpt.name for excerpt in found.excerpts.values()} <= {f"sample train[{n}]" for n in range(12)}
    assert (found.moments.weights > 0).any()


def test_moments_of_other_texts_are_refused(tmp_path: Path) -> None:
    result(survey(build(SurveySpec, out=str(tmp_path), **FAST)))
    found = load_survey(tmp_path / NAME)
    for field, wrong in (("texts", 99), ("positions", 9999), ("n_keys", 0), ("to_first", 2.0)):
        array = getattr(found.moments, field)
        before = array.copy()
        writable = array.copy()
        writable.flat[0] = wrong
        object.__setattr__(found.moments, field, writable)
        (tmp_path / NAME).write_bytes(survey_bytes(found))
        with pytest.raises(InvalidRecord, match="is not a survey"):
            load_survey(tmp_path / NAME)
        object.__setattr__(found.moments, field, before)
