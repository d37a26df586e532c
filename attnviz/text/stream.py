"""Stream the texts that options name, with few of them in memory at a time. Knows no file format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from attnviz.display import replace_surrogates
from attnviz.specs import TextOptions
from attnviz.text import Document, describe_argument, load_corpus, splits
from attnviz.text.dataset import open_parts
from attnviz.text.source import Source


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
    return TextStream(name, lambda: _read_documents(source, parts), (*describe_argument(spec), *source.notices))


def _read_documents(source: Source, parts: tuple[splits.Part, ...]) -> Iterator[Document]:
    slugs = count()
    for part in parts:
        positions = _find_positions(source, part)
        rows = islice(source.rows(part.name), positions.start, positions.stop)
        for position, (text, label) in enumerate(rows, positions.start):
            name = f"{source.name} {part.name}[{position}]"
            yield Document(replace_surrogates(text), name, f"text-{next(slugs)}", label)


def _find_positions(source: Source, part: splits.Part) -> range:
    """Return the positions of a part; for shares and positions from the end, all rows of the split are counted."""
    if not part.sliced:
        return range(2**62)
    needed = part.needed
    return part.positions(sum(1 for _ in source.rows(part.name)) if needed is None else needed)
