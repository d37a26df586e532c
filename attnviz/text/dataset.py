"""From `--dataset` and `--split` to named texts, as a whole or one by one. Knows no file format and no library.

The grammar of --split is the same for every source: `train`, `train[:1000]`, `train[-10%:]`, `train+test`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from attnviz.display import replace_surrogates
from attnviz.errors import InvalidOption, InvalidSource
from attnviz.registry import suggest_name
from attnviz.specs import TextOptions
from attnviz.text import Corpus, Document, describe_argument, load_corpus, mend_surrogates
from attnviz.text.files import check_encoding
from attnviz.text.local import open_source
from attnviz.text.source import Source, Wanted

DEFAULT_DATASET = "sample"
GRAMMAR = "Write train, train[:1000], train[10:20], train[-5:], train[:10%] or train+test."

_BOUND = r"\s*(-?[0-9]{1,18}%?)?\s*"  # 18 digits: no number that int() refuses
_PART = re.compile(rf"\s*(?P<name>\w+(?:[.-]\w+)*)\s*(?P<slice>\[{_BOUND}:{_BOUND}\])?\s*")
_ONE_TEXT = re.compile(r"\s*(?P<name>[^\[\]+]*)\[\s*(?P<number>-?[0-9]+)\s*\]\s*")


@dataclass(frozen=True)
class Bound:
    """One end of a slice: a number of texts, or a share of all of them in percent."""

    value: int
    percent: bool = False

    def resolve(self, count: int) -> int:
        """Return the bound in texts, rounded as `datasets` does, so that neighbouring shares meet without overlap."""
        return round(self.value * count / 100) if self.percent else self.value

    def __str__(self) -> str:
        return f"{self.value}%" if self.percent else str(self.value)


@dataclass(frozen=True)
class Part:
    """One split, or a slice of it."""

    name: str
    sliced: bool = False
    start: Bound | None = None
    stop: Bound | None = None

    def positions(self, count: int) -> range:
        """Return the positions in a split of `count` texts, by Python's rules for slices."""
        start, stop = (bound and bound.resolve(count) for bound in (self.start, self.stop))
        return range(*slice(start, stop).indices(count))

    @property
    def needed(self) -> int | None:
        """How many of the first texts suffice to find the positions; None where all have to be counted."""
        ends = (self.start or Bound(0), self.stop)
        if self.stop is None or any(end is None or end.percent or end.value < 0 for end in ends):
            return None
        return self.stop.value

    def __str__(self) -> str:
        bounds = (str(bound) if bound else "" for bound in (self.start, self.stop))
        return f"{self.name}[{':'.join(bounds)}]" if self.sliced else self.name


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


def open_parts(spec: TextOptions) -> tuple[Source, tuple[Part, ...], str]:
    """Open a source; return it, its chosen parts (else its default split) and the name of both.

    Raises InvalidOption for an invalid --split, InvalidSource for a source that cannot be opened or lacks the split.
    """
    chosen = None if spec.split is None else parse(spec.split)  # checked first: to open a source may be slow
    check_encoding(spec.encoding)
    wanted = Wanted(spec.text_column, spec.label_column, spec.encoding)
    source = open_source(DEFAULT_DATASET if spec.dataset is None else spec.dataset, wanted)
    if chosen is None and "train" not in source.splits and len(source.splits) != 1:
        hint = f"Choose with --split: {', '.join(source.splits)}."
        raise InvalidSource(f"{source.name} has no split train", hint=hint)
    parts = chosen or (Part("train" if "train" in source.splits else source.splits[0]),)
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


def parse(written: str) -> tuple[Part, ...]:
    """Parse the parts between plus signs. Raises InvalidOption for anything outside the grammar."""
    parts = []
    for part in written.split("+"):
        match = _PART.fullmatch(part)
        if match is None:
            # A single number in brackets is the commonest mistake, and --index selects one text.
            one = _ONE_TEXT.fullmatch(part)
            said = f"One text is --split {one['name']} --index {one['number']}. " if one and one["name"] else ""
            raise InvalidOption(f"--split {written!r} is not a split", hint=f"{said}{GRAMMAR}")
        ends = [Bound(int(end.removesuffix("%")), end.endswith("%")) if end else None for end in match.groups()[2:]]
        if any(end and end.percent and abs(end.value) > 100 for end in ends):
            raise InvalidOption(f"--split {written!r} asks for more than 100%", hint=GRAMMAR)
        parts.append(Part(match["name"], match["slice"] is not None, *ends))
    return tuple(parts)
