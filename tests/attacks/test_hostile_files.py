"""Files that others made: vocabularies, data sets and checkpoints that are damaged, endless or dangerous."""

import json
import os
import pickle
import shutil
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import torch
from PIL import Image
from pyarrow import parquet
from safetensors.torch import load_file, save_file

import attnviz
from attnviz.errors import InvalidModel, InvalidSource
from attnviz.models import tokenizer
from attnviz.models.huggingface.files import find_files
from attnviz.models.huggingface.weights import load_weights
from attnviz.models.tokenizer import train
from attnviz.specs import TextOptions, VocabularyOptions
from attnviz.text import load_corpus
from tests.attacks.endings import RunHere, document, refused, worked
from tests.made import DAMAGES, TRACE, Bomb, known, save_classifier
from tests.pretrained import configured
from tests.process import ROOT

STORIES = ROOT.parent / "shared/models/stories260K"


def load_vocabulary(folder: Path, **changes: Any) -> tokenizer.TextTokenizer:
    """A vocabulary that is whole but for these parts, read from its file."""
    found = json.loads(tokenizer.train(["a good film"] * 3, VocabularyOptions(min_frequency=1)).to_json())
    for name, value in changes.items():
        part, _, key = name.partition("__")
        if key:
            found[part][key] = value
        else:
            found[part] = value
    (folder / "tokenizer.json").write_text(json.dumps(found), encoding="utf-8")
    return tokenizer.load(folder)


def marker(n: int) -> dict[str, Any]:
    piece = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
    tokens = {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}}
    return {"type": "TemplateProcessing", "single": [piece] * n, "pair": [piece], "special_tokens": tokens}


def charsmap(table: bytes) -> dict[str, Any]:
    return {"type": "Precompiled", "precompiled_charsmap": b64encode(table).decode()}


def bpe(prefix: str, *merges: Any) -> dict[str, Any]:
    entries = {"[UNK]": 1, "a": 3, "##b": 4, "ab": 5}
    return {"type": "BPE", "continuing_subword_prefix": prefix, "vocab": entries, "merges": merges}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model__vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "a": 3_999_999_999}}, "has the id 3,999,999,999"),
        ({"model__vocab": {}}, "has an empty vocabulary"),
        ({"model__vocab": {"a": 0}}, "lacks its token for unknown words"),
        ({"post_processor": marker(100_000)}, "puts 100,000 markers around a text"),
        ({"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 4096}}, "4,096 times as long"),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 9}] * 5}},
            "59,049 times as long",
        ),
        ({"normalizer": charsmap(b"\xff\xff\xff\xff" + b"a" * 50)}, "has a damaged table of characters"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "!"}}, "has a damaged table of characters"),
        # What a library panics at while it loads.
        ({"normalizer": charsmap(b"\0\0\0\0\xff")}, r"tokenizer\.json is not a tokenizer\.json: Precompiled"),
        ({"model": bpe("##", "a b")}, "has merges whose second part does not begin with '##'"),
        ({"model": bpe("#" * 65)}, "marks pieces by 65 characters"),
        ({"model__max_input_chars_per_word": 10**18}, "cuts words of up to 1,000,000,000,000,000,000 characters"),
        ({"added_tokens": [{"id": 9, "content": "a" * (2**20 + 1)}]}, "adds tokens of 1,048,577 characters"),
    ],
)  # fmt: skip
def test_a_vocabulary_is_bounded_before_it_is_built(changes: dict[str, Any], problem: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=problem):
        load_vocabulary(tmp_path, **changes)


def test_pieces_with_a_prefix_are_read(tmp_path: Path) -> None:
    assert load_vocabulary(tmp_path, model=bpe("##", "a ##b")).encode("ab").ids == (5,)


def test_a_pattern_that_panics_is_an_error(tmp_path: Path) -> None:
    """pyo3's PanicException is no Exception: every handler let it pass."""
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    found = load_vocabulary(tmp_path, pre_tokenizer=split)
    assert found.encode("a").tokens.pieces == ("a",)
    with pytest.raises(InvalidModel, match=r"fails on this text: .*retry-limit"):
        found.encode("a" * 40 + "!")


def test_one_text_of_a_parquet_file_is_bounded(tmp_path: Path) -> None:
    table = pyarrow.table({"text": ["a" * (2**24 + 1)], "label": ["pos"]})
    parquet.write_table(table, tmp_path / "a.parquet", compression="zstd")
    assert (tmp_path / "a.parquet").stat().st_size < 10_000
    with pytest.raises(InvalidSource, match=r"row 0: a text of 16,777,217 characters. At most 16 MiB"):
        load_corpus(TextOptions(dataset=str(tmp_path / "a.parquet")))


@pytest.mark.parametrize("n_labels", [10**9, 1e12])
def test_labels_of_a_config_are_bounded(n_labels: float, tmp_path: Path) -> None:
    if not STORIES.exists():
        pytest.skip("needs ../shared/models")
    copy = tmp_path / "model"
    shutil.copytree(STORIES, copy, copy_function=shutil.copyfile)
    configured(copy, num_labels=n_labels)
    files = find_files(copy, "", 4.0)
    with pytest.raises(InvalidModel, match=r"says [0-9,]+ labels. At most 100,000"):
        load_weights(files, "model", torch.device("cpu"), 4.0)


def test_tokens_that_settings_add_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_bytes(b" " * (2**23 + 1))
    with pytest.raises(InvalidModel, match=r"tokenizer_config\.json is 8 MiB long, at most 8 MiB are read"):
        find_files(tmp_path, "", 4.0)


def test_what_is_clear_of_an_image_is_white(tmp_path: Path) -> None:
    Image.fromarray(np.full((40, 60, 4), 128, dtype=np.uint8)).save(tmp_path / "clear.png")
    pixels = known(attnviz.Grid(2, 2, image=tmp_path / "clear.png").pixels)
    assert pixels.min() == pixels.max() == 191  # half-clear grey on white paper


# --- Checkpoints and records that are incomplete, of other files, or made to run code: exit 2 naming the file ---


WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
Damage = Callable[[Path], None]


def config(**sizes: object) -> Damage:
    """A configuration with other sizes."""

    def change(file: Path) -> None:
        content = json.loads(file.read_bytes())
        content["encoder"] |= sizes
        file.write_text(json.dumps(content), encoding="utf-8")

    return change


def setting(**changes: object) -> Damage:
    return lambda file: configured(file.parent, **changes)


def without(name: str) -> Damage:
    """A tensor less."""

    def change(file: Path) -> None:
        tensors = load_file(file)
        del tensors[name]
        save_file(tensors, file)

    return change


def times(factor: float) -> Damage:
    """All numbers, the temperature too: with 0 logits of 0 over it had no probability, and no JSON."""

    def change(file: Path) -> None:
        tensors = load_file(file)
        tensors |= {name: tensor * factor for name, tensor in tensors.items() if tensor.is_floating_point()}
        save_file(tensors, file)

    return change


def another_vocabulary(file: Path) -> None:
    words = " ".join(f"w{number}" for number in range(500))
    file.write_text(train([words], VocabularyOptions(min_frequency=1)).to_json(), encoding="utf-8")


MISMATCHES: dict[str, tuple[str, Damage, str]] = {
    "more layers": (CONFIG, config(n_layers=2), WEIGHTS),
    "heads that do not divide": (CONFIG, config(n_heads=3), "divisible"),
    "a thousand million layers": (CONFIG, config(n_layers=10**9), CONFIG),
    "a width whose divisors nobody finds": (CONFIG, config(d_model=10**15 + 1, n_heads=7), CONFIG),
    "a width beyond all numbers": (CONFIG, config(d_model=10**30), CONFIG),
    "weights of 100 GB, all holes": (WEIGHTS, lambda file: os.truncate(file, 10**11), WEIGHTS),
    "no layers": (CONFIG, config(n_layers=0), CONFIG),
    "fewer words": (CONFIG, config(n_words=4), VOCABULARY),
    "a version to come": (CONFIG, setting(schema=99), CONFIG),
    "labels of one name": (CONFIG, setting(labels=["same", "same"]), CONFIG),
    "an unknown setting": (CONFIG, config(code="import os"), CONFIG),
    "surplus tensors": (WEIGHTS, lambda f: save_file({**load_file(f), "surplus": torch.zeros(1)}, f), WEIGHTS),
    "missing tensors": (WEIGHTS, without("output.weight"), WEIGHTS),
    "weights that are no numbers": (WEIGHTS, times(torch.nan), "numbers that are not finite"),
    "weights that are all 0": (WEIGHTS, times(0), "temperature 0 in"),
    "int8 without a scale": (WEIGHTS, without("encoder.embedding.words.weight.scale"), WEIGHTS),
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
