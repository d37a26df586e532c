"""What Python alone can hand over: values of other types than are asked for end in one line of attnviz's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import attnviz
from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.specs import ModelOptions, TextOptions
from attnviz.store.cache import caching
from attnviz.text import load_corpus
from tests.made import load_encoder, random_maps

THIRDS = np.full((2, 3, 3), 1 / 3)
NO_TEXTS = [("model", 5), ("model", torch.nn.Linear(2, 2)), ("text_name", b"x"), ("trained", "yes")]


@pytest.mark.parametrize(("name", "value"), [*NO_TEXTS, ("revision", None), ("revision", 3)])
def test_what_a_file_could_not_hold_is_refused_before_the_model_runs(name: str, value: Any) -> None:
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(InvalidRecord, match=rf"{name} of a record is of type \w+\. It is"), attnviz.record(**wrong):
        pytest.fail("the block ran")
    if name != "revision":
        with pytest.raises(InvalidRecord, match=f"{name} of a record is of type"):
            attnviz.from_attentions(THIRDS, **wrong)


@pytest.mark.parametrize(
    ("several", "said"), [(2, "expected one record, got 2. Choose one"), (0, "an object of type list is not a record")]
)
def test_what_is_not_one_record_replaces_no_file(several: int, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"mine")
    with pytest.raises(InvalidRecord, match=said):
        attnviz.save([random_maps()] * several, path)
    with pytest.raises(InvalidRecord, match="an object of type NoneType is not a record"):
        attnviz.save(None, path)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=r"a\.png would be a record, not a \.png\. Name it \.safetensors or \.html"):
        attnviz.save(random_maps(), path.with_suffix(".png"))
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("path", [5, None, b"a.safetensors"])
def test_what_is_no_path_is_refused(path: Any) -> None:
    for use in (lambda: attnviz.load(path), lambda: attnviz.save(random_maps(), path)):
        with pytest.raises(InvalidOption, match=rf"path is of type {type(path).__name__}\. It is a text"):
            use()


def test_what_cannot_be_drawn_is_said_in_one_line() -> None:
    one = "nothing to draw. There is one token"
    of_two: dict[str, Any] = {"ax": Figure().subplots(1, 2), "layer": 0, "head": 0}
    for words, options, said in (("a", {}, one), ("ab", of_two, r"ndarray, not axes of matplotlib.*ax=axes\[0\]")):
        with pytest.raises(InvalidOption, match=said) as caught:
            attnviz.heatmap(random_maps(words), **options)
        assert "\n" not in str(caught.value)


def test_a_row_may_be_numpys() -> None:
    row: Any = np.int64(0)
    assert attnviz.from_attentions([THIRDS[None]], row=row).n_heads == 2


# --- What is kept from job to job, and that nothing is elsewhere ---


def test_a_source_is_opened_once_whatever_else_is_asked() -> None:
    with caching():
        first = load_corpus(TextOptions(dataset="sample", index=("0",)))
        assert load_corpus(TextOptions(dataset="sample")) is first
        assert load_corpus(TextOptions(dataset="sample", split="test")) is not first


def test_a_checkpoint_is_loaded_once_and_read_differently() -> None:
    with caching():
        short, whole = (load_encoder(ModelOptions(model="multi:2", max_tokens=n)) for n in (3, None))
        assert short.attentions[0] is whole.attentions[0]
        assert short.tokenizer is whole.tokenizer
        assert len(short.encode("one two three four").ids) == 3
        assert len(whole.encode("one two three four").ids) == 4


def test_a_model_is_made_of_the_texts_at_hand() -> None:
    """Two data sets make two vocabularies, though all else is the same."""
    spec = ModelOptions(model="random:2")
    with caching():
        train, test = (load_corpus(TextOptions(dataset="sample", split=split)) for split in ("train", "test"))
        assert load_encoder(spec, train.texts) is load_encoder(spec, train.texts)
        assert load_encoder(spec, train.texts).tokenizer.sha256 != load_encoder(spec, test.texts).tokenizer.sha256
