"""Records of q, k and log-sum-exp are the records of the weights that come of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

import attnviz
from attnviz import factored, store
from attnviz.errors import InvalidOption, InvalidRecord, TooLarge
from attnviz.factored import FactoredMaps
from attnviz.measures import rows
from attnviz.measures.measured import measured
from attnviz.records import AttentionMaps

TEXT = "the acting saved the film , and the film was not good but the acting was . " * 4
MODELS: dict[str, dict[str, Any]] = {
    "bias by distance": {"model": "multi"},
    "one head": {"model": "single"},
    "causal": {"model": "multi", "causal": True},
    "causal without a bias": {"model": "random:2", "layers": 3, "causal": True},
    "layers": {"model": "random:4", "layers": 2},
}


def both(name: str) -> tuple[FactoredMaps, AttentionMaps]:
    found, dense = (attnviz.attention(TEXT, factored=each, **MODELS[name]) for each in (True, False))
    assert isinstance(found, FactoredMaps)
    return found, dense


@pytest.mark.parametrize("name", MODELS)
def test_every_number_is_that_of_the_weights(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CELLS_AT_ONCE", 1_000)
    found, dense = both(name)
    np.testing.assert_allclose(found.weights, dense.weights, rtol=1e-5, atol=1e-7)
    assert np.array_equal(found.attendable, dense.attendable)
    places = np.arange(len(found.queries))
    np.testing.assert_allclose(
        found.cells(0, 0, places, places[::-1]), dense.weights[0, 0, places, places[::-1]], rtol=1e-5, atol=1e-7
    )
    for one, other in zip(measured(found, ["all"]), measured(dense, ["all"]), strict=True):
        assert one.values == pytest.approx(other.values, abs=1e-5, rel=1e-5), one.name
        assert one.bounds == other.bounds


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded_it_is_the_same(name: str, tmp_path: Path) -> None:
    found, _ = both(name)
    attnviz.save(found, tmp_path / "a.safetensors")
    loaded = attnviz.load(tmp_path / "a.safetensors")
    assert store.record_bytes(loaded) == store.record_bytes(found) == (tmp_path / "a.safetensors").read_bytes()
    assert store.record_shape(tmp_path / "a.safetensors") == found.weights.shape == loaded.weights.shape
    assert loaded.weights.tolist() == found.weights.tolist()


def test_more_weights_than_there_is_room_for_are_not_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found, dense = both("causal")
    monkeypatch.setattr(factored, "MAX_CELLS", dense.weights.size - 1)
    with pytest.raises(TooLarge, match="weights are more than the"):
        _ = found.weights
    assert found.rows(0, 1, slice(3, 5)).shape == (2, len(found.keys))


def test_a_model_without_q_and_k_is_refused() -> None:
    with pytest.raises(InvalidOption, match="dot has no q and k"):
        attnviz.attention(TEXT, model="dot", factored=True)


def damaged(change: str) -> bytes:
    """A record of two layers, with one thing that no model gives."""
    found, _ = both("causal without a bias")
    data = store.record_bytes(found)
    tensors = {name: tensor.copy() for name, tensor in load(data).items()}
    meta = json.loads(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["attnviz"])
    match change:
        case "a row that does not sum to 1":
            tensors["log_sum_exp"][0, 0, 0] += 1
        case "not a number":
            tensors["query"][0, 0, 0, 0] = np.nan
        case "a huge number":
            tensors["key"][0, 0, 0, 0] = 1e30
        case "a huge scale":
            meta["scales"][0] = 1e30
        case "other tokens":
            tensors["log_sum_exp"] = tensors["log_sum_exp"][:, :, 1:]
        case "fewer layers":
            tensors["key"] = tensors["key"][1:]
        case "fewer dimensions":
            tensors["key"] = tensors["key"][..., 0]
        case "other numbers":
            tensors["query"] = tensors["query"].astype(np.float64)
        case "no part":
            del tensors["log_sum_exp"]
        case "an even bias":
            tensors["bias"] = np.zeros((3, 2, 4), dtype=np.float32)
        case "no scale":
            meta["scales"][0] = "1"
        case "causal by word":
            meta["causal"] = "yes"
    return save(tensors, metadata={"attnviz": json.dumps(meta)})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("a row that does not sum to 1", "do not sum to 1"),
        ("not a number", "no number of a model"),
        ("a huge number", "no number of a model"),
        ("a huge scale", "no number of a model"),
        ("other tokens", "do not fit one another"),
        ("fewer layers", "different numbers of layers"),
        ("fewer dimensions", "factors of|Type-check error"),
        ("other numbers", "not float32"),
        ("no part", "not a record of attnviz"),
        ("an even bias", "by distance"),
        ("no scale", "scales of q and k are no numbers"),
        ("causal by word", "causal is not"),
    ],
)
def test_what_is_no_record_is_refused(change: str, said: str) -> None:
    with pytest.raises(InvalidRecord, match=said):
        store.read_record(damaged(change), "a.safetensors")


def test_factors_of_other_tokens_are_refused() -> None:
    found, _ = both("one head")
    few = replace(found.queries, pieces=("a", "b"), offsets=((0, 1), (1, 2)), special=(False,) * 2, unknown=())
    with pytest.raises(InvalidRecord, match="do not fit 2"):
        replace(found, queries=few, keys=few)
