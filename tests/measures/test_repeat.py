"""Scores on repeated tokens, by hand: a head that does one thing scores 1 there."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.errors import InvalidOption
from attnviz.measures.shares import SCORES, score_repeats
from tests.made import record, tokens

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
    found = score_repeats(record(weights[None], tokens(*pieces, special=markers)))
    assert {name: scores.tolist() for name, scores in found.items()} == {
        name: [[float(name == own) for own in SCORES]] for name in SCORES
    }


def test_scores_are_the_means_of_diagonals_that_transformerlens_takes() -> None:
    """`pattern.diagonal(offset=1 - n).mean()` of 2 n tokens without markers has n + 1 cells."""
    weights = np.random.default_rng(0).dirichlet(np.ones(2 * N), (1, 2, 2 * N))
    found = score_repeats(record(weights, tokens(*WORDS, *WORDS)))
    for name, offset in zip(SCORES, (1 - N, -N, -1), strict=True):
        for place in range(2):
            assert found[name][0, place] == pytest.approx(np.diag(weights[0, place], offset).mean(), rel=1e-6)


def test_a_text_that_does_not_come_twice_is_refused() -> None:
    with pytest.raises(InvalidOption, match="does not repeat the first"):
        score_repeats(record(np.full((1, 1, 4, 4), 0.25), tokens(*WORDS)))
