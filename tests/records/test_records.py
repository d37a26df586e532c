"""A record is checked once, on construction, and cannot be changed afterwards."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from attnviz.errors import InvalidRecord
from attnviz.records import AttentionMaps, Measurement, Tokens
from tests.made import provenance, random_maps, record, sink_maps, tokens, uniform_maps, windowed_maps

THREE = np.full((1, 2, 3, 3), 1 / 3, dtype=np.float32)


def with_row(row: list[float]) -> np.ndarray:
    weights = THREE.copy()
    weights[0, 1, 2] = row
    return weights


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ([np.nan, 0.5, 0.5], "layer 0, head 1: the weights of query 2 hold NaN"),
        ([np.inf, 0.0, 0.0], "layer 0, head 1: the weights of query 2 sum to inf, not 1"),
        ([0.3, 0.3, 0.3], "layer 0, head 1: the weights of query 2 sum to 0.9, not 1"),
        ([0.0, 0.0, 0.0], "layer 0, head 1: the weights of query 2 sum to 0, not 1"),
        ([1.5, -0.5, 0.0], "layer 0 holds negative weights"),
    ],
)
def test_what_is_not_attention_is_refused(row: list[float], says: str) -> None:
    with pytest.raises(InvalidRecord, match=says):
        record(with_row(row))


def test_rows_may_miss_one_by_a_thousandth() -> None:
    assert record(with_row([0.5, 0.5, 0.0009])).n_heads == 2
    with pytest.raises(InvalidRecord):
        record(with_row([0.5, 0.5, 0.0011]))


def test_weight_where_attention_is_not_allowed_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="layer 0 holds weight where attention is not allowed"):
        record(THREE, attendable=np.tri(3, dtype=bool))
    maps = windowed_maps(4, window=2)  # whose layers allow different attention
    with pytest.raises(InvalidRecord, match="layer 0 holds weight where attention is not allowed"):
        record(maps.weights, attendable=maps.attendable[::-1])


def check(weights: np.ndarray, n_tokens: int, attendable: np.ndarray) -> None:
    ours = tokens(*(f"t{position}" for position in range(n_tokens)))
    AttentionMaps(weights, ours, ours, attendable, provenance())


@pytest.mark.parametrize(
    ("shape", "n_tokens", "attendable", "says"),
    [
        ((1, 2, 3, 3), 4, (4, 4), r"weights of shape \(1, 2, 3, 3\) do not fit 4 queries and 4 keys"),
        ((1, 3, 3), 3, (3, 3), r"weights of shape \(1, 3, 3\) do not fit 3 queries and 3 keys"),
        ((1, 2, 3, 3), 3, (2, 3), r"attendable has shape \(2, 3\), expected \(3, 3\)"),
        ((0, 2, 3, 3), 3, (3, 3), "are empty"),
        ((1, 2, 0, 0), 0, (0, 0), "are empty"),
    ],
)
def test_shapes_fit_tokens(shape: tuple[int, ...], n_tokens: int, attendable: tuple[int, ...], says: str) -> None:
    weights = np.full(shape, 1 / 3, dtype=np.float32)
    check(np.full((1, 2, 3, 3), 1 / 3, dtype=np.float32), 3, np.ones((3, 3), dtype=bool))
    with pytest.raises(InvalidRecord, match=says):
        check(weights, n_tokens, np.ones(attendable, dtype=bool))


def test_pieces_offsets_and_marks_belong_together() -> None:
    with pytest.raises(InvalidRecord, match="2 pieces, 1 offsets, 2 special marks and 2 unknown marks"):
        Tokens(("a", "b"), ((0, 1),), (False, False))
    with pytest.raises(InvalidRecord):
        Tokens(("a",), ((0, 1),), (False,), unknown=(False, True))


def test_one_mask_serves_all_layers() -> None:
    maps = random_maps(n_layers=3, causal=True)
    assert maps.attendable.shape == maps.weights[:, 0].shape
    assert maps.layers_alike
    assert record(maps.weights, attendable=np.array(maps.attendable)).layers_alike  # also where each has its own copy


def test_a_row_and_its_sink_sum_to_one() -> None:
    maps = sink_maps(share=0.25)
    assert maps.weights[0, 0].sum(axis=-1) == pytest.approx(np.full(4, 0.75))
    with pytest.raises(InvalidRecord, match=r"head 0: the weights of query 0 sum to 0\.75, not 1"):
        record(maps.weights)
    with pytest.raises(InvalidRecord, match="layer 0 holds a negative share of a sink"):
        record(uniform_maps().weights, sink=np.full((1, 1, 4), -1e-4))
    with pytest.raises(InvalidRecord, match="layer 0 holds a query that attends to nothing but a sink"):
        record(np.zeros((1, 1, 2, 2)), sink=np.ones((1, 1, 2)))


def test_a_record_cannot_be_changed() -> None:
    maps = random_maps()
    for array in (maps.weights, maps.attendable):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(FrozenInstanceError):
        maps.weights = THREE  # type: ignore[misc]


def test_the_callers_own_arrays_stay_as_they_were() -> None:
    weights, attendable = THREE.copy(), np.ones((3, 3), dtype=bool)
    check(weights, 3, attendable)
    assert weights.flags.writeable
    assert attendable.flags.writeable
    assert np.array_equal(weights, THREE)


def test_a_measurement_keeps_to_its_bounds() -> None:
    assert Measurement("peak", "share", np.array([[0.5, 1.00001]]), (0.0, 1.0)).unit == "share"
    for value in (-0.1, 1.1, np.nan):
        with pytest.raises(InvalidRecord, match="peak lies outside 0 to 1"):
            Measurement("peak", "share", np.array([[value]]), (0.0, 1.0))


@pytest.mark.parametrize("what", ["layer", "head"])
@pytest.mark.parametrize("numbers", [(0,), (1, 0), (1, 1), (-1, 2), (0, 1, 2)])
def test_numbers_of_layers_and_heads_rise(numbers: tuple[int, ...], what: str) -> None:
    with pytest.raises(InvalidRecord, match=f"do not name 2 {what}s in rising order"):
        replace(random_maps(n_layers=2, n_heads=2), **{f"{what}_numbers": numbers})  # type: ignore[arg-type]
    with pytest.raises(InvalidRecord, match=f"{what} number 1,000,000 is above"):
        replace(random_maps(n_layers=2, n_heads=2), **{f"{what}_numbers": (0, 10**6)})  # type: ignore[arg-type]
