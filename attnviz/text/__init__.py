"""Where texts come from: a text with its name and place, and the tables of sources.

Knows files and data sets; must not know tokens, models or pictures.

Importing this room imports neither datasets nor pyarrow: each source does so when it is opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attnviz.display import first_of
from attnviz.registry import Plugin

if TYPE_CHECKING:
    from attnviz.text.corpus import load_corpus as load_corpus

__all__ = ["ENDINGS", "NAMES", "SOURCES", "Corpus", "Document", "load_corpus"]

# Each opens with (text column or None) and gives a Source.
NAMES: tuple[Plugin, ...] = (
    Plugin("sample", "attnviz.text.sample:open_sample", "sixty short reviews that come with attnviz"),
    Plugin("imdb", "attnviz.text.hub:open_imdb", "the Large Movie Review Dataset, stanfordnlp/imdb on the hub"),
)

# Each reads with (path, text column or None, how many texts are needed or None) and gives Rows.
ENDINGS: tuple[Plugin, ...] = (
    Plugin(".parquet", "attnviz.text.parquet:read_parquet", "a Parquet table"),
    Plugin(".jsonl", "attnviz.text.tables:read_jsonl", "one JSON object a line"),
    Plugin(".ndjson", "attnviz.text.tables:read_jsonl", "one JSON object a line"),
    Plugin(".csv", "attnviz.text.tables:read_csv", "a table with commas, names of columns first"),
    Plugin(".tsv", "attnviz.text.tables:read_tsv", "a table with tabs, names of columns first"),
    Plugin(".txt", "attnviz.text.tables:read_txt", "one text a line"),
)

SOURCES = (*NAMES, *ENDINGS)
REPLACEMENT = "\ufffd"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # in a Python string a surrogate is always a lone one
_NAMED = 3  # in a notice; the rest is counted


@dataclass(frozen=True)
class Document:
    """One text, exactly as its source holds it."""

    text: str
    name: str  # for titles: "sample train[0]", "review.txt", "text 1"
    slug: str  # for folder names, made from names and numbers and never from the text: "train-0", "text-0"
    label: int | None = None


@dataclass(frozen=True, eq=False)
class Corpus:
    """The texts of one split or of one command line, in order.

    A document's name holds its place in the whole split: the first text of `train[10:20]` is called `train[10]`.
    """

    name: str
    documents: Sequence[Document]
    notices: tuple[str, ...] = ()  # what the user has to know, such as replaced bytes

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """One object for each corpus, so that a model that is made of them can be known by it."""
        return tuple(document.text for document in self.documents)


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which no encoding has."""
    return _LONE_SURROGATE.sub(REPLACEMENT, text)


def mended(documents: Iterable[Document], already: Sequence[str] = ()) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """The documents without lone surrogates (an argument's stray bytes, JSON's "\\ud800") and one notice about all.

    `already` names texts whose bytes were replaced when they were read.
    """
    clean: list[Document] = []
    names = list(already)
    for document in documents:
        text = without_surrogates(document.text)
        if text != document.text:
            names.append(document.name)
            document = replace(document, text=text)
        clean.append(document)
    told = first_of(list(dict.fromkeys(names)), _NAMED)
    notice = f"{told}: what is not valid Unicode was replaced by {REPLACEMENT} (U+FFFD)"
    return tuple(clean), (notice,) if names else ()


def __getattr__(name: str) -> Any:
    if name == "load_corpus":
        from attnviz.text.corpus import load_corpus

        return load_corpus
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
