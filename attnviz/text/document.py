"""A text with its name and place; a corpus is what one split of one source holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


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
