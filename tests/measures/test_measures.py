"""Measures, also weighed by what values move, by laws that a reader can check by hand, then by plain loops."""

from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz import store
from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.measures import DEFAULT_MEASURES, MEASURES, SOME_TEXTS_MEASURES, Measure, choose_measures, measure_maps
from attnviz.measures.concentration import effective_keys, entropy, peak
from attnviz.measures.shares import distance
from attnviz.measures.weighing import weigh_values
from attnviz.models.attention import MultiHeadAttention
from attnviz.models.loading import find_model
from attnviz.records import AttentionMaps
from attnviz.registry import load
from attnviz.specs import ModelOptions
from tests.made import cross_maps, random_maps, record, tokens, uniform_maps

NAMES = [measure.name for measure in MEASURES]
PAIR = ("the", "plot", "(", "thin", ")", ",", "yet", "loved")


def pointing(*keys: int) -> AttentionMaps:
    """Each query gives all its weight to one key."""
    return record(np.eye(len(keys))[list(keys)][None, None])


@pytest.mark.parametrize("measure", MEASURES, ids=NAMES)
def test_every_line_of_the_table_loads_and_keeps_its_word(measure: Measure) -> None:
    found = load(measure)(random_maps(PAIR, n_layers=2, n_heads=3))
    assert (found.name, found.unit) == (measure.name, measure.unit)
    assert found.level == measure.level
    assert found.values.shape == ((2,) if measure.level == "layer" else (2, 3))
    assert found.values.dtype == np.float64
    if found.unit == "share":  # quantiles over texts are counted between the bounds: wider ones would be coarser
        assert 0 <= found.bounds[0] < found.bounds[1] <= 1


@pytest.mark.parametrize("measure", MEASURES, ids=NAMES)
def test_only_what_the_table_says_needs_self_attention(measure: Measure) -> None:
    if measure.self_attention_only:
        with pytest.raises(InvalidOption, match=f"^{measure.name} needs self-attention. Queries and keys"):
            measure_maps(cross_maps(), [measure.name])
    else:
        assert [found.name for found in measure_maps(cross_maps(), [measure.name])] == [measure.name]


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_uniform_attention_over_n_keys(n: int) -> None:
    maps = uniform_maps(n)
    assert entropy(maps).values == pytest.approx(log(n), abs=1e-6)
    assert effective_keys(maps).values == pytest.approx(n)
    assert peak(maps).values == pytest.approx(1 / n)
    apart = [abs(query - key) for query in range(n) for key in range(n)]
    assert distance(maps).values == pytest.approx(sum(apart) / n**2, abs=1e-5)


def test_all_weight_on_one_key() -> None:
    maps = pointing(2, 0, 1)
    assert entropy(maps).values.tolist() == [[0.0]]
    assert not np.signbit(entropy(maps).values).any()  # 0, not -0
    assert not np.signbit(entropy(pointing(0)).values).any()
    assert effective_keys(maps).values.tolist() == [[1.0]]
    assert peak(maps).values.tolist() == [[1.0]]


@pytest.mark.parametrize("causal", [False, True])
def test_padding_changes_nothing(causal: bool) -> None:
    bare = random_maps(seed=3, causal=causal)
    n = len(bare.queries)
    weights = np.zeros((1, 2, n + 5, n + 5))
    weights[:, :, :n, :n] = bare.weights
    weights[:, :, n:, 0] = 1  # what padding attends to does not count
    attendable = np.zeros((n + 5, n + 5), dtype=bool)
    attendable[:n, :n], attendable[n:, 0] = bare.attendable[0], True
    padded = record(weights, tokens(*bare.queries.pieces, *["the"] * 5), attendable=attendable)
    for one, other in zip(measure_maps(bare, ["all"]), measure_maps(padded, ["all"]), strict=True):
        assert other.values == pytest.approx(one.values, rel=1e-6), one.name
        assert one.bounds == other.bounds, one.name


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 1000), st.floats(0.01, 30), st.booleans())
def test_values_lie_within_their_bounds(n: int, n_heads: int, seed: int, sharpness: float, causal: bool) -> None:
    maps = random_maps([f"t{i % 4}" for i in range(n)], n_heads=n_heads, seed=seed, sharpness=sharpness, causal=causal)
    for measurement in measure_maps(maps, ["all"]):
        low, high = measurement.bounds
        assert (measurement.values >= low - 1e-6).all()
        assert (measurement.values <= high + 1e-6).all()


def test_rows_that_miss_one_by_a_little_are_measured_as_if_they_did_not() -> None:
    exact = random_maps(["a", "b", ",", "a", "c"], n_layers=2)
    for share in (1.0009, 0.9991):
        off = record(exact.weights * np.float32(share), exact.queries)
        for one, other in zip(measure_maps(exact, ["all"]), measure_maps(off, ["all"]), strict=True):
            assert other.values == pytest.approx(one.values, abs=2e-6), one.name


def test_measures_by_name_by_level_and_all_that_the_maps_have() -> None:
    def names(maps: AttentionMaps, *asked: Any) -> list[str]:
        return [measurement.name for measurement in measure_maps(maps, *asked)]

    maps, across = random_maps(), cross_maps()
    every = [name for name in NAMES if name not in SOME_TEXTS_MEASURES]
    assert names(maps) == list(DEFAULT_MEASURES)
    assert names(across) == ["entropy", "effective_keys", "peak"]
    assert names(maps, ["peak, Entropy,peak", "query_information"]) == ["peak", "entropy", "query_information"]
    assert names(maps, ["all"]) == [measure.name for measure in choose_measures(["peak,all"])] == every
    assert [measure.name for measure in choose_measures(["to_own_bracket,all"])] == NAMES
    assert names(across, ["all"]) == [measure.name for measure in MEASURES if not measure.self_attention_only]
    for level in ("head", "layer"):
        assert names(maps, ["vendi_score", "peak"], level) == ["peak" if level == "head" else "vendi_score"]
    with pytest.raises(InvalidOption, match="to_self needs self-attention"):
        measure_maps(across, ["all", "to_self"])


# --- Weights by what they move, of records that hold weights and of such as hold factors ---


TEXT = "the film was not good but the acting saved it"


def with_norms(*norms: float) -> AttentionMaps:
    maps = random_maps(("a", "b", "c"))
    return replace(maps, value_norms=np.tile(np.array(norms, dtype=np.float32), (1, 2, 1)))


def test_rows_are_shares_of_what_is_moved() -> None:
    maps = with_norms(2.0, 0.0, 1.0)
    found = weigh_values(maps)
    first, _, last = maps.weights[0, 0, 1]
    assert found.weights[0, 0, 1] == pytest.approx([2 * first / (2 * first + last), 0, last / (2 * first + last)])
    assert found.weighed
    assert found.value_norms is None  # it cannot be done twice
    with pytest.raises(InvalidOption, match="no value norms"):
        weigh_values(found)
    assert weigh_values(with_norms(3.0, 3.0, 3.0)).weights == pytest.approx(maps.weights, abs=1e-6)
    assert weigh_values(with_norms(0.0, 0.0, 0.0)).weights == pytest.approx(maps.weights, abs=1e-6)


@pytest.mark.parametrize("norms", [[1.0, -1.0, 2.0], [1.0, np.nan, 2.0]])
def test_norms_that_are_no_lengths_are_refused(norms: list[float]) -> None:
    with pytest.raises(InvalidRecord, match="value norms"):
        with_norms(*norms)


def test_norms_of_a_shipped_model_are_lengths_behind_its_projection() -> None:
    model: Any = find_model(ModelOptions(model="multi:4", device="cpu")).open(())
    maps = model.attention(TEXT)
    assert maps.value_norms.shape[:2] == (len(model.encoder.blocks), 4)
    with torch.no_grad():
        before = model.encoder.embedding(torch.tensor(model.encode(TEXT).ids))
        for layer, block in enumerate(model.encoder.blocks):
            (attention,) = (each for each in block.modules() if isinstance(each, MultiHeadAttention))
            states = block.attention_residual.before(before)
            for head in range(4):
                span = slice(head * attention.d_head, (head + 1) * attention.d_head)
                moved = (attention.value(states)[:, span] @ attention.output.weight[:, span].T).numpy()
                np.testing.assert_allclose(maps.value_norms[layer, head], np.linalg.norm(moved, axis=-1), rtol=1e-4)
            before = block(before)


def test_factored_records_weigh_as_dense_ones_do_and_survive_a_file(tmp_path: Path) -> None:
    model: Any = find_model(ModelOptions(model="multi:8", device="cpu")).open(())
    dense, factored = model.attention(TEXT), model.attend_factored(TEXT)
    np.testing.assert_allclose(weigh_values(factored).weights, weigh_values(dense).weights, atol=3e-6)
    for maps in (dense, factored):
        store.save(maps, tmp_path / "a.safetensors")
        again: Any = store.load(tmp_path / "a.safetensors")
        assert (again.value_norms == maps.value_norms).all()
