"""What `--model` and `--heads` mean together."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnviz.errors import BadModel, BadOption
from attnviz.models.names import folder_name, resolve
from attnviz.specs.model import ModelOptions


@pytest.mark.parametrize(
    ("spec", "name", "n_heads"),
    [
        (ModelOptions(), "multi:8", 8),
        (ModelOptions(heads=4), "multi:4", 4),
        (ModelOptions(heads=1), "single", 1),
        (ModelOptions(model="multi:2"), "multi:2", 2),
        (ModelOptions(model="multi:2", heads=2), "multi:2", 2),
        (ModelOptions(model="single"), "single", 1),
        (ModelOptions(model="random:16"), "random:16", 16),
        (ModelOptions(model="random", heads=4), "random:4", 4),
        (ModelOptions(model="random:1"), "random:1", 1),
        (ModelOptions(model="dot"), "dot", 1),
        (ModelOptions(model="dot", d_model=7), "dot", 1),
    ],
)
def test_names(spec: ModelOptions, name: str, n_heads: int) -> None:
    found = resolve(spec)
    assert (str(found), found.n_heads) == (name, n_heads)


def test_a_folder_is_a_checkpoint(tmp_path: Path) -> None:
    assert resolve(ModelOptions(model=str(tmp_path))).folder == tmp_path
    with pytest.raises(BadOption, match="--heads cannot be chosen for a checkpoint"):
        resolve(ModelOptions(model=str(tmp_path), heads=2))


@pytest.mark.parametrize(
    ("spec", "folder"),
    [
        (ModelOptions(), "multi-8"),
        (ModelOptions(heads=4), "multi-4"),
        (ModelOptions(model="multi:2", seed=3, max_tokens=9, causal=True), "multi-2"),
        (ModelOptions(model="single"), "single"),
        (ModelOptions(heads=1), "single"),
        (ModelOptions(heads=16), None),
        (ModelOptions(d_model=32), None),
        (ModelOptions(layers=1), None),
        (ModelOptions(vocab="vocabulary"), None),
        (ModelOptions(tokenizer="word"), None),
        (ModelOptions(model="random:8"), None),
        (ModelOptions(model="random:1"), None),
        (ModelOptions(model="dot"), None),
    ],
)
def test_a_trained_model_is_taken_as_it_is_or_not_at_all(spec: ModelOptions, folder: str | None) -> None:
    found = resolve(spec).folder
    assert (found and found.name) == folder
    assert found is None or (found / "model.safetensors").is_file()


@pytest.mark.parametrize("option", [{"d_model": 32}, {"layers": 1}, {"tokenizer": "word"}, {"vocab": "vocabulary"}])
def test_a_checkpoint_is_taken_as_it_is(option: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(BadOption):
        resolve(ModelOptions(model=str(tmp_path), **option))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (ModelOptions(heads=7), "64 is not divisible by 7"),
        (ModelOptions(heads=0), "64 is not divisible by 0"),
        (ModelOptions(heads=-1), "64 is not divisible by -1"),
        (ModelOptions(heads=10**9), "64 is not divisible by 1000000000"),
        (ModelOptions(d_model=0), "d_model 0 is not a size"),
        (ModelOptions(d_model=10**9), "d_model 1000000000 is too large"),
        (ModelOptions(layers=0), "--layers 0"),
        (ModelOptions(model="dot", layers=2), "one layer"),
        (ModelOptions(model="single", heads=8), "--heads 8 contradicts --model single"),
        (ModelOptions(model="dot", heads=2), "--heads 2 contradicts --model dot"),
        (ModelOptions(model="multi:4", heads=8), "--heads 8 contradicts --model multi:4"),
    ],
)
def test_contradictions_are_refused(spec: ModelOptions, problem: str) -> None:
    with pytest.raises(BadOption, match=problem):
        resolve(spec)


@pytest.mark.parametrize(
    "model", ["mlti", "multi:", "multi:x", "multi:-1", "multi:²", "single:2", "", "no/such/folder"]
)
def test_unknown_names_are_refused(model: str) -> None:
    with pytest.raises(BadModel):
        resolve(ModelOptions(model=model))


def test_a_near_name_is_offered() -> None:
    with pytest.raises(BadModel, match="Did you mean 'multi'"):
        resolve(ModelOptions(model="mlti"))


@pytest.mark.parametrize(
    ("path", "called"),
    [
        ("mine", "mine"),
        ("minilm/model", "minilm/model"),
        ("runs/one/checkpoint", "one/checkpoint"),
        ("models--org--a-name/snapshots/0123abcd", "org/a-name"),
        ("models--org--a-name/other/0123abcd", "0123abcd"),
    ],
)
def test_a_folder_is_called_so_that_it_tells_which_model_it_holds(path: str, called: str, tmp_path: Path) -> None:
    assert folder_name(tmp_path / path) == called
