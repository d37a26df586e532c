"""The packaged reviews are what the rest of the program relies on."""

from __future__ import annotations

import pytest

from attnviz.text import Corpus
from tests.text.corpora import opened, texts_of


@pytest.fixture(scope="module")
def everything() -> Corpus:
    return opened("sample", "train+test+zh+ja")


def test_both_splits_are_balanced_and_labels_alternate() -> None:
    for split, count in (("train", 40), ("test", 20)):
        labels = [document.label for document in opened("sample", split).documents]
        assert labels == [1, 0] * (count // 2)


def test_reviews_are_of_many_kinds(everything: Corpus) -> None:
    texts = texts_of(everything)
    assert len(set(texts)) == len(texts) == 68
    for mark in ("\n\n", "$", "[", '"', "'", "é", "\u200d", "的", "の"):
        assert any(mark in text for text in texts), mark
    lengths = [len(text.split()) for text in texts]
    assert sum(180 <= length <= 230 for length in lengths) >= 2
    assert max(lengths) <= 230
    assert everything.notices == ()
