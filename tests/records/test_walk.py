"""What a walk over the weights of a head gives is what the formula gives in float64."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from attnviz.errors import InvalidRecord
from attnviz.measures.concentration import make_uniform
from attnviz.measures.rows import compute_statistics
from attnviz.records import AttentionMaps, walk
from attnviz.records.factored import FactoredMaps
from attnviz.records.factors import Factors, Window
from attnviz.records.walk import Queries, WalkedRows
from tests.made import provenance, tokens
from tests.records.formula import by_formula, take_small_steps

N_TOKENS, N_HEADS = 50, 2
WINDOWS: list[Window] = [(None, None), (None, 0), (6, 0), (2, 9)]


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    take_small_steps(monkeypatch, 60)


class Case(NamedTuple):
    """Factors without their log-sum-exp, that, and the weights, both by the formula."""

    unsummed: Factors
    log_sum_exp: np.ndarray
    weights: np.ndarray


def case(window: Window, padded: bool, biased: bool = True, factor: float = 1.0) -> Case:
    generator = np.random.default_rng(0)
    query, key = generator.normal(size=(2, N_HEADS, N_TOKENS, 3)).astype(np.float32)
    key[:, 3] *= factor
    bias = generator.normal(size=(N_HEADS, 9)).astype(np.float32) if biased else None
    real = ~np.isin(np.arange(N_TOKENS), [7, N_TOKENS - 1]) if padded else None
    unsummed = Factors(query, key, None, 0.5, bias, window, real)
    return Case(unsummed, *by_formula(unsummed))


@pytest.mark.parametrize("units", [2**28, 0], ids=["nats", "bits"])
@pytest.mark.parametrize("kind", ["known", "unsummed", "dense"])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("window", WINDOWS)
def test_numbers_and_rows_are_those_of_the_weights(
    window: Window, padded: bool, kind: str, units: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "MIN_NUMBERS_FOR_TORCH", units)
    unsummed, log_sum_exp, weights = case(window, padded)
    several: list[Queries] = [slice(0, 5), slice(5, 8), np.array([9, 30, 44]), slice(45, N_TOKENS)]
    maps: AttentionMaps = maps_of(unsummed)
    if kind == "known":
        maps = maps_of(replace(unsummed, log_sum_exp=log_sum_exp.astype(np.float32)))
    elif kind == "dense":
        maps = AttentionMaps(maps.weights, maps.keys, maps.keys, maps.attendable, maps.provenance)
    for head, of_head in enumerate(weights):
        for queries, found in zip(several, maps.walk(0, head, several), strict=True):
            rows = of_head[queries]
            check(rows, np.arange(N_TOKENS)[queries], found)
            if kind == "unsummed":
                np.testing.assert_allclose(unsummed._sums[head, queries], log_sum_exp[head, queries], atol=1e-6)
            given = maps.rows(0, head, queries)
            np.testing.assert_allclose(given, rows, rtol=3e-6, atol=1e-9)
            assert given.sum(axis=1) == pytest.approx(found.sums, abs=1e-6)


def check(rows: np.ndarray, queries: np.ndarray, found: WalkedRows) -> None:
    """Against rows by the formula, in float64."""
    distances = np.abs(np.arange(N_TOKENS) - queries[:, None])
    entropies = -(rows * np.log(rows, where=rows > 0, out=np.zeros_like(rows))).sum(axis=1)
    np.testing.assert_allclose(found.sums, 1, atol=1e-6)
    np.testing.assert_allclose(found.entropies, entropies, atol=2e-6)
    np.testing.assert_allclose(found.peaks, rows.max(axis=1), rtol=2e-6)
    assert found.peak_keys.tolist() == rows.argmax(axis=1).tolist()
    np.testing.assert_allclose(found.distances, (rows * distances).sum(axis=1), rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(found.sum_received(), rows[:, found.keys].sum(axis=0), rtol=3e-6, atol=1e-9)
    np.testing.assert_allclose(found.rows(), rows[:, found.keys], rtol=3e-6, atol=1e-9)
    assert np.delete(rows, np.arange(N_TOKENS)[found.keys], axis=1).sum() == 0


def test_entropies_of_very_many_keys_keep_their_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Summed in float32 at once they would be off by 1e-5 and more."""
    monkeypatch.undo()
    generator, n_keys = np.random.default_rng(0), 2**17
    query, key = generator.normal(size=(1, 4, 8)).astype(np.float32), generator.normal(size=(1, n_keys, 8))
    key = key.astype(np.float32)
    layer = Factors(query, key, None, 1.0)
    (found,) = layer.walk(0, [slice(0, 4)])
    _, (rows,) = by_formula(layer)
    np.testing.assert_allclose(found.entropies, -(rows * np.log(rows)).sum(axis=1), rtol=0, atol=2e-6)


def test_small_weights_of_large_scores_keep_their_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores reach 37, and so does log-sum-exp, which float32 rounds by 2e-6; a bias far from the diagonal is added."""
    monkeypatch.undo()
    monkeypatch.setattr(walk, "MIN_NUMBERS_FOR_TORCH", 0)  # as in texts whose weights are very many
    generator, n_tokens = np.random.default_rng(0), 3000
    query, key = (generator.normal(size=(2, 1, n_tokens, 16)) * 1.2).astype(np.float32)
    bias = generator.normal(size=(1, 9)).astype(np.float32)
    layer = Factors(query, key, None, 1.0, bias)
    (log_sum_exp,), (weights,) = by_formula(layer)
    np.testing.assert_allclose(layer.sums[0], log_sum_exp, rtol=3e-7, atol=0)  # as float32 rounds scores
    rows = layer.rows(0, slice(0, n_tokens)) / weights - 1
    assert np.abs(rows).max() < 1.5e-5  # of nine million, some as small as 1e-32
    assert np.sqrt((rows**2).mean()) < 1.3e-6
    some = np.arange(0, n_tokens, 7)
    np.testing.assert_allclose(layer.cells(0, some, some[::-1]), weights[some, some[::-1]], rtol=1e-5)


def maps_of(*layers: Factors) -> FactoredMaps:
    pieces = tokens(*("a",) * N_TOKENS)
    return FactoredMaps(pieces, pieces, provenance(), factors=layers)


@pytest.mark.parametrize("window", WINDOWS)
def test_log_sum_exp_has_the_same_bits_whoever_asks_first(window: Window) -> None:
    by_itself, (by_statistics, exact, _) = case(window, False).unsummed, case(window, False)
    found = compute_statistics(maps_of(by_statistics), 0)
    assert not np.isnan(by_statistics._sums).any()
    assert by_statistics.sums.tobytes() == by_itself.sums.tobytes()
    np.testing.assert_allclose(by_itself.sums, exact, atol=1e-6)
    again = compute_statistics(maps_of(by_itself), 0)
    for name in ("sums", "entropies", "peaks", "distances", "received"):
        assert getattr(found, name).tobytes() == getattr(again, name).tobytes()


def test_a_score_beyond_all_others_is_found() -> None:
    """e to the score is beyond float32, unless the largest score is taken off."""
    unsummed, log_sum_exp, weights = case((None, None), False, biased=False, factor=1e3)
    assert log_sum_exp.max() > 300
    np.testing.assert_allclose(unsummed.sums, log_sum_exp, rtol=3e-6)  # of a product in float32
    np.testing.assert_allclose(maps_of(unsummed).weights[0], weights, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("window", [(None, 0), (3, 0)])
def test_a_query_that_may_attend_to_nothing_is_refused(window: Window) -> None:
    unsummed, _, _ = case(window, False)
    empty = Factors(unsummed.query, unsummed.key, None, 0.5, None, window, np.arange(N_TOKENS) > 0)
    with pytest.raises(InvalidRecord, match="attends to nothing"):
        _ = empty.sums
    assert empty.rows(0, slice(1, 9)).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("window", WINDOWS)
def test_attention_without_a_choice_is_that_of_weights(window: Window, padded: bool) -> None:
    maps = maps_of(case(window, padded).unsummed)
    dense = AttentionMaps(maps.weights, maps.keys, maps.keys, maps.attendable, maps.provenance)
    found, expected = (compute_statistics(make_uniform(each), 0) for each in (maps, dense))
    for name in ("sums", "entropies", "peaks", "peak_keys", "distances", "received"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=2e-6, atol=1e-9, err_msg=name)
