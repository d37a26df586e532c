"""Clusters by hand."""

from __future__ import annotations

import numpy as np

from attnviz.measures.clustering import clustered


def distances(*places: float) -> np.ndarray:
    """Between points on a line."""
    return np.abs(np.subtract.outer(places, places)).astype(float)


def test_like_heads_become_neighbours() -> None:
    assert clustered(distances(0, 10, 1, 11)) == (0, 2, 1, 3)


def test_the_nearest_on_average_join_next() -> None:
    """2 is nearer to 1 (2) than to 0 and 1 together (2.5), and 3 is 2.2 from 2: so 2 joins 3, not the pair."""
    assert clustered(distances(0, 1, 3, 5.2)) == (0, 1, 2, 3)
    assert clustered(distances(5.2, 0, 3, 1)) == (0, 2, 1, 3)


def test_average_and_not_single_linkage() -> None:
    """From (0, 1, 2) on average 2.5 to 3.5; between 3.5 and 5.4 it is 1.9. Single linkage would add 3.5 first (1.5)."""
    order = clustered(distances(0, 3.5, 1, 5.4, 2))
    assert order == (0, 2, 4, 1, 3)


def test_equal_distances_keep_the_order_and_every_head_is_there_once() -> None:
    assert clustered(1 - np.eye(5)) == (0, 1, 2, 3, 4)
    assert sorted(clustered(distances(*np.random.default_rng(0).normal(size=20)))) == list(range(20))


def test_one_head_and_none() -> None:
    assert clustered(np.zeros((1, 1))) == (0,)
    assert clustered(np.zeros((0, 0))) == ()


def test_what_is_given_stays_as_it_was() -> None:
    given = distances(0, 10, 1)
    before = given.copy()
    clustered(given)
    assert np.array_equal(given, before)
