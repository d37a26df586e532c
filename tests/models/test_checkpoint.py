"""Checkpoints: saved then loaded is the same, in fewer bits nearly; what is damaged is refused and not run."""

import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attnviz.models.checkpoint import SCALE, load_checkpoint, pack_weights, save_checkpoint, unpack_weights
from attnviz.specs import StorageKind
from tests.made import save_classifier
from tests.process import bare_environment, said_by

TEXT = "the film was not good"


@pytest.fixture(params=["float32", "float16", "int8"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return save_classifier(tmp_path / "saved", TEXT, storage=request.param)


def test_saved_then_loaded_is_the_same(tmp_path: Path, folder: Path, request: pytest.FixtureRequest) -> None:
    storage = request.node.callspec.params["folder"]
    save_checkpoint(tmp_path / "again", load_checkpoint(folder), storage)
    assert {file.name for file in folder.iterdir()} == {"model.safetensors", "tokenizer.json", "config.json"}
    for file in folder.iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("folder", ["int8"], indirect=True)
def test_a_checkpoint_is_loaded_and_a_module_recorded_without_the_compiler_of_torch(folder: Path) -> None:
    """Which would more than double the time that a command takes."""
    script = (
        "import sys, pathlib, torch, attnviz\n"
        "from attnviz.models.checkpoint import load_checkpoint\n"
        f"load_checkpoint(pathlib.Path({str(folder)!r}))\n"
        "with attnviz.record() as records:\n"
        "    torch.nn.MultiheadAttention(2, 1)(*[torch.ones(3, 2)] * 3)\n"
        "assert len(records) == 1\n"
        "print({'torch', 'torch._dynamo', 'sympy'} & set(sys.modules))\n"
    )
    done = said_by([sys.executable, "-c", script], cwd=folder, env=bare_environment(folder))
    assert done.stdout == "{'torch'}\n", done.stderr


# --- Weights in fewer bits: how much may be lost, counted in steps of the format ---


STORAGES: tuple[StorageKind, ...] = ("float32", "float16", "int8")
EMBEDDINGS = frozenset({"words"})
seeds = st.integers(0, 2**16)


def matrix(seed: int, size: float = 1.0) -> Tensor:
    return size * torch.randn(5, 4, generator=torch.Generator().manual_seed(seed))


def there_and_back(tensor: Tensor, storage: StorageKind) -> Tensor:
    found = unpack_weights(pack_weights({"words": tensor}, EMBEDDINGS, storage))
    assert found.keys() == {"words"}
    assert found["words"].dtype == tensor.dtype
    return found["words"]


@given(seeds, st.floats(-30, 30))
def test_float32_is_the_same(seed: int, size: float) -> None:
    tensor = matrix(seed, 10**size)
    assert there_and_back(tensor, "float32").equal(tensor)


@given(seeds)
def test_float16_loses_less_than_a_thousandth(seed: int) -> None:
    tensor = matrix(seed)
    tensor[tensor.abs() < 2**-14] = 0  # smaller ones have fewer bits
    once = there_and_back(tensor, "float16")
    torch.testing.assert_close(once, tensor, rtol=1e-3, atol=0)
    torch.testing.assert_close(there_and_back(once, "float16"), once, rtol=1e-6, atol=0)


@given(seeds, st.floats(-30, 30))
def test_int8_loses_half_a_step(seed: int, size: float) -> None:
    tensor = matrix(seed, 10**size)
    step = tensor.abs().amax(dim=1, keepdim=True) / 127
    once = there_and_back(tensor, "int8")
    assert ((once - tensor).abs() <= step * 0.502).all()  # the step itself is stored in 8 bits
    torch.testing.assert_close(there_and_back(once, "int8"), once, rtol=1e-6, atol=0)  # and not rounded again


def test_a_matrix_of_zeros_has_a_step() -> None:
    """Else zero divided by it were NaN, which happens to become 0 on some processors."""
    assert (pack_weights({"words": torch.zeros(3, 2)}, EMBEDDINGS, "int8")["words" + SCALE] > 0).all()
    for storage in STORAGES:
        assert not there_and_back(torch.zeros(3, 2), storage).any()


@pytest.mark.parametrize("storage", STORAGES)
def test_only_embeddings_are_rounded(storage: StorageKind) -> None:
    weights = {"words": matrix(1), "output.weight": matrix(2), "temperature": torch.tensor(1.2345678)}
    found = pack_weights(weights, EMBEDDINGS, storage)
    for name in ("output.weight", "temperature"):
        assert found[name].equal(weights[name])
        assert unpack_weights(found)[name].equal(weights[name])
    assert found["words"].dtype == getattr(torch, storage)
    assert (found.keys() == weights.keys()) == (storage != "int8")
