"""What `--model` and `--heads` mean together."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnviz.errors import BadModel, BadOption
from attnviz.models.names import folder_name, resolve
from attnviz.specs import ModelSpec


@pytest.mark.parametrize(
    ("spec", "name", "n_heads"),
    [
        (ModelSpec(), "multi:8", 8),
        (ModelSpec(heads=4), "multi:4", 4),
        (ModelSpec(heads=1), "single", 1),
        (ModelSpec(model="multi:2"), "multi:2", 2),
        (ModelSpec(model="multi:2", heads=2), "multi:2", 2),
        (ModelSpec(model="single"), "single", 1),
        (ModelSpec(model="random:16"), "random:16", 16),
        (ModelSpec(model="random", heads=4), "random:4", 4),
        (ModelSpec(model="random:1"), "random:1", 1),
        (ModelSpec(model="dot"), "dot", 1),
        (ModelSpec(model="dot", d_model=7), "dot", 1),
    ],
)
def test_names(spec: ModelSpec, name: str, n_heads: int) -> None:
    found = resolve(spec)
    assert (str(found), found.n_heads) == (name, n_heads)


def test_a_folder_is_a_checkpoint(tmp_path: Path) -> None:
    assert resolve(ModelSpec(model=str(tmp_path))).folder == tmp_path
    with pytest.raises(BadOption, match="--heads cannot be chosen for a checkpoint"):
        resolve(ModelSpec(model=str(tmp_path), heads=2))


@pytest.mark.parametrize(
    ("spec", "folder"),
    [
        (ModelSpec(), "multi-8"),
        (ModelSpec(heads=4), "multi-4"),
        (ModelSpec(model="multi:2", seed=3, max_tokens=9, causal=True), "multi-2"),
        (ModelSpec(model="single"), "single"),
        (ModelSpec(heads=1), "single"),
        (ModelSpec(heads=16), None),
        (ModelSpec(d_model=32), None),
        (ModelSpec(layers=1), None),
        (ModelSpec(vocab="vocabulary"), None),
        (ModelSpec(tokenizer="word"), None),
        (ModelSpec(model="random:8"), None),
        (ModelSpec(model="random:1"), None),
        (ModelSpec(model="dot"), None),
    ],
)
def test_a_trained_model_is_taken_as_it_is_or_not_at_all(spec: ModelSpec, folder: str | None) -> None:
    found = resolve(spec).folder
    assert (found and found.name) == folder
    assert found is None or (found / "model.safetensors").is_file()


@pytest.mark.parametrize("option", [{"d_model": 32}, {"layers": 1}, {"tokenizer": "word"}, {"vocab": "vocabulary"}])
def test_a_checkpoint_is_taken_as_it_is(option: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(BadOption):
        resolve(ModelSpec(model=str(tmp_path), **option))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (ModelSpec(heads=7), "64 is not divisible by 7"),
        (ModelSpec(heads=0), "64 is not divisible by 0"),
        (ModelSpec(heads=-1), "64 is not divisible by -1"),
        (ModelSpec(heads=10**9), "64 is not divisible by 1000000000"),
        (ModelSpec(d_model=0), "d_model 0 is not a size"),
        (ModelSpec(d_model=10**9), "--d-model 1000000000 is too large"),
        (ModelSpec(layers=0), "--layers 0"),
        (ModelSpec(model="dot", layers=2), "one layer"),
        (ModelSpec(model="single", heads=8), "--heads 8 contradicts --model single"),
        (ModelSpec(model="dot", heads=2), "--heads 2 contradicts --model dot"),
        (ModelSpec(model="multi:4", heads=8), "--heads 8 contradicts --model multi:4"),
    ],
)
def test_contradictions_are_refused(spec: ModelSpec, problem: str) -> None:
    with pytest.raises(BadOption, match=problem):
        resolve(spec)


@pytest.mark.parametrize(
    "model", ["mlti", "multi:", "multi:x", "multi:-1", "multi:²", "single:2", "", "no/such/folder"]
)
def test_unknown_names_are_refused(model: str) -> None:
    with pytest.raises(BadModel):
        resolve(ModelSpec(model=model))


def test_a_near_name_is_offered() -> None:
    with pytest.raises(BadModel, match="Did you mean 'multi'"):
        resolve(ModelSpec(model="mlti"))


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
