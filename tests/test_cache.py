"""What is kept from job to job, and that nothing is elsewhere."""

from __future__ import annotations

from pathlib import Path

from attnviz.specs import ModelOptions, TextOptions
from attnviz.store.cache import MAX_CACHED, caching
from attnviz.text import load_corpus
from tests.made import load_encoder


def test_a_source_is_opened_once_whatever_else_is_asked() -> None:
    with caching():
        first = load_corpus(TextOptions(dataset="sample", index=("0",)))
        assert load_corpus(TextOptions(dataset="sample")) is first
        assert load_corpus(TextOptions(dataset="sample", split="test")) is not first


def test_elsewhere_a_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    spec = TextOptions(text_file=(str(file),))
    for text in ("one", "two"):
        file.write_text(text, encoding="utf-8")
        assert load_corpus(spec).documents[0].text == text


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


def test_what_was_not_used_for_longest_goes_first() -> None:
    with caching():
        first = load_corpus(TextOptions(text=("0",)))
        others = [load_corpus(TextOptions(text=(str(n),))) for n in range(1, MAX_CACHED)]
        assert load_corpus(TextOptions(text=("0",))) is first  # and is the latest now
        load_corpus(TextOptions(text=("one more",)))
        assert load_corpus(TextOptions(text=("0",))) is first
        assert load_corpus(TextOptions(text=("1",))) is not others[0]
