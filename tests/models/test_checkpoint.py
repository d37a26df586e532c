"""Checkpoints: saved then loaded is the same; what is damaged is refused by name, and nothing in it is run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from attnviz.errors import InvalidModel
from attnviz.models.checkpoint import load_checkpoint, save_checkpoint
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


@pytest.mark.parametrize("where", ["config", "encoder"], ids=["weights", "vectors"])
@pytest.mark.parametrize("schema", [2, 3])
def test_a_model_of_an_earlier_version_is_read_unless_it_has_n_grams(folder: Path, where: str, schema: int) -> None:
    """Weights of pairs beside the encoder, or vectors of pairs in it; without them the earlier file says 0."""
    file = folder / "config.json"
    for n_bigrams in (0, 65_536):
        found = json.loads(file.read_bytes()) | {"schema": schema}
        (found if where == "config" else found["encoder"])["n_bigrams"] = n_bigrams
        file.write_text(json.dumps(found), encoding="utf-8")
        if not n_bigrams:
            load_checkpoint(folder)
    with pytest.raises(InvalidModel, match="is of a model with n-grams") as refused:
        load_checkpoint(folder)
    assert str(file) in refused.value.problem
    assert "attnviz train" in refused.value.hint
