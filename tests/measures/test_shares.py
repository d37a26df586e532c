"""Measures that are shares of attention, and the scores of a text that comes twice, by hand."""

import numpy as np
import pytest

from attnviz.errors import InvalidOption
from attnviz.measures.patterns import is_punctuation
from attnviz.measures.shares import (
    SCORES,
    STEPS,
    score_repeats,
    sum_by_step,
    to_first,
    to_next,
    to_previous,
    to_punctuation,
    to_same_word,
    to_self,
    to_special,
)
from attnviz.records import AttentionMaps, Tokens
from tests.made import record, tokens

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
    assert to_punctuation(one_head(queries=tokens("a", "|>", "b", special=["|>"]))).values == 0


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


# --- Scores on repeated tokens, by hand: a head that does one thing scores 1 there ---


WORDS = ("the", "film", "was", "fine")
N = len(WORDS)


def head(offset: int, n: int) -> np.ndarray:
    """Each query attends to the key so far behind it, and to itself where none is."""
    places = np.arange(n)
    keys = np.where((places + offset >= 0) & (places + offset < n), places + offset, places)
    return np.eye(n)[keys]


@pytest.mark.parametrize("markers", [(), ("[CLS]", "[SEP]")])
def test_a_head_that_is_made_by_hand_scores_1_in_its_own_score_and_0_in_the_others(markers: tuple[str, ...]) -> None:
    pieces = (*markers[:1], *WORDS, *WORDS, *markers[1:])
    weights = np.stack([head(offset, len(pieces)) for offset in (1 - N, -N, -1)])
    found, wrong = score_repeats(record(weights[None], tokens(*pieces, special=markers)))
    assert {name: scores.tolist() for name, scores in found.items()} == {
        name: [[float(name == own) for own in SCORES]] for name in SCORES
    }
    assert wrong.max() == 0.0


def test_scores_are_the_means_of_diagonals_that_transformerlens_takes() -> None:
    """`pattern.diagonal(offset=1 - n).mean()` of 2 n tokens without markers has n + 1 cells."""
    weights = np.random.default_rng(0).dirichlet(np.ones(2 * N), (1, 2, 2 * N))
    found, wrong = score_repeats(record(weights, tokens(*WORDS, *WORDS)))
    assert len(wrong) == 2 * N - 4  # all lags but itself, the one before and those of the two kinds of repeats
    for scores, offset in zip(
        (*(found[name] for name in SCORES), *wrong), (1 - N, -N, -1, -2, -5, -6, -7), strict=True
    ):
        for place in range(2):
            assert scores[0, place] == pytest.approx(np.diag(weights[0, place], offset).mean(), rel=1e-6)


def test_a_text_that_does_not_come_twice_is_refused() -> None:
    with pytest.raises(InvalidOption, match="does not repeat the first"):
        score_repeats(record(np.full((1, 1, 4, 4), 0.25), tokens(*WORDS)))


def test_words_of_a_list_are_held_by_how_many_places_one_comes_after_the_other() -> None:
    """Of one list at a time, and only keys that stand before the query."""
    weights = np.random.default_rng(0).dirichlet(np.ones(6), (1, 2, 6))
    sums, counts = sum_by_step(record(weights, tokens("Words", " Tuesday", " two", " monday", " Wednesday", " Friday")))
    found = {step: (of.tolist(), n) for step, of, n in zip(STEPS, sums[:, 0], counts.tolist(), strict=True) if n}
    pairs = {-1: [(3, 1)], 1: [(4, 1)], 2: [(4, 3), (5, 4)], 3: [(5, 1)], 4: [(5, 3)]}
    assert found == {
        step: (
            [pytest.approx(sum(weights[0, head, *cell] for cell in cells), rel=1e-6) for head in range(2)],
            len(cells),
        )
        for step, cells in pairs.items()
    }
