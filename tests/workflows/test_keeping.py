"""What is kept from job to job, and that nothing is elsewhere."""

from __future__ import annotations

from pathlib import Path

from attnviz.models.names import SHIPPED
from attnviz.specs.model import ModelOptions
from attnviz.specs.text import TextOptions
from attnviz.workflows.keeping import MOST_KEPT, attender_of, checkpoint_of, corpus_of, keeping


def test_a_source_is_opened_once_whatever_else_is_asked() -> None:
    with keeping():
        first = corpus_of(TextOptions(dataset="sample", index=("0",)))
        assert corpus_of(TextOptions(dataset="sample")) is first
        assert corpus_of(TextOptions(dataset="sample", split="test")) is not first


def test_elsewhere_a_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    spec = TextOptions(text_file=(str(file),))
    for text in ("one", "two"):
        file.write_text(text, encoding="utf-8")
        assert corpus_of(spec).documents[0].text == text


def test_a_checkpoint_is_loaded_once_and_read_differently() -> None:
    with keeping():
        assert checkpoint_of(SHIPPED / "multi-2") is checkpoint_of(SHIPPED / "multi-2")
        corpus = corpus_of(TextOptions(dataset="sample"))
        short, whole = (attender_of(ModelOptions(model="multi:2", max_tokens=n), corpus) for n in (3, None))
        assert short.tokenizer is whole.tokenizer
        assert len(short.encode("one two three four").ids) == 3
        assert len(whole.encode("one two three four").ids) == 4


def test_a_model_is_made_of_the_texts_at_hand() -> None:
    """Two data sets make two vocabularies, though all else is the same."""
    spec = ModelOptions(model="random:2")
    with keeping():
        train, test = (corpus_of(TextOptions(dataset="sample", split=split)) for split in ("train", "test"))
        assert attender_of(spec, train) is attender_of(spec, train)
        assert attender_of(spec, train).tokenizer.sha256 != attender_of(spec, test).tokenizer.sha256


def test_what_was_not_used_for_longest_goes_first() -> None:
    with keeping():
        first = corpus_of(TextOptions(text=("0",)))
        others = [corpus_of(TextOptions(text=(str(n),))) for n in range(1, MOST_KEPT)]
        assert corpus_of(TextOptions(text=("0",))) is first  # and is the latest now
        corpus_of(TextOptions(text=("one more",)))
        assert corpus_of(TextOptions(text=("0",))) is first
        assert corpus_of(TextOptions(text=("1",))) is not others[0]
