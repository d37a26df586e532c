"""From one record to another, with numbers that a reader can check by hand."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest

from attnviz.measures.divergence import jsd
from attnviz.records import AttentionMaps, Tokens
from attnviz.records.differences import Tolerances
from attnviz.views.differences import describe_difference
from attnviz.views.record_changes import compare_maps, measure_changes
from tests.made import cross_maps, random_maps, record, tokens, uniform_maps

EYE = np.eye(3)[None, None]
SHIFTED = np.eye(3)[[1, 2, 0]][None, None]


def test_a_record_and_itself_have_no_difference() -> None:
    maps = random_maps(n_layers=2, n_heads=3)
    found = measure_changes(maps, maps)
    assert [(each.layer, each.head) for each in found[::2]] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert {each.measure for each in found} == {"jsd", "top_key"}
    assert {(each.before, each.after) for each in found} == {(0, 0)}


def test_nothing_in_common_is_ln_2_and_every_top_key_another() -> None:
    apart, turned = measure_changes(record(EYE), record(SHIFTED))
    assert (apart.measure, round(apart.change, 9)) == ("jsd", round(log(2), 9))
    assert (turned.measure, turned.after) == ("top_key", 1.0)


def test_each_head_is_compared_with_the_same_head() -> None:
    one, other = random_maps(n_heads=3), random_maps(n_heads=3, seed=1)
    found = measure_changes(one, other)[::2]
    for head in range(3):
        expected = jsd(one.weights[0, head].astype(float), other.weights[0, head].astype(float)).mean()
        assert found[head].after == pytest.approx(expected, rel=1e-5)
    assert [each.after for each in found] == pytest.approx([each.after for each in measure_changes(other, one)[::2]])


def test_a_tie_that_rounding_turns_round_is_no_change() -> None:
    one, other = (uniform_maps(4).weights.copy() for _ in range(2))
    one[0, 0, :, 1] += 1e-7
    other[0, 0, :, 2] += 1e-7
    assert measure_changes(record(one), record(other))[1].after == 0
    clearly = uniform_maps(4).weights.copy()
    clearly[0, 0, 0] = [0.2, 0.2, 0.3, 0.3]
    for by, n_changed in ((1, 0), (2, 1)):  # moved by one, key 3 is a favourite of both
        _, turned = measure_changes(record(clearly), record(np.roll(clearly, by, axis=-1)))
        assert turned.after == n_changed / 4


def test_padding_does_not_count() -> None:
    one, other = random_maps(padding=3), random_maps(padding=3, seed=1)
    apart, turned = measure_changes(one, other)[:2]
    expected = jsd(one.weights[0, 0, :14].astype(float), other.weights[0, 0, :14].astype(float)).mean()
    assert apart.after == pytest.approx(expected, rel=1e-5)
    assert turned.change * 14 == pytest.approx(round(turned.change * 14))
    (less,) = compared(one, hidden(one))
    assert less.endswith(", padding.")


def hidden(maps: AttentionMaps) -> AttentionMaps:
    """The same tokens, of which one more is padding."""
    attendable = maps.attendable[0].copy()
    attendable[:, 0] = False
    weights = np.where(attendable, maps.weights, 0)
    return replace(maps, attendable=attendable, weights=weights / weights.sum(axis=-1, keepdims=True))


def test_only_what_both_have_is_compared() -> None:
    one, other = random_maps(n_layers=2, n_heads=2), random_maps(n_layers=1, n_heads=4)
    for found in (measure_changes(one, other), measure_changes(other, one)):
        assert [(each.layer, each.head) for each in found[::2]] == [(0, 0), (0, 1)]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (tokens("the", "movie", "ends"), "token of position 1: 'film' became 'movie'."),
        (tokens("the", "film"), "token of position 2 is only in BEFORE ('ends')."),
        (tokens("the", "film", "ends", "."), "token of position 3 is only in AFTER ('.')."),
        (tokens("the", "film", "ends", special=("ends",)), "token of position 2: 'ends' became 'ends', marker."),
    ],
)
def test_tokens_that_differ_are_named_and_nothing_else_is_compared(other: Tokens, said: str) -> None:
    one = random_maps(("the", "film", "ends"))
    two = replace(random_maps(other.pieces, seed=1), queries=other, keys=other)
    assert compared(one, two) == [said]


def compared(before: AttentionMaps, after: AttentionMaps) -> list[str]:
    return [describe_difference(each) for each in compare_maps(before, after, Tolerances())]


def test_keys_count_too() -> None:
    one, other = cross_maps(), cross_maps()
    assert {each.after for each in measure_changes(one, other)} == {0}
    assert compared(one, other) == []
    assert compared(one, cross_maps(n_keys=4)) == ["key of position 4 is only in BEFORE ('k4')."]
    assert "token of position 0 is only in AFTER ('q0')." in compared(one, random_maps(("q0", "q1", "q2")))
