"""The packaged reviews are what the rest of the program relies on."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from attnviz.text import SOURCES, Corpus
from tests.process import ROOT
from tests.text.corpora import opened, texts_of


@pytest.fixture(scope="module")
def everything() -> Corpus:
    return opened("sample", "train+test")


def test_both_splits_are_balanced_and_labels_alternate() -> None:
    for split, count in (("train", 40), ("test", 20)):
        labels = [document.label for document in opened("sample", split).documents]
        assert labels == [1, 0] * (count // 2)


def test_the_first_review_is_a_plain_sentence_for_the_first_picture() -> None:
    first = texts_of(opened("sample"))[0]
    assert 14 <= len(re.findall(r"\w+|[^\w\s]", first)) <= 18
    assert first.isascii()
    assert "\n" not in first


def test_reviews_are_of_many_kinds(everything: Corpus) -> None:
    texts = texts_of(everything)
    assert len(set(texts)) == len(texts) == 60
    for mark in ("<br /><br />", "$", "[", '"', "'", "é", "\u200d", "的", "の"):
        assert any(mark in text for text in texts), mark
    lengths = [len(text.split()) for text in texts]
    assert sum(180 <= length <= 230 for length in lengths) >= 2
    assert max(lengths) <= 230
    assert everything.notices == ()


def test_importing_the_room_imports_nothing_heavy() -> None:
    heavy = "{'datasets', 'pyarrow', 'numpy', 'huggingface_hub'}"
    code = f"import sys, attnviz.text; from attnviz.text import load_corpus; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_every_name_a_user_can_type_is_in_the_table() -> None:
    assert [plugin.name for plugin in SOURCES][:3] == ["sample", "imdb", ".parquet"]
