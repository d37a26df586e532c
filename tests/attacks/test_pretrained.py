"""Folders of other people's models that are incomplete, cut off, or made to run code: exit 2, one line, nothing run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import pretrained as made
from tests.attacks.endings import RunHere, refused, worked
from tests.made import TRACE, half, pickled

pytest.importorskip("transformers", reason=made.NEEDS)

WEIGHTS, CONFIG, INDEX = "model.safetensors", "config.json", "model.safetensors.index.json"
CODE = f"open({TRACE!r}, 'w').close()\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT as its author would save it. Not to be changed."""
    return made.saved(tmp_path_factory.mktemp("whole") / "bert", "bert")


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(whole, tmp_path / "model"))


def only_pickled(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    pickled(folder / "pytorch_model.bin")


def code_of_its_own(folder: Path, model_type: str) -> None:
    """What the hub calls remote code, for the configuration, the model and the tokenizer."""
    (folder / "theirs.py").write_text(CODE + "class Config: pass\nclass Model: pass\nclass Tokens: pass\n")
    mapped = {"AutoConfig": "theirs.Config", "AutoModel": "theirs.Model"}
    made.configured(folder, model_type=model_type, auto_map=mapped)
    file = folder / "tokenizer_config.json"
    tokens = json.loads(file.read_text()) | {"auto_map": {"AutoTokenizer": ["theirs.Tokens", None]}}
    file.write_text(json.dumps(tokens))


def indexed(*names: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / WEIGHTS).unlink()
        (folder / INDEX).write_text(json.dumps({"weight_map": {str(i): name for i, name in enumerate(names)}}))

    return damage


def without_a_weight(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / WEIGHTS)
    del tensors["embeddings.word_embeddings.weight"]
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def a_header_too_long(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes((2**60).to_bytes(8, "little") + b"{}")


def header(content: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        written = json.dumps(content).encode()
        (folder / WEIGHTS).write_bytes(len(written).to_bytes(8, "little") + written)

    return damage


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "weights only pickled": (only_pickled, "pytorch_model.bin, a form that can run code"),
    "a pickle called safetensors": (lambda f: pickled(f / WEIGHTS), f"{WEIGHTS} is not a whole safetensors file"),
    "code for an unknown type": (lambda f: code_of_its_own(f, "theirs"), "needs program code of its own"),
    "half of the weights": (lambda f: half(f / WEIGHTS), f"{WEIGHTS} is not a whole safetensors file: Error while"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), f"holds no {WEIGHTS}"),
    "a weight less": (
        without_a_weight,
        "lacks weights that its config.json asks for: embeddings.word_embeddings.weight",
    ),
    "an endless header": (a_header_too_long, "header too large"),
    "a header that lies": (header({"a": {"shape": [2**40], "data_offsets": [0, 2**40]}}), "missing field `dtype`"),
    "an index into other folders": (indexed("../model.safetensors"), "names files that are not safetensors of this"),
    "an index of a file that is not there": (indexed("a.safetensors"), f"lacks a.safetensors, which {INDEX} names"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "holds no tokenizer.json"),
    "half of a tokenizer": (lambda f: half(f / "tokenizer.json"), "is not a tokenizer.json: it is not JSON"),
    "a type that nobody knows": (lambda f: made.configured(f, model_type="theirs"), "of a type that transformers"),
    "a million layers": (lambda f: made.configured(f, num_hidden_layers=10**6), "says 1,000,000 layers"),
    "a huge width": (lambda f: made.configured(f, hidden_size=10**7), "allowed are 4"),
    "other sizes": (lambda f: made.configured(f, vocab_size=64), "its weights have other sizes than config.json"),
    "a size that is a word": (lambda f: made.configured(f, hidden_size="wide"), "cannot be loaded"),
}


@pytest.mark.parametrize(("damage", "says"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_or_hostile_folder(
    damage: Callable[[Path], Any], says: str, folder: Path, run_here: RunHere, tmp_path: Path
) -> None:
    damage(folder)
    run = run_here("heatmap", "--model", "model", "--text", "the cat", "--out", "out")
    refused(run, says)
    assert not list(tmp_path.rglob(TRACE))
    assert not (tmp_path / "out").exists()


def test_code_of_its_own_is_not_run_where_the_library_has_the_model(
    folder: Path, run_here: RunHere, tmp_path: Path
) -> None:
    code_of_its_own(folder, "bert")
    worked(run_here("heatmap", "--model", folder, "--text", "the cat", "--out", "out"))
    assert not (tmp_path / TRACE).exists()


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"num_attention_heads": -1}, "RuntimeError: invalid shape dimension"),
        ({"is_encoder_decoder": True}, "TypeError: BertEncoder.forward()"),
        ({"chunk_size_feed_forward": 3}, "ValueError: The dimension to be chunked"),
    ],
)
def test_a_model_that_fails_by_itself(
    setting: dict[str, object], says: str, folder: Path, run_here: RunHere, tmp_path: Path
) -> None:
    made.configured(folder, **setting)
    refused(run_here("heatmap", "--model", "model", "--text", "the cat"), "model fails by itself", says, code=1)
    assert not (tmp_path / "attention").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--d-model", "64"), "--d-model cannot be chosen for a pretrained model"),
        (("--vocab", "v"), "a pretrained model brings its own vocabulary"),
        (("--causal",), "--causal cannot be chosen for a pretrained model"),
        (("--show-padding", "--max-tokens", "9"), "--show-padding cannot be chosen for a pretrained model"),
    ],
)
def test_what_cannot_be_asked_of_a_model_of_others(
    options: tuple[str, ...], says: str, whole: Path, run_here: RunHere
) -> None:
    refused(run_here("heatmap", "--model", whole, "--text", "the cat", *options), says)
