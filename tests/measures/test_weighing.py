"""Weights by what they move, of records that hold weights and of such as hold factors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnviz import store
from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.measures.weighing import weigh_values
from attnviz.models.attention import MultiHeadAttention
from attnviz.models.loading import find_model
from attnviz.records import AttentionMaps
from attnviz.specs import ModelOptions
from tests.made import random_maps
from tests.pretrained import stories

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
            before, _ = block(before)


@pytest.mark.parametrize("name", ["multi:8", "single", "stories"])
def test_factored_records_weigh_as_dense_ones_do_and_survive_a_file(name: str, tmp_path: Path) -> None:
    model: Any = find_model(ModelOptions(model=str(stories()) if name == "stories" else name, device="cpu")).open(())
    dense, factored = model.attention(TEXT), model.attend_factored(TEXT)
    np.testing.assert_allclose(weigh_values(factored).weights, weigh_values(dense).weights, atol=3e-6)
    for maps in (dense, factored):
        store.save(maps, tmp_path / "a.safetensors")
        again: Any = store.load(tmp_path / "a.safetensors")
        assert (again.value_norms == maps.value_norms).all()
