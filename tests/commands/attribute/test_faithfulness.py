"""What deleting first tokens costs, and rank correlation, beside other ways to work them out."""

from collections.abc import Callable, Sequence
from itertools import combinations
from statistics import mean

import numpy as np
import pytest

from attnviz.commands.attribute.faithfulness import FRACTIONS, describe_short, first_tokens, kendall

Answer = Callable[[Sequence[int]], float]


def ferret(answer: Answer, scores: np.ndarray, keep: bool) -> float:
    """AOPC as ferret-xai 0.4.2 computes it: evaluators/faithfulness_measures.py, with perc thresholds, only_pos=False.

    The package itself asks for numpy 1 and transformers 4, which are not installed beside ours.
    """
    ids, baseline, last, found = np.arange(len(scores)), answer(list(range(len(scores)))), None, []
    for share in FRACTIONS:
        count = int(share * len(scores))
        if not 0 < count <= len(scores):
            continue
        top = np.array(scores).argsort()[-count:][::-1]
        if last == set(top.tolist()):
            continue
        last = set(top.tolist())
        left = ids[np.sort(top)] if keep else np.delete(ids, top)
        found.append(baseline - answer(left.tolist()))
    return mean(found)


@pytest.mark.parametrize("n_tokens", [2, 5, 7, 13, 19, 40, 131])
def test_losses_are_those_of_ferret(n_tokens: int) -> None:
    generator = np.random.default_rng(n_tokens)
    weights, scores = generator.normal(size=n_tokens), generator.normal(size=n_tokens)

    def answer(tokens: Sequence[int]) -> float:
        return float(1 / (1 + np.exp(-weights[list(tokens)].sum())))

    first = first_tokens(scores, np.ones(n_tokens, dtype=bool))
    whole = answer(range(n_tokens))
    for keep in (False, True):
        lost = [whole - answer(np.flatnonzero(chosen == keep).tolist()) for chosen in first]
        assert np.mean(lost) == pytest.approx(ferret(answer, scores, keep=keep), abs=1e-9)


def test_markers_are_never_chosen_and_of_equals_the_earliest_is() -> None:
    removable = np.array([False, *(True,) * 10, False])
    chosen = first_tokens(np.array([9.0, *(1.0,) * 10, 9.0]), removable)
    assert [np.flatnonzero(each).tolist() for each in chosen] == [[1], [1, 2], [1, 2, 3, 4, 5]]


def pairs(one: np.ndarray, other: np.ndarray) -> float:
    """τ-b by counting pairs."""
    signs = [(np.sign(one[i] - one[j]), np.sign(other[i] - other[j])) for i, j in combinations(range(len(one)), 2)]
    apart = [sum(1 for sides in signs if sides[side]) for side in (0, 1)]
    return float(sum(a * b for a, b in signs) / np.sqrt(apart[0] * apart[1]))


def test_tau_counts_pairs() -> None:
    generator = np.random.default_rng(0)
    for _ in range(5):
        one, other = generator.integers(6, size=(2, 20)).astype(np.float64)
        assert kendall(one, other) == pytest.approx(pairs(one, other), abs=1e-12)
    assert kendall(one, one) == pytest.approx(1)
    assert kendall(np.arange(4.0), -np.arange(4.0)) == -1
    assert np.isnan(kendall(np.ones(4), np.arange(4.0)))


def test_steps_that_short_texts_do_not_have_are_said() -> None:
    assert list(describe_short([40, 19, 9])) == [
        "the step of 5% is left out of 2 of 3 texts, of fewer than 20 tokens",
        "the step of 10% is left out of 1 of 3 texts, of fewer than 10 tokens",
    ]
    assert not list(describe_short([20]))
