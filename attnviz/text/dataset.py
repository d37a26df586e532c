"""From `--dataset` and `--split` to named texts, as a whole or one by one. Knows no file format and no library.

The grammar of --split is the same for every source: `train`, `train[:1000]`, `train[-10%:]`, `train+test`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from attnviz.bounded import format_bytes
from attnviz.display import replace_surrogates
from attnviz.errors import InvalidOption, InvalidSource
from attnviz.registry import suggest_name
from attnviz.specs import TextOptions
from attnviz.text import Corpus, Document, describe_argument, load_corpus, mend_surrogates
from attnviz.text.files import check_encoding
from attnviz.text.local import open_source
from attnviz.text.source import MAX_TEXTS, ROW_BYTES, Source, Wanted

DEFAULT_DATASET = "sample"
GRAMMAR = "Write train, train[:1000], train[10:20], train[-5:], train[:10%] or train+test."

_BOUND = r"\s*(-?[0-9]{1,18}%?)?\s*"  # 18 digits: no number that int() refuses
_PART = re.compile(rf"\s*(?P<name>\w+(?:[.-]\w+)*)\s*(?P<slice>\[{_BOUND}:{_BOUND}\])?\s*")
_ONE_TEXT = re.compile(r"\s*(?P<name>[^\[\]+]*)\[\s*(?P<number>-?[0-9]+)\s*\]\s*")


@dataclass(frozen=True)
class Part:
    """One split, or a slice of it whose `bounds` are numbers of texts, "10%" of all, or "" for an end that is open."""

    name: str
    bounds: tuple[str, ...] = ()  # two; (): the whole split

    def positions(self, count: int) -> range:
        """Return the positions in a split of `count` texts, by Python's rules for slices.

        Shares are rounded as `datasets` does, so that neighbouring ones meet without overlap.
        """
        ends: list[int | None] = [None, None]
        for place, bound in enumerate(self.bounds):
            if bound:
                ends[place] = round(int(bound[:-1]) * count / 100) if bound.endswith("%") else int(bound)
        return range(*slice(*ends).indices(count))

    @property
    def needed(self) -> int | None:
        """How many of the first texts suffice to find the positions; None where all have to be counted."""
        has_end = self.bounds and self.bounds[1] and not {*"-%"} & {*"".join(self.bounds)}
        return int(self.bounds[1]) if has_end else None

    def __str__(self) -> str:
        return f"{self.name}[{':'.join(self.bounds)}]" if self.bounds else self.name


def read_dataset(spec: TextOptions) -> Corpus:
    """Read the chosen part of a data set, in order. Raises InvalidOption, InvalidSource."""
    source, parts, name = open_parts(spec)
    selected: dict[str, Document] = {}
    n_bytes = 0
    for split, position, text, label in _select_rows(source, parts):
        n_bytes += len(text) + ROW_BYTES
        if n_bytes > MAX_TEXTS:
            raise InvalidSource(
                f"{source.name} {split} holds more than {format_bytes(MAX_TEXTS)} of texts",
                hint="--split 'train[:10000]' reads fewer.",
            )
        stem = re.sub(r"[^A-Za-z0-9._-]", "-", split)  # part of a folder's name
        slug, again = f"{stem}-{position}", 1
        while slug in selected:  # slices may overlap, so one text may occur twice, but each has its own folder
            again += 1
            slug = f"{stem}-{position}-again-{again}"
        selected[slug] = Document(text, f"{source.name} {split}[{position}]", slug, label)
    if not selected:
        sizes = {part.name: sum(1 for _ in source.rows(part.name)) for part in parts}
        counts = (f"{split} has {size} text{'' if size == 1 else 's'}" for split, size in sizes.items())
        raise InvalidSource(f"{name} selects no texts", hint=f"The split {', '.join(counts)}.")
    documents, notices = mend_surrogates(selected.values())
    return Corpus(name, documents, (*source.notices, *notices))


def _select_rows(source: Source, parts: Sequence[Part]) -> Iterator[tuple[str, int, str, int | None]]:
    """Yield split, position, text and label of each chosen row, with few rows in memory at a time."""
    for part in parts:
        n_rows = part.needed if part.bounds else 2**62
        if n_rows is None:  # for shares and positions from the end, all rows of the split are counted
            n_rows = sum(1 for _ in source.rows(part.name))
        positions = part.positions(n_rows)
        rows = islice(source.rows(part.name), positions.start, positions.stop)
        for position, (text, label) in enumerate(rows, positions.start):
            yield part.name, position, text, label


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
        for number, (split, position, text, label) in enumerate(_select_rows(source, parts)):
            yield Document(replace_surrogates(text), f"{source.name} {split}[{position}]", f"text-{number}", label)

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
        found = [(end or "").partition("%") for end in match.groups()[2:]]
        if any(percent and abs(int(number)) > 100 for number, percent, _ in found):
            raise InvalidOption(f"--split {written!r} asks for more than 100%", hint=GRAMMAR)
        bounds = (f"{int(number)}{percent}" if number else "" for number, percent, _ in found)
        parts.append(Part(match["name"], tuple(bounds) if match["slice"] else ()))
    return tuple(parts)
