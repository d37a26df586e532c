"""From `--dataset` and `--split` to named texts, as a whole or one by one. Knows no file format and no library."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from attnviz.display import replace_surrogates
from attnviz.errors import InvalidSource
from attnviz.registry import suggest_name
from attnviz.specs import TextOptions
from attnviz.text import Corpus, Document, describe_argument, load_corpus, mend_surrogates, splits
from attnviz.text.files import check_encoding
from attnviz.text.local import open_source
from attnviz.text.source import Source, Wanted

DEFAULT_DATASET = "sample"


def read_dataset(spec: TextOptions) -> Corpus:
    """Read the chosen part of a data set, in order. Raises InvalidOption, InvalidSource."""
    source, parts, name = open_parts(spec)
    needed: dict[str, int | None] = {}
    for part in parts:
        so_far = needed.get(part.name, 0)
        needed[part.name] = None if so_far is None or part.needed is None else max(so_far, part.needed)
    rows = {split: source.read(split, most) for split, most in needed.items()}
    selected: dict[str, Document] = {}
    for part in parts:
        stem = re.sub(r"[^A-Za-z0-9._-]", "-", part.name)  # part of a folder's name
        for position in part.positions(len(rows[part.name])):
            text, label = rows[part.name][position]
            slug, again = f"{stem}-{position}", 1
            while slug in selected:  # slices may overlap, so one text may occur twice, but each has its own folder
                again += 1
                slug = f"{stem}-{position}-again-{again}"
            selected[slug] = Document(text, f"{source.name} {part.name}[{position}]", slug, label)
    if not selected:
        sizes = {split: len(source.read(split, None)) for split in rows}
        counts = (f"{split} has {size} text{'' if size == 1 else 's'}" for split, size in sizes.items())
        raise InvalidSource(f"{name} selects no texts", hint=f"The split {', '.join(counts)}.")
    documents, notices = mend_surrogates(selected.values())
    return Corpus(name, documents, (*source.notices, *notices))


def open_parts(spec: TextOptions) -> tuple[Source, tuple[splits.Part, ...], str]:
    """Open a source; return it, its chosen parts (else its default split) and the name of both.

    Raises InvalidOption for an invalid --split, InvalidSource for a source that cannot be opened or lacks the split.
    """
    chosen = None if spec.split is None else splits.parse(spec.split)  # checked first: to open a source may be slow
    check_encoding(spec.encoding)
    wanted = Wanted(spec.text_column, spec.label_column, spec.encoding)
    source = open_source(DEFAULT_DATASET if spec.dataset is None else spec.dataset, wanted)
    if chosen is None and "train" not in source.splits and len(source.splits) != 1:
        hint = f"Choose with --split: {', '.join(source.splits)}."
        raise InvalidSource(f"{source.name} has no split train", hint=hint)
    parts = chosen or (splits.Part("train" if "train" in source.splits else source.splits[0]),)
    for part in parts:
        if part.name not in source.splits:
            raise InvalidSource(
                f"{source.name} has no split {part.name!r}", hint=suggest_name(part.name, source.splits)
            )
    return source, parts, f"{source.name} {'+'.join(map(str, parts))}"


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
