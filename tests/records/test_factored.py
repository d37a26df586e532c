"""Records of q, k and log-sum-exp are the records of the weights that come of them."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

import attnviz
from attnviz import store
from attnviz.errors import InvalidRecord, TooLarge
from attnviz.measures import measure_maps
from attnviz.records import AttentionMaps, factored, walk
from attnviz.records.factored import FactoredMaps
from attnviz.records.factors import Factors, Window
from tests.records.formula import take_small_steps
from tests.records.test_walk import N_TOKENS, WINDOWS, case, maps_of

# Of more tokens than there are distances that a model tells apart.
TEXT = "the acting saved the film , and the film was not good but the acting was . " * 3
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


@pytest.mark.parametrize(
    ("name", "pays"), [*((name, 2**28) for name in MODELS), ("bias by distance", 0), ("causal without a bias", 0)]
)
def test_every_number_is_that_of_the_weights(name: str, pays: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take_small_steps(monkeypatch, 1_000)
    monkeypatch.setattr(walk, "MIN_NUMBERS_FOR_TORCH", pays)
    found, dense = both(name)
    np.testing.assert_allclose(found.weights, dense.weights, rtol=1e-5, atol=1e-7)
    assert np.array_equal(found.attendable, dense.attendable)
    places = np.arange(len(found.queries))
    crossing = dense.weights[0, 0, places, places[::-1]]
    np.testing.assert_allclose(found.read_cells_of_heads(0, places, places[::-1])[0], crossing, rtol=1e-5, atol=1e-7)
    for one, other in zip(measure_maps(found, ["all"]), measure_maps(dense, ["all"]), strict=True):
        assert one.values == pytest.approx(other.values, abs=1e-5, rel=1e-5), one.name
        assert one.bounds == other.bounds


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded_it_is_the_same(name: str, tmp_path: Path) -> None:
    found, _ = both(name)
    attnviz.save(found, tmp_path / "a.safetensors")
    loaded = attnviz.load(tmp_path / "a.safetensors")
    assert store.encode_record(loaded) == store.encode_record(found) == (tmp_path / "a.safetensors").read_bytes()
    assert store.read_record_shape(tmp_path / "a.safetensors")[0] == found.weights.shape == loaded.weights.shape
    assert loaded.weights.tolist() == found.weights.tolist()


@pytest.mark.parametrize(("window", "padded"), [*product(WINDOWS, (False, True)), ((0, 9), False)])
def test_windows_and_padding_are_those_of_a_mask(window: Window, padded: bool, tmp_path: Path) -> None:
    unsummed, log_sum_exp, weights = case(window, padded, biased=False)
    layer = replace(unsummed, log_sum_exp=log_sum_exp.astype(np.float32))
    open_sums = case((None, None), False, biased=False).log_sum_exp.astype(np.float32)
    open_layer = Factors(layer.query, layer.key, open_sums, layer.scale)
    allowed, places = weights[0] > 0, np.arange(N_TOKENS)
    for layers in [(layer, layer), (layer, open_layer)]:
        found = maps_of(*layers)
        attnviz.save(found, tmp_path / "a.safetensors")
        for maps in (found, attnviz.load(tmp_path / "a.safetensors")):
            np.testing.assert_allclose(maps.weights[0], weights, rtol=1e-5, atol=1e-7)
            assert np.array_equal(maps.read_allowed(0, slice(2, 9)), allowed[2:9])
            assert np.array_equal(maps.attendable[0], allowed)
            assert maps.layers_alike == bool((maps.attendable[0] == maps.attendable[1]).all())
            dense = AttentionMaps(maps.weights, maps.keys, maps.keys, maps.attendable, maps.provenance)
            assert np.array_equal(maps.real_queries, dense.real_queries)
            cells, expected = (of.read_cells_of_heads(0, places, places[::-1]) for of in (maps, dense))
            assert cells == pytest.approx(expected)


def test_more_weights_than_there_is_room_for_are_not_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found, dense = both("causal")
    monkeypatch.setattr(factored, "MAX_CELLS", dense.weights.size - 1)
    with pytest.raises(TooLarge, match="weights are more than the"):
        _ = found.weights
    assert found.rows(0, 1, slice(3, 5)).shape == (2, len(found.keys))


DAMAGE = [  # statements that leave what no model gives, and what is said of it
    ("tensors['log_sum_exp'][0, 0, 0] += 1", "do not sum to 1"),
    ("tensors['query'][0, 0, 0, 0] = np.nan", "not finite"),
    ("meta['scales'][0] = 1e30", "not finite"),
    ("tensors['log_sum_exp'] = tensors['log_sum_exp'][:, :, 1:]", "do not fit one another"),
    ("tensors['key'] = tensors['key'][1:]", "different numbers of layers"),
    ("tensors['log_sum_exp'] = tensors['log_sum_exp'].astype(np.float16)", "not float32"),
    ("tensors['query'] = tensors['query'].astype(np.float64)", "not float32"),
    ("del tensors['log_sum_exp']", "not a record of attnviz"),
    ("tensors['bias'] = np.zeros((3, 2, 4), dtype=np.float32)", "number of distances"),
    ("meta['scales'][0] = '1'", "scales.0. is not of type float"),
    ("meta |= {'schema': 5}", "schema 5 is not 2"),
    ("meta['windows'][0] = 'back'", "windows.0. is not of type tuple"),
    ("meta['windows'][0] = [-1, 0]", "window .* is invalid"),
    ("tensors['attendable_keys'] = np.ones(tensors['key'].shape[::2], dtype='f4')", "attendable_keys are not bool"),
    ("tensors['attendable_keys'] = np.tile(np.arange(tensors['key'].shape[2]) > 0, (3, 1))", "attends to nothing"),
]


@pytest.mark.parametrize(("change", "said"), DAMAGE)
def test_what_is_no_record_is_refused(change: str, said: str) -> None:
    """Of three layers, with one thing changed."""
    found, _ = both("causal without a bias")
    data = store.encode_record(found)
    tensors = {name: tensor.copy() for name, tensor in load(data).items()}
    meta = json.loads(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["attnviz"])
    exec(change, {"tensors": tensors, "meta": meta, "np": np})
    with pytest.raises(InvalidRecord, match=said):
        store.read_record(save(tensors, metadata={"attnviz": json.dumps(meta)}), "a.safetensors")


def test_factors_of_other_tokens_are_refused() -> None:
    found, _ = both("one head")
    few = replace(found.queries, pieces=("a", "b"), offsets=((0, 1), (1, 2)), special=(False,) * 2, unknown=())
    with pytest.raises(InvalidRecord, match="do not fit 2"):
        replace(found, queries=few, keys=few)
