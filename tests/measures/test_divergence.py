"""How unlike heads are, by laws and by hand: two of them, all of a layer, and which become neighbours."""

from math import log

import numpy as np
import pytest

from attnviz.measures.divergence import (
    count_distinct,
    divergence_from_mean,
    jsd,
    max_divergence_from_mean,
    measure_divergences,
    order_by_likeness,
    to_similarity,
    vendi_score,
)
from attnviz.measures.rows import layer_rows
from attnviz.records import AttentionMaps
from tests.made import random_maps, record

LN2 = log(2)


def pointing(*keys: int, n: int = 4) -> AttentionMaps:
    """One head for each of `keys`: all its queries attend to that key."""
    return record(np.stack([np.eye(n)[[key] * n] for key in keys])[None])


def test_jsd_by_hand() -> None:
    p, q, even = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.5, 0.5])
    assert jsd(p, p) == 0
    assert jsd(p, q) == pytest.approx(LN2)
    by_hand = 0.5 * log(1 / 0.75) + 0.5 * (0.5 * log(0.5 / 0.75) + 0.5 * log(0.5 / 0.25))
    assert jsd(p, even) == pytest.approx(by_hand)


def test_rounding_makes_no_divergence_negative() -> None:
    noise = np.random.default_rng(0)
    p = noise.dirichlet(np.ones(200), size=200)
    nearly = p * (1 + 1e-7 * noise.normal(size=p.shape))
    assert (jsd(p, nearly) >= 0).all()
    assert (measure_divergences(record(np.stack([p, nearly])[None]), 0) >= 0).all()


def test_divergences_are_means_over_queries() -> None:
    maps = random_maps(n_heads=4, causal=True)
    rows, apart = layer_rows(maps, 0), measure_divergences(maps, 0)
    for one, other in np.ndindex(4, 4):
        assert apart[one, other] == pytest.approx(jsd(rows[one], rows[other]).mean(), abs=1e-6)
    assert apart.tolist() == apart.T.tolist()
    assert not apart.diagonal().any()


@pytest.mark.parametrize("n_heads", [1, 2, 5])
def test_copies_are_one_head(n_heads: int) -> None:
    maps = record(np.repeat(random_maps(n_heads=1).weights, n_heads, axis=1))
    assert vendi_score(maps).values == pytest.approx(1)
    assert divergence_from_mean(maps).values == pytest.approx(0, abs=1e-12)


def test_two_copies_and_one_on_a_key_of_its_own() -> None:
    maps = pointing(0, 0, 1)
    assert vendi_score(maps).values == pytest.approx(3 / 2 ** (2 / 3))  # eigenvalues 2/3, 1/3, 0


@pytest.mark.parametrize(("n_heads", "most"), [(1, 0.0), (2, 0.216), (4, 0.380), (12, 0.546)])
def test_heads_on_keys_of_their_own_are_as_different_as_can_be(n_heads: int, most: float) -> None:
    """Also where each attends to three keys, and no longer where two of them share a key."""
    wide = record(np.repeat(np.eye(n_heads), 3, axis=1)[:, None].repeat(3 * n_heads, axis=1)[None] / 3)
    for maps in (pointing(*range(n_heads), n=n_heads), wide):
        assert vendi_score(maps).values == pytest.approx(n_heads)
        assert divergence_from_mean(maps).values == pytest.approx(max_divergence_from_mean(n_heads), abs=1e-6)
    assert max_divergence_from_mean(n_heads) == pytest.approx(most, abs=5e-4)
    if n_heads > 1:
        sharing = divergence_from_mean(pointing(0, *range(n_heads - 1), n=n_heads))
        assert float(sharing.values[0]) < max_divergence_from_mean(n_heads) - 0.01


def test_distinct_of_divergences_by_hand() -> None:
    assert count_distinct(np.zeros((1, 1))) == pytest.approx(1)
    half = np.array([[0, LN2 / 2], [LN2 / 2, 0]])  # similar by a half: eigenvalues 3/4 and 1/4
    assert count_distinct(half) == pytest.approx(0.75**-0.75 * 0.25**-0.25)


def distances(*places: float) -> np.ndarray:
    """Between points on a line."""
    return np.abs(np.subtract.outer(places, places)).astype(float)


@pytest.mark.parametrize(
    ("places", "order"),
    [
        ((0, 1, 3, 5.2), (0, 1, 2, 3)),  # 3 is nearer to 5.2 than to 0 and 1 together
        ((5.2, 0, 3, 1), (0, 2, 1, 3)),
        ((0, 3.5, 1, 5.4, 2), (0, 2, 4, 1, 3)),  # single linkage would add 3.5 to 0, 1 and 2 first
        ((0,), (0,)),
        ((), ()),
    ],
)
def test_the_nearest_on_average_join_next(places: tuple[float, ...], order: tuple[int, ...]) -> None:
    given = distances(*places)
    before = given.copy()
    assert order_by_likeness(given) == order
    assert np.array_equal(given, before)


def test_equal_distances_keep_the_order_and_every_head_is_there_once() -> None:
    assert order_by_likeness(1 - np.eye(5)) == (0, 1, 2, 3, 4)
    assert sorted(order_by_likeness(distances(*np.random.default_rng(0).normal(size=20)))) == list(range(20))


def test_rounding_leaves_no_similarity_beyond_its_bounds() -> None:
    assert to_similarity(np.array([[-1e-9, log(2) + 1e-9], [log(2), 0.0]])).tolist() == [[1.0, 0.0], [0.0, 1.0]]
