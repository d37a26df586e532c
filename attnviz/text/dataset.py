"""From `--dataset` and `--split` to named texts. Knows no file format and no library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from attnviz.errors import InvalidSource
from attnviz.registry import suggest_name
from attnviz.specs import TextOptions
from attnviz.text import Corpus, Document, mend_surrogates, splits
from attnviz.text.files import check_encoding
from attnviz.text.local import open_source
from attnviz.text.source import Rows, Source, Wanted, check_total_size

DEFAULT_DATASET = "sample"


def read_dataset(spec: TextOptions) -> Corpus:
    """Read the chosen part of a data set, in order. Raises InvalidOption, InvalidSource."""
    return _select(*open_parts(spec))


def open_parts(spec: TextOptions) -> tuple[Source, tuple[splits.Part, ...], str]:
    """Open a source; return it, its chosen parts (else its default split) and the name of both.

    Raises InvalidOption for an invalid --split, InvalidSource for a source that cannot be opened or lacks the split.
    """
    chosen = None if spec.split is None else splits.parse(spec.split)  # checked first: to open a source may be slow
    check_encoding(spec.encoding)
    wanted = Wanted(spec.text_column, spec.label_column, spec.encoding)
    source = open_source(DEFAULT_DATASET if spec.dataset is None else spec.dataset, wanted)
    parts = chosen or (splits.Part(_choose_default_split(source)),)
    for part in parts:
        if part.name not in source.splits:
            raise InvalidSource(
                f"{source.name} has no split {part.name!r}", hint=suggest_name(part.name, source.splits)
            )
    return source, parts, f"{source.name} {'+'.join(map(str, parts))}"


def _choose_default_split(source: Source) -> str:
    if "train" in source.splits:
        return "train"
    if len(source.splits) == 1:
        return source.splits[0]
    raise InvalidSource(f"{source.name} has no split train", hint=f"Choose with --split: {', '.join(source.splits)}.")


def _select(source: Source, parts: tuple[splits.Part, ...], name: str) -> Corpus:
    rows = {split: source.read(split, needed) for split, needed in _find_needed(parts).items()}
    selected = list(_make_documents(source.name, parts, rows))
    if not selected:
        sizes = {split: len(source.read(split, None)) for split in rows}
        counts = (f"{split} has {size} text{'' if size == 1 else 's'}" for split, size in sizes.items())
        raise InvalidSource(f"{name} selects no texts", hint=f"The split {', '.join(counts)}.")
    documents, notices = mend_surrogates(_make_slugs_unique(selected))
    return Corpus(name, documents, (*source.notices, *notices))


def _find_needed(parts: tuple[splits.Part, ...]) -> dict[str, int | None]:
    needed: dict[str, int | None] = {}
    for part in parts:
        so_far = needed.get(part.name, 0)
        needed[part.name] = None if so_far is None or part.needed is None else max(so_far, part.needed)
    return needed


def _make_documents(name: str, parts: tuple[splits.Part, ...], rows: dict[str, Rows]) -> Iterator[Document]:
    for part in parts:
        stem = re.sub(r"[^A-Za-z0-9._-]", "-", part.name)  # part of a folder's name
        positions = part.positions(len(rows[part.name]))
        read = check_total_size((rows[part.name][position] for position in positions), f"{name} {part}")
        for position, (text, label) in zip(positions, read, strict=True):
            yield Document(text, f"{name} {part.name}[{position}]", f"{stem}-{position}", label)


def _make_slugs_unique(documents: Iterable[Document]) -> Iterator[Document]:
    """Give each document its own slug: slices may overlap, so one text may occur twice, but each has its own folder."""
    taken: set[str] = set()
    for document in documents:
        slug, again = document.slug, 1
        while slug in taken:
            again += 1
            slug = f"{document.slug}-again-{again}"
        taken.add(slug)
        yield document if slug == document.slug else replace(document, slug=slug)
