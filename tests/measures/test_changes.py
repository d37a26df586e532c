"""From one record to another, with numbers that a reader can check by hand."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest

from attnviz.errors import InvalidRecord
from attnviz.measures.changes import measure_changes
from attnviz.measures.divergence import jsd
from attnviz.records import AttentionMaps
from tests.made import cross_maps, random_maps, record, tokens, uniform_maps

EYE = np.eye(3)[None, None]
SHIFTED = np.eye(3)[[1, 2, 0]][None, None]


def test_a_record_and_itself_have_no_difference() -> None:
    maps = random_maps(n_layers=2, n_heads=3)
    found = measure_changes(maps, maps)
    assert [(each.layer, each.head) for each in found] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert {(each.jsd, each.top_changed, each.n_queries) for each in found} == {(0, 0, 14)}


def test_nothing_in_common_is_ln_2_and_every_top_key_another() -> None:
    (found,) = measure_changes(record(EYE), record(SHIFTED))
    assert found.jsd == pytest.approx(log(2))
    assert (found.top_changed, found.values["top_key"]) == (3, 1.0)


def test_each_head_is_compared_with_the_same_head() -> None:
    one, other = random_maps(n_heads=3), random_maps(n_heads=3, seed=1)
    found = measure_changes(one, other)
    for head in range(3):
        expected = jsd(one.weights[0, head].astype(float), other.weights[0, head].astype(float)).mean()
        assert found[head].jsd == pytest.approx(expected, rel=1e-5)
    assert [each.jsd for each in found] == pytest.approx([each.jsd for each in measure_changes(other, one)])


def test_a_tie_that_rounding_turns_round_is_no_change() -> None:
    one, other = (uniform_maps(4).weights.copy() for _ in range(2))
    one[0, 0, :, 1] += 1e-7
    other[0, 0, :, 2] += 1e-7
    assert [each.top_changed for each in measure_changes(record(one), record(other))] == [0]
    clearly = uniform_maps(4).weights.copy()
    clearly[0, 0, 0] = [0.2, 0.2, 0.3, 0.3]
    for by, n_changed in ((1, 0), (2, 1)):  # moved by one, key 3 is a favourite of both
        (found,) = measure_changes(record(clearly), record(np.roll(clearly, by, axis=-1)))
        assert found.top_changed == n_changed


def test_padding_does_not_count() -> None:
    one, other = random_maps(padding=3), random_maps(padding=3, seed=1)
    assert {each.n_queries for each in measure_changes(one, other)} == {14}
    with pytest.raises(InvalidRecord, match="padding"):
        measure_changes(one, hidden(one))


def hidden(maps: AttentionMaps) -> AttentionMaps:
    """The same tokens, of which one more is padding."""
    attendable = maps.attendable[0].copy()
    attendable[:, 0] = False
    weights = np.where(attendable, maps.weights, 0)
    return replace(maps, attendable=attendable, weights=weights / weights.sum(axis=-1, keepdims=True))


def test_only_what_both_have_is_compared() -> None:
    one, other = random_maps(n_layers=2, n_heads=2), random_maps(n_layers=1, n_heads=4)
    for found in (measure_changes(one, other), measure_changes(other, one)):
        assert [(each.layer, each.head) for each in found] == [(0, 0), (0, 1)]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (tokens("the", "movie", "ends"), "token 1 is 'film' before and 'movie' after"),
        (tokens("the", "film"), "token 2, 'ends', is only there before"),
        (tokens("the", "film", "ends", "."), "token 3, '.', is only there after"),
        (
            tokens("the", "film", "ends", special=("ends",)),
            "token 2, 'ends', is a marker on one side and text on the other",
        ),
    ],
)
def test_the_first_token_that_differs_is_named(other: object, said: str) -> None:
    one = random_maps(("the", "film", "ends"))
    assert isinstance(other, type(one.queries))
    two = replace(random_maps(other.pieces), queries=other, keys=other)
    with pytest.raises(InvalidRecord) as caught:
        measure_changes(one, two)
    assert caught.value.problem == said


def test_keys_count_too() -> None:
    one, other = cross_maps(), cross_maps()
    assert {each.jsd for each in measure_changes(one, other)} == {0}
    with pytest.raises(InvalidRecord, match="key 4, 'k4', is only there before"):
        measure_changes(one, cross_maps(n_keys=4))
    with pytest.raises(InvalidRecord, match="one record is of self-attention"):
        measure_changes(one, random_maps(("q0", "q1", "q2")))
