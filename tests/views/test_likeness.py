"""Which heads are alike, in words."""

from math import log

import numpy as np

from attnviz.measures.divergence import measure_divergences_across
from attnviz.views.captions import describe_likeness
from tests.made import record

PREVIOUS, NEXT = np.eye(6, k=-1) + np.eye(6)[[0]].T * np.eye(6)[0], np.eye(6, k=1) + np.eye(6)[[5]].T * np.eye(6)[5]


def said(weights: np.ndarray, *names: str) -> str:
    maps = record(weights)
    return describe_likeness(measure_divergences_across([(maps, layer) for layer in range(maps.n_layers)]), names)


def test_pairs_of_all_layers_by_the_names_of_their_heads() -> None:
    """Two heads of different layers are one map, the others have half of each row in common with one, or nothing."""
    half = (PREVIOUS + NEXT) / 2
    found = said(np.array([[PREVIOUS, NEXT], [half, PREVIOUS]]), "0.0", "0.5", "3.0", "3.5")
    assert found.startswith("Heads most alike here (1 - mean JSD in bits): 0.0 and 3.5 (1.000), ")
    assert found.endswith("; median pair .689; least like any other 0.5 (.689).")


def test_the_most_alike_come_first_and_of_equal_ones_the_earliest() -> None:
    similar = np.array([[1, 0.5, 0.9, 0.5], [0.5, 1, 0.5, 0.2], [0.9, 0.5, 1, 0.1], [0.5, 0.2, 0.1, 1]])
    given = log(2) * (1 - similar)
    before = given.copy()
    pairs = "a and c (.900), a and b (.500), a and d (.500); median pair .500; least like any other b (.500)."
    assert describe_likeness(given, "abcd").endswith(f": {pairs}")
    assert np.array_equal(given, before)


def test_of_one_token_no_pair_is_said_to_be_more_alike_than_others() -> None:
    found = said(np.ones((2, 2, 1, 1)), "0.0", "0.1", "1.0", "1.1")
    assert found == "No two heads are more alike than the others here (1 - mean JSD in bits): 1.000."
