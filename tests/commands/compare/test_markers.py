"""Records without markers."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.commands.compare.measuring import without_markers
from attnviz.errors import InvalidOption
from tests.made import cross_maps, record, softmax, tokens

MARKED = tokens("[CLS]", "the", "cat", "[SEP]", special=("[CLS]", "[SEP]"))


def test_what_went_to_markers_goes_to_the_sink_and_nothing_is_renormalised() -> None:
    weights = softmax(np.random.default_rng(0).normal(size=(2, 3, 4, 4)), np.ones((4, 4), dtype=bool))
    found = without_markers(record(weights, MARKED))
    assert without_markers(found) is found
    assert found.queries.pieces == ("the", "cat")
    assert found.queries is found.keys
    assert found.weights.tolist() == weights[:, :, 1:3, 1:3].tolist()
    assert found.sink is not None
    assert found.sink == pytest.approx(weights[:, :, 1:3, [0, 3]].sum(axis=-1))


def test_what_went_to_a_sink_already_is_added() -> None:
    sink = np.full((1, 1, 4), 0.5)
    found = without_markers(record(np.full((1, 1, 4, 4), 0.125), MARKED, sink=sink))
    assert found.sink == pytest.approx(np.full((1, 1, 2), 0.75))
    causal = np.tri(4, dtype=bool)  # masks go with their tokens
    found = without_markers(record(softmax(np.zeros((1, 1, 4, 4)), causal), MARKED, attendable=causal))
    assert found.attendable[0].tolist() == [[True, False], [True, True]]


def test_only_markers_and_other_texts_are_refused() -> None:
    with pytest.raises(InvalidOption, match="all tokens are markers"):
        without_markers(record(np.full((1, 1, 1, 1), 1), tokens("[CLS]", special=("[CLS]",))))
    with pytest.raises(InvalidOption, match="self-attention"):
        without_markers(cross_maps())
