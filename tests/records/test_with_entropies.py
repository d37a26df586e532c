"""Records that are made to be measured at once, against plain ones of the same weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest

from attnviz.errors import InvalidRecord
from attnviz.measures import measured
from attnviz.measures.divergence import of_layer
from attnviz.measures.rows import statistics
from attnviz.measures.weighing import weighed
from attnviz.records import AttentionMaps, with_entropies
from attnviz.records.with_entropies import MapsWithEntropies
from tests.made import record


def live(weights: np.ndarray) -> tuple[AttentionMaps, MapsWithEntropies]:
    """A plain record, and the same with its entropies."""
    plain = record(weights)
    entropies = -np.sum(weights * np.log(np.maximum(weights, 1e-30)), axis=-1, dtype=np.float32)
    given = {each.name: getattr(plain, each.name) for each in fields(AttentionMaps)}
    return plain, MapsWithEntropies(**given, entropies=np.maximum(entropies, 0))


def rows(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.full(shape[-1], 0.2), shape[:-1]).astype(np.float32)


def test_measures_are_those_of_a_plain_record() -> None:
    plain, found = live(rows(2, 3, 9, 9))
    for ours, theirs in zip(measured(found, ["all"]), measured(plain, ["all"]), strict=True):
        np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-6, atol=1e-6, err_msg=ours.name)


@pytest.mark.parametrize(("change", "dense"), [("none", True), ("a zero", False), ("sums", False)])
def test_heads_are_compared_as_those_of_a_plain_record(change: str, dense: bool) -> None:
    """Rows that hold a 0, or do not sum to 1, are not mixed as they stand."""
    weights = np.maximum(rows(1, 3, 9, 9), 1e-6)
    if change == "a zero":
        weights[0, :, 4, 2] = 0  # of all heads: its logarithm is none
    weights /= weights.sum(axis=-1, keepdims=True) * (1.0005 if change == "sums" else 1)
    plain, found = live(weights)
    assert found.is_dense(0) is dense
    names = ["head_divergence", "vendi_score", "divergence_from_mean"]
    for ours, theirs in zip(measured(found, names), measured(plain, names), strict=True):
        assert ours.values == pytest.approx(theirs.values, rel=1e-6), ours.name


def test_entropies_are_taken_as_they_were_told() -> None:
    _, found = live(rows(1, 2, 5, 5))
    other = replace(found, entropies=np.full_like(found.entropies, 0.5))
    assert measured(other, ["entropy"])[0].values == pytest.approx(0.5, abs=1e-6)


def test_copies_are_alike_but_for_rounding() -> None:
    one = rows(1, 1, 7, 7)
    _, found = live(np.concatenate([one, one], axis=1))
    assert of_layer(found, 0) == pytest.approx(np.zeros((2, 2)), abs=1e-6)


def test_one_head_is_its_own_mean() -> None:
    _, found = live(rows(1, 1, 7, 7))
    assert measured(found, ["divergence_from_mean"])[0].values.tolist() == [0.0]


def test_weights_that_are_weighed_have_other_entropies() -> None:
    plain, found = live(rows(1, 2, 5, 5))
    norms = np.arange(1, 11, dtype=np.float32).reshape(1, 2, 5)
    ours, theirs = weighed(replace(found, value_norms=norms)), weighed(replace(plain, value_norms=norms))
    assert measured(ours, ["entropy"])[0].values.tolist() == measured(theirs, ["entropy"])[0].values.tolist()


@pytest.mark.parametrize(
    "entropies", [np.full((1, 2, 5), -0.1), np.full((1, 2, 5), np.nan), np.full((1, 2, 5), 2.0), np.zeros((1, 2, 4))]
)
def test_entropies_that_no_rows_have_are_refused(entropies: np.ndarray) -> None:
    _, found = live(rows(1, 2, 5, 5))
    with pytest.raises(InvalidRecord, match="entropies"):
        replace(found, entropies=entropies.astype(np.float32))


@pytest.mark.parametrize("queries", [range(12), range(2, 12), range(3), range(9, 12), range(5, 6), [0, 4, 5, 11]])
@pytest.mark.parametrize("reach", [0, 1, 3, 5, 6, 20])
def test_weights_around_queries_are_looked_up_by_distance(queries: Sequence[int], reach: int) -> None:
    plain, found = live(rows(2, 3, 12, 12))
    expected = np.zeros((3, len(queries), 2 * reach + 1), dtype=np.float32)
    for place, query in enumerate(queries):
        for offset in range(-reach, reach + 1):
            if 0 <= query + offset < 12:
                expected[:, place, reach + offset] = plain.weights[1, :, query, query + offset]
    assert plain.around(1, np.array(queries), reach).tolist() == expected.tolist()
    assert found.around(1, np.array(queries), reach).tolist() == expected.tolist()


@pytest.mark.parametrize("at_once", [1, 2 * 9 * 9, 2**20])
def test_heads_that_are_walked_over_together_have_the_numbers_of_single_ones(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, found = live(rows(2, 3, 9, 9))
    monkeypatch.setattr(with_entropies, "CELLS_AT_ONCE", at_once)
    assert len(found.heads_at_once) == {1: 3, 162: 2, 2**20: 1}[at_once]
    ours, theirs = statistics(found, 1), statistics(plain, 1)
    for name in ("sums", "entropies", "peaks", "distances", "received"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-6, err_msg=name)
    assert (ours.peak_keys == theirs.peak_keys).all()
