"""The real IMDb, where it lies beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnviz.specs import TextOptions
from attnviz.text import load_corpus

IMDB = Path(__file__).parents[2].parent / "shared/data/imdb"

pytestmark = pytest.mark.skipif(not IMDB.is_dir(), reason="no shared/data/imdb beside the checkout")


def labels_of(split: str) -> list[int | None]:
    return [document.label for document in load_corpus(TextOptions(dataset=str(IMDB), split=split)).documents]


def test_the_first_text_of_train() -> None:
    (document,) = load_corpus(TextOptions(dataset=str(IMDB), split="train[:1]")).documents
    assert document.text.startswith("I rented I AM CURIOUS-YELLOW from my video store because of all the controversy")
    assert (document.name, document.slug, document.label) == ("imdb train[0]", "train-0", 0)


@pytest.mark.parametrize(("split", "count"), [("train", 25_000), ("test", 12_500)])
def test_both_splits_are_whole_and_balanced(split: str, count: int) -> None:
    labels = labels_of(split)
    assert len(labels) == count
    assert sum(label == 1 for label in labels) == sum(label == 0 for label in labels) == count // 2


def test_an_explicit_slice_means_what_it_says() -> None:
    assert labels_of("train[:1000]") == [0] * 1000
    assert labels_of("train[-1:]+test[:1]") == [1, 0]
