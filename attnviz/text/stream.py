"""Stream the texts that options name, with few of them in memory at a time. Knows no file format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from attnviz.display import replace_surrogates
from attnviz.specs import TextOptions
from attnviz.text import Document, describe_argument, load_corpus
from attnviz.text.dataset import open_parts


@dataclass(frozen=True, eq=False)
class TextStream:
    """The texts of one split or of one command line; each call of `documents` begins with the first."""

    name: str
    documents: Callable[[], Iterator[Document]]
    notices: tuple[str, ...] = ()


def stream_corpus(spec: TextOptions) -> TextStream:
    """Stream the texts of `load_corpus`, in the same order with the same names.

    Raises as `load_corpus` does; for a row that cannot be read, when it is reached.
    """
    if spec.inline:
        corpus = load_corpus(spec)
        return TextStream(corpus.name, lambda: iter(corpus.documents), corpus.notices)
    source, parts, name = open_parts(spec)

    def read_documents() -> Iterator[Document]:
        slugs = count()
        for part in parts:
            n_rows = part.needed if part.sliced else 2**62
            if n_rows is None:  # for shares and positions from the end, all rows of the split are counted
                n_rows = sum(1 for _ in source.rows(part.name))
            positions = part.positions(n_rows)
            rows = islice(source.rows(part.name), positions.start, positions.stop)
            for position, (text, label) in enumerate(rows, positions.start):
                title = f"{source.name} {part.name}[{position}]"
                yield Document(replace_surrogates(text), title, f"text-{next(slugs)}", label)

    return TextStream(name, read_documents, (*describe_argument(spec), *source.notices))
