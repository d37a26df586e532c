"""Which heads are worth a look, and which rows and tokens are shown of one."""

from itertools import product

import numpy as np
import pytest

from attnviz.measures.notable import choose_notable, choose_shown, find_strongest, read_moved_rows, read_row
from attnviz.records import AttentionMaps
from tests.made import cross_maps, provenance, random_maps, record, tokens

RESTS = np.array([True, False, False, False])


def test_the_strongest_row_gives_one_key_the_most_bits_beyond_an_equal_share() -> None:
    """w log₂(w n): of .5 among 4 keys .5 bits, of .7 among 4 keys 1.04."""
    rows = [[0.25, 0.25, 0.25, 0.25], [0.1, 0.5, 0.2, 0.2], [0.1, 0.1, 0.1, 0.7], [0.97, 0.01, 0.01, 0.01]]
    maps = record(np.array([[rows]]), tokens("the", "film", "was", "good"))
    strengths, queries = find_strongest(maps, 0, RESTS)
    assert queries.tolist() == [2]
    assert strengths == pytest.approx([0.7 * np.log2(0.7 * 4)], abs=1e-6)


def test_rows_that_rest_are_weaker_than_any_other_the_least_resting_first() -> None:
    resting = [[0.97, 0.01, 0.01, 0.01], [0.6, 0.2, 0.1, 0.1], [0.9, 0.05, 0.05, 0.0], [0.97, 0.01, 0.01, 0.01]]
    spread = [[0.97, 0.01, 0.01, 0.01]] * 3 + [[0.24, 0.26, 0.25, 0.25]]
    maps = record(np.array([[resting, spread]]), tokens("the", "film", "was", "good"))
    strengths, queries = find_strongest(maps, 0, RESTS)
    assert queries.tolist() == [1, 3]
    assert strengths == pytest.approx([-0.6, 0.26 * np.log2(0.26 * 4)], abs=1e-6)


def test_a_row_is_cut_to_what_stands_around_its_query_and_its_key() -> None:
    n = 60
    weights = np.full((1, 1, n, n), 0.5 / (n - 1))
    weights[..., 5] = 0.5
    row = read_row(record(weights, tokens(*map(str, range(n)))), 0, 0, 40, np.arange(n) == 0)
    assert row["keys"] == choose_shown(40, 5, n) == [*range(2, 9), *range(24, 45)]
    assert choose_shown(1, 3, 5) == [0, 1, 2, 3, 4]
    assert row["weights"][3] == pytest.approx(0.5)
    assert (row["n_keys"], row["to_first"]) == (n, pytest.approx(0.5 / (n - 1)))
    entropy = -0.5 * np.log(0.5) - 0.5 * np.log(0.5 / (n - 1))
    assert row["effective_keys"] == pytest.approx(np.exp(entropy), rel=1e-4)


# --- Which of many heads are worth a look, and what some of them do ---


N = 16
ALLOWED = np.tri(N, dtype=bool)
EQUAL = ALLOWED / ALLOWED.sum(axis=1, keepdims=True)
FIRST = np.eye(N)[np.zeros(N, dtype=int)]
PREVIOUS = np.eye(N)[np.maximum(np.arange(N) - 1, 0)]
TWICE = ("a", "b", "c", "d", "e", "f", "g", "h") * 2
UNKNOWN = provenance(revision="sha256:" + "5e" * 32, trained=None)  # type: ignore[arg-type]


def heads(*maps: np.ndarray, pieces: tuple[str, ...] = TWICE) -> AttentionMaps:
    """One layer with these heads."""
    return record(np.array([maps]), tokens(*pieces), attendable=ALLOWED, made_by=UNKNOWN)


def chosen(maps: AttentionMaps, number: int = 12) -> tuple[int, ...]:
    return choose_notable(read_moved_rows(maps, every(maps)), number)


def every(maps: AttentionMaps) -> list[tuple[int, int]]:
    return [*product(range(maps.n_layers), range(maps.n_heads))]


def test_heads_of_the_first_token_of_equal_shares_and_copies_are_not_worth_a_look() -> None:
    itself = np.eye(N)
    maps = heads(FIRST, EQUAL, PREVIOUS, PREVIOUS, itself, itself, 0.5 * FIRST + 0.5 * EQUAL)
    assert set(chosen(maps)) == {2, 4}
    assert len(chosen(maps, 1)) == 1


def test_of_two_alike_the_one_that_moves_more_is_worth_more() -> None:
    assert chosen(heads(0.6 * FIRST + 0.4 * PREVIOUS, 0.1 * FIRST + 0.9 * PREVIOUS), 1) == (1,)


def test_what_moves_is_without_the_first_token() -> None:
    rows = read_moved_rows(heads(0.75 * FIRST + 0.25 * PREVIOUS), [(0, 0)])
    assert rows.queries.tolist() == [*range(2, N)]  # the others have no choice
    np.testing.assert_allclose(rows.moved, 0.25)
    np.testing.assert_allclose(rows.shares[0], PREVIOUS[2:], atol=1e-6)
    np.testing.assert_allclose(rows.equal[0, 0, :4], [0, 0.5, 0.5, 0])


@pytest.mark.parametrize("pieces", [["one"], ["one", "two"]])
def test_no_head_has_a_choice_in_a_short_text(pieces: list[str]) -> None:
    assert chosen(random_maps(pieces, n_heads=3, causal=True, made_by=UNKNOWN)) == ()


def test_two_texts_have_no_first_token() -> None:
    maps = cross_maps()
    np.testing.assert_allclose(read_moved_rows(maps, every(maps)).moved, 1)
    assert len(chosen(maps)) == 2
