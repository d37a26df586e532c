"""What a walk over the weights of a head gives is what the formula gives in float64."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pytest

from attnviz import arithmetic
from attnviz.errors import InvalidRecord
from attnviz.measures.rows import statistics
from attnviz.records import Tokens, factored, head_walk, walk
from attnviz.records.even import evenly
from attnviz.records.factored import FactoredMaps, Factors, Window
from attnviz.records.unsummed import UnsummedFactors
from attnviz.records.walk import Queries
from tests.made import provenance

N_TOKENS, N_HEADS = 50, 2
WINDOWS: list[Window] = [(None, None), (None, 0), (6, 0), (2, 9)]


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, sizes in (
        (walk, {"CELLS_AT_ONCE": 60, "MIN_ROWS": 5, "KEYS_AT_ONCE": 14}),
        (head_walk, {"KEYS_AT_ONCE": 14, "STRETCH": 7, "N_SAMPLED": 4}),
    ):
        for name, size in sizes.items():
            monkeypatch.setattr(module, name, size)


class Case(NamedTuple):
    """Factors without their log-sum-exp, that, and the weights, both by the formula."""

    unsummed: UnsummedFactors
    log_sum_exp: np.ndarray
    weights: np.ndarray


def case(window: Window, padded: bool, biased: bool = True, factor: float = 1.0) -> Case:
    generator = np.random.default_rng(0)
    query, key = generator.normal(size=(2, N_HEADS, N_TOKENS, 3)).astype(np.float32)
    key[:, 3] *= factor
    bias = generator.normal(size=(N_HEADS, 9)).astype(np.float32) if biased else None
    real = ~np.isin(np.arange(N_TOKENS), [7, N_TOKENS - 1]) if padded else None
    distances = np.arange(N_TOKENS) - np.arange(N_TOKENS)[:, None]
    back, forward = (N_TOKENS if reach is None else reach for reach in window)
    allowed = (distances >= -back) & (distances <= forward) & (True if real is None else real)
    added = 0 if bias is None else bias[:, distances.clip(-4, 4) + 4]
    scores = np.where(allowed, query.astype(float) @ key.astype(float).swapaxes(1, 2) / 2 + added, -np.inf)
    largest = scores.max(axis=-1, keepdims=True)
    log_sum_exp = np.log(np.exp(scores - largest).sum(axis=-1)) + largest[..., 0]
    unsummed = UnsummedFactors(query, key, 0.5, bias, window, real)
    return Case(unsummed, log_sum_exp, np.exp(scores - log_sum_exp[..., None]))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("window", WINDOWS)
def test_numbers_and_tiles_are_those_of_the_weights(window: Window, padded: bool, known: bool) -> None:
    unsummed, log_sum_exp, weights = case(window, padded)
    factors = unsummed.known() if known else unsummed
    distances = np.abs(np.arange(N_TOKENS) - np.arange(N_TOKENS)[:, None])
    for head, of_head in enumerate(weights):
        several: list[Queries] = [slice(0, 5), slice(5, 8), np.array([9, 30, 44]), slice(45, N_TOKENS)]
        for queries, found in zip(several, factors.walk(head, several), strict=True):
            rows = of_head[queries]
            np.testing.assert_allclose(found.sums, 1, atol=1e-6)
            entropies = -(rows * np.log(rows, where=rows > 0, out=np.zeros_like(rows))).sum(axis=1)
            np.testing.assert_allclose(found.entropies, entropies, atol=2e-6)
            np.testing.assert_allclose(found.peaks, rows.max(axis=1), rtol=2e-6)
            assert found.peak_keys.tolist() == rows.argmax(axis=1).tolist()
            np.testing.assert_allclose(found.distances, (rows * distances[queries]).sum(axis=1), rtol=2e-6, atol=1e-6)
            joined, received, shares = np.zeros_like(rows), np.zeros(N_TOKENS), np.arange(1.0, 1 + len(rows))
            for tile in found.tiles:
                received[tile.keys] = tile.received(shares)
                joined[:, tile.keys] = tile.rows()
            np.testing.assert_allclose(joined, rows, rtol=3e-6, atol=1e-9)
            np.testing.assert_allclose(received, shares @ rows, rtol=3e-6, atol=1e-9)
            if not known:
                np.testing.assert_allclose(unsummed._found[head, queries], log_sum_exp[head, queries], atol=1e-6)


def test_small_weights_of_large_scores_keep_their_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores reach 37, and so does log-sum-exp, which float32 rounds by 2e-6; a bias far from the diagonal is added."""
    for name, size in {"CELLS_AT_ONCE": 2**15, "MIN_ROWS": 32, "KEYS_AT_ONCE": 512}.items():
        monkeypatch.setattr(walk, name, size)
    for name in ("KEYS_AT_ONCE", "STRETCH"):
        monkeypatch.setattr(head_walk, name, 512)
    monkeypatch.setattr(factored, "KEYS_AT_ONCE", 512)
    monkeypatch.setattr(arithmetic, "PAYS", 0)  # as in texts whose weights are very many
    generator, n_tokens = np.random.default_rng(0), 3000
    query, key = (generator.normal(size=(2, 1, n_tokens, 16)) * 1.2).astype(np.float32)
    bias = generator.normal(size=(1, 9)).astype(np.float32)
    distances = np.arange(n_tokens) - np.arange(n_tokens)[:, None]
    scores = query[0].astype(float) @ key[0].astype(float).T + bias[0].astype(float)[distances.clip(-4, 4) + 4]
    log_sum_exp = np.logaddexp.reduce(scores, axis=1)
    weights = np.exp(scores - log_sum_exp[:, None])
    layer = UnsummedFactors(query, key, 1.0, bias)
    np.testing.assert_allclose(layer.log_sum_exp[0], log_sum_exp, rtol=0, atol=4e-6)
    rows = layer.known().rows(0, slice(0, n_tokens)) / weights - 1
    assert np.abs(rows).max() < 1.1e-5  # of nine million, some as small as 1e-32
    assert np.sqrt((rows**2).mean()) < 1.3e-6
    some = np.arange(0, n_tokens, 7)
    np.testing.assert_allclose(layer.tile(0, some, some), weights[np.ix_(some, some)], rtol=6e-6)
    np.testing.assert_allclose(layer.cells(0, some, some[::-1]), weights[some, some[::-1]], rtol=5e-6)


def maps_of(factors: Factors) -> FactoredMaps:
    tokens = Tokens(("a",) * N_TOKENS, ((0, 1),) * N_TOKENS, (False,) * N_TOKENS)
    return FactoredMaps(tokens, tokens, provenance(), factors=(factors,))


@pytest.mark.parametrize("window", WINDOWS)
def test_log_sum_exp_has_the_same_bits_whoever_asks_first(window: Window) -> None:
    by_itself, (by_statistics, exact, _) = case(window, False).unsummed, case(window, False)
    found = statistics(maps_of(by_statistics), 0)
    before = by_statistics.summed
    assert by_statistics.log_sum_exp.tobytes() == by_itself.log_sum_exp.tobytes()
    assert (before, by_statistics.summed) == (False, True)
    np.testing.assert_allclose(by_itself.log_sum_exp, exact, atol=1e-6)
    again = statistics(maps_of(by_itself), 0)
    for name in ("sums", "entropies", "peaks", "distances", "received"):
        np.testing.assert_allclose(getattr(found, name), getattr(again, name), rtol=3e-6, atol=1e-6)


def test_a_score_that_no_sampled_key_shows_is_found() -> None:
    """e to the score is beyond float32, unless the largest score is taken off."""
    unsummed, log_sum_exp, weights = case((None, None), False, biased=False, factor=1e3)
    assert log_sum_exp.max() > 300
    np.testing.assert_allclose(unsummed.log_sum_exp, log_sum_exp, rtol=3e-6)  # of a product in float32
    np.testing.assert_allclose(maps_of(unsummed).weights[0], weights, rtol=1e-3, atol=1e-6)


def test_a_query_that_may_attend_to_nothing_is_refused() -> None:
    unsummed, _, _ = case((None, 0), False)
    empty = UnsummedFactors(
        unsummed.query, unsummed.key, 0.5, window=(None, 0), attendable_keys=np.arange(N_TOKENS) > 0
    )
    with pytest.raises(InvalidRecord, match="attends to nothing"):
        _ = empty.log_sum_exp


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("window", WINDOWS)
def test_attention_without_a_choice_is_known_without_a_walk(window: Window, padded: bool) -> None:
    unsummed, _, weights = case(window, padded)
    even = evenly(unsummed, (weights[0] > 0).sum(axis=-1))
    found, walked = (statistics(maps_of(of), 0) for of in (even, Factors(**_parts(even))))
    for name in ("sums", "entropies", "peaks", "peak_keys", "distances", "received"):
        np.testing.assert_allclose(getattr(found, name), getattr(walked, name), rtol=2e-6, atol=1e-9, err_msg=name)
    for queries in (slice(3, 9), np.array([9, 30, 44])):
        (rows,) = even.walk(0, [queries])
        twice = np.full(len(rows.sums), 2.0)
        for times, (tile,) in ((1, rows.tiles), (2, rows.times(twice).tiles)):
            np.testing.assert_allclose(tile.rows(), times * even.rows(0, queries), rtol=2e-6, atol=1e-9)


def _parts(factors: Factors) -> dict[str, Any]:
    return {each.name: getattr(factors, each.name) for each in fields(Factors)}
