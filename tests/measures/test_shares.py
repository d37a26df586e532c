"""Measures that are shares of attention, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.measures.patterns import is_punctuation
from attnviz.measures.shares import (
    to_first,
    to_next,
    to_previous,
    to_punctuation,
    to_same_word,
    to_self,
    to_special,
)
from attnviz.records import AttentionMaps, Tokens
from tests.made import HOSTILE, random_maps, record, tokens

ROWS = np.array([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.0, 0.25, 0.75]])


def one_head(
    rows: np.ndarray = ROWS, queries: Tokens | None = None, attendable: np.ndarray | None = None
) -> AttentionMaps:
    return record(rows[None, None], queries, attendable=attendable)


def test_positions_by_hand() -> None:
    maps = one_head()
    assert to_self(maps).values == pytest.approx((0.5 + 0.6 + 0.75) / 3)
    assert to_previous(maps).values == pytest.approx((0 + 0.1 + 0.25) / 3)
    assert to_next(maps).values == pytest.approx((0.2 + 0.3 + 0) / 3)
    assert to_first(maps).values == pytest.approx((0.5 + 0.1 + 0) / 3)


def test_the_first_token_is_the_first_that_is_not_padding() -> None:
    rows = np.array([[0, 1, 0], [0, 0.4, 0.6], [0, 0.2, 0.8]])
    attendable = np.array([[False, True, True]] * 3)
    assert to_first(one_head(rows, attendable=attendable)).values == pytest.approx((0.4 + 0.2) / 2)


def test_markers_by_hand() -> None:
    maps = one_head(queries=tokens("[CLS]", "a", "[SEP]", special=["[CLS]", "[SEP]"]))
    assert to_special(maps).values == pytest.approx((0.8 + 0.4 + 0.75) / 3)
    assert to_first(maps).values == pytest.approx(0.6 / 3)  # which may be a marker
    written = one_head(queries=tokens("[CLS]", "a", "[SEP]"))  # somebody wrote them into the text
    assert to_special(written).values == 0


def test_punctuation_by_hand() -> None:
    assert to_punctuation(one_head(queries=tokens("a", ".", "…!"))).values == pytest.approx((0.5 + 0.9 + 1) / 3)
    marker = one_head(queries=tokens("a", "|>", "b", special=["|>"]))
    assert to_punctuation(marker).values == 0


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((".", "...", "¿", "。", "—", "$", "+", "«", "👍", " ,", "`"), True),
        (("", " ", "a", "don't", "3", "3.5", "猫", "\n", "\u200b"), False),
    ],
)
def test_punctuation_and_symbols_of_any_script(pieces: tuple[str, ...], expected: bool) -> None:
    assert {piece: is_punctuation(piece) for piece in pieces} == dict.fromkeys(pieces, expected)


def test_the_same_word_by_hand() -> None:
    maps = one_head(queries=tokens("The", "cat", "the"))
    assert to_same_word(maps).values == pytest.approx((0.3 + 0 + 0.0) / 3)
    assert to_same_word(one_head(queries=tokens("Straße", "cat", " STRASSE"))).values == pytest.approx(0.1)
    for other in (tokens("a", "b", "c"), tokens("[SEP]", "a", "[SEP]", special=["[SEP]"])):  # a marker is no word
        assert to_same_word(one_head(queries=other)).values == 0
    assert to_same_word(one_head(queries=tokens("a", "a", "a"))).values == pytest.approx(1 - (0.5 + 0.6 + 0.75) / 3)


def test_strange_pieces_are_pieces() -> None:
    maps = random_maps([*HOSTILE, *HOSTILE], n_heads=1)
    n = len(HOSTILE)
    twin = [maps.weights[0, 0, query, (query + n) % (2 * n)] for query in range(2 * n)]
    assert to_same_word(maps).values.item() >= np.mean(twin) - 1e-6
    assert to_punctuation(maps).values.item() < 0.5
