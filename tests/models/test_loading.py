"""What `--model` and `--heads` mean together."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from attnviz.errors import InvalidModel, InvalidOption
from attnviz.models import FORMATS, MODELS
from attnviz.models.built_in import SHIPPED, TrainedReference
from attnviz.models.loading import find_model, folder_name
from attnviz.models.protocols import AttentionModel, Classifies, Traceable
from attnviz.specs import ModelOptions, PretrainedOptions
from tests import pretrained


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
        (ModelOptions(model="recall"), "recall:8", 8),
        (ModelOptions(model="recall:2"), "recall:2", 2),
        (ModelOptions(model="dot", d_model=7), "dot", 1),
    ],
)
def test_names(spec: ModelOptions, name: str, n_heads: int) -> None:
    found = find_model(spec)
    assert (str(found), found.name, found.n_heads) == (name, name, n_heads)


def test_a_folder_is_a_checkpoint(tmp_path: Path) -> None:
    found = find_model(ModelOptions(model=str(tmp_path)))
    assert (str(found), found.name, found.n_heads) == (tmp_path.name, tmp_path.name, None)  # only its files know
    with pytest.raises(InvalidOption, match="--heads cannot be chosen for a checkpoint"):
        find_model(ModelOptions(model=str(tmp_path), heads=2))


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
    found = find_model(spec)
    shipped = found.folder if isinstance(found, TrainedReference) else None
    assert (shipped and shipped.name) == folder
    assert shipped is None or (shipped / "model.safetensors").is_file()


@pytest.mark.parametrize("option", [{"d_model": 32}, {"layers": 1}, {"tokenizer": "word"}, {"vocab": "vocabulary"}])
def test_a_checkpoint_is_taken_as_it_is(option: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(InvalidOption):
        find_model(ModelOptions(model=str(tmp_path), **option))  # type: ignore[arg-type]


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
    with pytest.raises(InvalidOption, match=problem):
        find_model(spec)


@pytest.mark.parametrize(
    "model", ["mlti", "multi:", "multi:x", "multi:-1", "multi:²", "single:2", "", "no/such/folder"]
)
def test_unknown_names_are_refused(model: str) -> None:
    with pytest.raises(InvalidModel):
        find_model(ModelOptions(model=model))


def test_a_near_name_is_offered() -> None:
    with pytest.raises(InvalidModel, match="Did you mean 'multi'"):
        find_model(ModelOptions(model="mlti"))


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


@pytest.mark.parametrize(
    ("card", "called"),
    [
        ("---\nlanguage: en\n---\n\n# all-MiniLM-L6-v2\nThis is a model.\n# Usage\n", "all-MiniLM-L6-v2"),
        ("---\nmodel-index:\n- name: org/mine\n  results: []\n---\n# BERT\n", "org/mine"),
        ("# A model for sentences\n", "minilm/model"),
        ("\x00\xff", "minilm/model"),
    ],
)
def test_a_folder_whose_name_says_nothing_is_called_as_its_card_says(card: str, called: str, tmp_path: Path) -> None:
    for folder, name in (("model", called), ("telling", "telling")):
        (tmp_path / "minilm" / folder).mkdir(parents=True)
        (tmp_path / "minilm" / folder / "README.md").write_text(card, encoding="latin-1")
        assert folder_name(tmp_path / "minilm" / folder) == name


@pytest.mark.parametrize(
    ("kind", "can"),
    [
        ("single", {Traceable, Classifies}),
        ("multi", {Traceable, Classifies}),
        ("random", {Traceable}),
        ("dot", {Traceable}),
        ("recall", {Traceable, Classifies}),
        ("checkpoint", {Traceable, Classifies}),
        ("huggingface", set()),
    ],
)
def test_a_reference_says_what_its_model_can_do(kind: str, can: set[type], tmp_path: Path) -> None:
    """Of every line of the tables; a hub's model is the one of a folder once it is fetched."""
    name = kind
    if kind == "checkpoint":
        name = str(tmp_path / "trained")
        shutil.copytree(SHIPPED / "multi-2", name)
    elif kind == "huggingface":
        pytest.importorskip("transformers", reason=pretrained.NEEDS)
        name = str(pretrained.saved(tmp_path / "bert", "bert"))
    reference = find_model(ModelOptions(model=name))
    reference.check()
    model = reference.open(["a text"])
    assert isinstance(model, AttentionModel)
    assert model.name == reference.name
    for capability in (Traceable, Classifies):
        assert isinstance(model, capability) == (capability in can)
        with nullcontext() if capability in can else pytest.raises((InvalidModel, InvalidOption)):
            reference.check(capability)


def test_every_kind_is_tested_above() -> None:
    kinds = {plugin.name for plugin in (*MODELS, *FORMATS)}
    assert kinds == {"single", "multi", "random", "dot", "recall", "checkpoint", "huggingface", "hub"}


@pytest.mark.parametrize("model", ["single", "multi:16", "random", "dot"])
def test_what_only_third_party_models_have_is_refused(model: str) -> None:
    reference = find_model(ModelOptions(model=model), PretrainedOptions(target_text="x"))
    with pytest.raises(InvalidOption, match="--target-text is for pretrained models of others"):
        reference.check()
