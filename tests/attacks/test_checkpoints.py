"""Checkpoints and records that are incomplete, cut off, of other files, or made to run code: exit 2 naming the file."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from attnviz.models.tokenizer import train
from attnviz.specs import VocabularyOptions
from tests.attacks.endings import RunHere, document, refused, worked
from tests.made import DAMAGES, TRACE, Bomb, save_classifier

WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
Damage = Callable[[Path], None]


def config(**sizes: object) -> Damage:
    """A configuration with other sizes."""

    def change(file: Path) -> None:
        content = json.loads(file.read_bytes())
        content["encoder"] |= sizes
        file.write_text(json.dumps(content), encoding="utf-8")

    return change


def schema(file: Path) -> None:
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "schema": 99}), encoding="utf-8")


def other_tensors(file: Path) -> None:
    save_file({**load_file(file), "surplus": torch.zeros(1)}, file)


def fewer_tensors(file: Path) -> None:
    tensors = load_file(file)
    del tensors["output.weight"]
    save_file(tensors, file)


def not_numbers(file: Path) -> None:
    tensors = load_file(file)
    tensors |= {name: tensor * torch.nan for name, tensor in tensors.items() if tensor.is_floating_point()}
    save_file(tensors, file)


def holes(file: Path) -> None:
    os.truncate(file, 10**11)


def no_scale(file: Path) -> None:
    tensors = load_file(file)
    del tensors["encoder.embedding.words.weight.scale"]
    save_file(tensors, file)


def zeros(file: Path) -> None:
    """The temperature too: logits of 0 over it had no probability, and no JSON."""
    save_file({name: tensor * 0 for name, tensor in load_file(file).items()}, file)


def another_vocabulary(file: Path) -> None:
    words = " ".join(f"w{number}" for number in range(500))
    file.write_text(train([words], VocabularyOptions(min_frequency=1)).to_json(), encoding="utf-8")


MISMATCHES: dict[str, tuple[str, Damage, str]] = {
    "more layers": (CONFIG, config(n_layers=2), WEIGHTS),
    "heads that do not divide": (CONFIG, config(n_heads=3), "divisible"),
    "a thousand million layers": (CONFIG, config(n_layers=10**9), CONFIG),
    "a width beyond all memory": (CONFIG, config(d_model=2**40, n_heads=1), CONFIG),
    "a width whose divisors nobody finds": (CONFIG, config(d_model=10**15 + 1, n_heads=7), CONFIG),
    "a width beyond all numbers": (CONFIG, config(d_model=10**30), CONFIG),
    "weights of 100 GB, all holes": (WEIGHTS, holes, WEIGHTS),
    "no layers": (CONFIG, config(n_layers=0), CONFIG),
    "layers that are a truth": (CONFIG, config(n_layers=True), CONFIG),
    "fewer words": (CONFIG, config(n_words=4), VOCABULARY),
    "a version to come": (CONFIG, schema, CONFIG),
    "a size that is a text": (CONFIG, config(d_model="16"), CONFIG),
    "an unknown setting": (CONFIG, config(code="import os"), CONFIG),
    "surplus tensors": (WEIGHTS, other_tensors, WEIGHTS),
    "missing tensors": (WEIGHTS, fewer_tensors, WEIGHTS),
    "weights that are no numbers": (WEIGHTS, not_numbers, "numbers that are not finite"),
    "weights that are all 0": (WEIGHTS, zeros, "temperature 0 in"),
    "int8 without a scale": (WEIGHTS, no_scale, WEIGHTS),
    "pairs of words with vectors": (CONFIG, config(n_bigrams=5), "n-grams"),
    "an unknown norm": (CONFIG, config(norm="none"), CONFIG),
    "a larger vocabulary": (VOCABULARY, another_vocabulary, VOCABULARY),
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A small classifier that is saved as trained."""
    return save_classifier(tmp_path / "checkpoint", "the cat sat on the mat", n_heads=2, n_layers=1, storage="int8")


def test_a_whole_one_is_read(checkpoint: Path, run_here: RunHere) -> None:
    (text,) = document(worked(run_here("heatmap", "--text", "the cat", "--model", checkpoint, "--json")))["texts"]
    assert text["trained"] is True
    assert text["model"].endswith("/checkpoint")  # with its parent: many folders are called so
    assert text["status"].startswith("trained, weights sha256 ")


@pytest.mark.parametrize("file", [WEIGHTS, VOCABULARY, CONFIG])
@pytest.mark.parametrize("damage", [Path.unlink, *DAMAGES.values()], ids=["missing", *DAMAGES])
def test_a_damaged_file(file: str, damage: Damage, checkpoint: Path, run_here: RunHere, tmp_path: Path) -> None:
    damage(checkpoint / file)
    refused(run_here("heatmap", "--text", "the cat", "--model", checkpoint), f"checkpoint/{file}")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]
    assert not (checkpoint / TRACE).exists()


def test_weights_that_overflow_do_not_classify(checkpoint: Path, run_here: RunHere) -> None:
    tensors = load_file(checkpoint / WEIGHTS)
    for name in [name for name, tensor in tensors.items() if tensor.is_floating_point()]:
        tensors[name].fill_(3e38 if tensors[name].dtype == torch.float32 else 6e4)
    save_file(tensors, checkpoint / WEIGHTS)
    refused(run_here("predict", "--text", "the cat", "--model", checkpoint), "answers are not numbers")


def test_labels_of_one_name(checkpoint: Path, run_here: RunHere) -> None:
    content = json.loads((checkpoint / CONFIG).read_bytes())
    (checkpoint / CONFIG).write_text(json.dumps({**content, "labels": ["same", "same"]}), encoding="utf-8")
    refused(run_here("predict", "--text", "the cat", "--model", checkpoint), CONFIG)


@pytest.mark.parametrize(("file", "damage", "said"), MISMATCHES.values(), ids=MISMATCHES)
def test_files_that_do_not_belong_together(
    file: str, damage: Damage, said: str, checkpoint: Path, run_here: RunHere, tmp_path: Path
) -> None:
    damage(checkpoint / file)
    refused(run_here("heatmap", "--text", "the cat", "--model", checkpoint), said)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_the_bomb_would_go_off(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Bomb(tmp_path / TRACE)))
    assert (tmp_path / TRACE).exists()


def test_a_pickle_beside_the_weights_is_not_looked_at(checkpoint: Path, run_here: RunHere) -> None:
    for name in ("pytorch_model.bin", "model.pt", "tokenizer.pkl"):
        DAMAGES["pickle"](checkpoint / name)
    worked(run_here("heatmap", "--text", "the cat", "--model", checkpoint))
    assert not (checkpoint / TRACE).exists()
