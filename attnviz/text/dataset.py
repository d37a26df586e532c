"""From `--dataset` and `--split` to named texts, as a whole or one by one. Knows no file format and no library.

The grammar of --split is the same for every source: `train`, `train[:1000]`, `train[-10%:]`, `train+test`.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from attnviz.bounded import Budget
from attnviz.errors import InvalidOption, InvalidSource
from attnviz.registry import suggest_name
from attnviz.specs import TextOptions
from attnviz.text import Corpus, Document, describe_argument, load_corpus, mend_surrogates
from attnviz.text.files import check_encoding
from attnviz.text.local import open_source
from attnviz.text.markup import BREAK
from attnviz.text.source import ROW_BYTES, Source, Wanted

DEFAULT_DATASET = "sample"
BREAKS = "<br /> is read as a line break; --keep-markup reads it as it is written"
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
        """Count how many of the first texts suffice to find the positions; None where all have to be counted."""
        has_end = self.bounds and self.bounds[1] and not {*"-%"} & {*"".join(self.bounds)}
        return int(self.bounds[1]) if has_end else None

    def __str__(self) -> str:
        return f"{self.name}[{':'.join(self.bounds)}]" if self.bounds else self.name


def read_dataset(spec: TextOptions, budget: Budget, n_needed: int | None = None) -> Corpus:
    """Read the chosen part of a data set, in order, or the first `n_needed` texts of it.

    Raises InvalidOption, InvalidSource, TooLarge.
    """
    source, parts, name = open_parts(spec, budget)
    selected: dict[str, Document] = {}
    n_bytes, said = 0, list[str]()
    for document in islice(_select_documents(source, parts, spec, said), n_needed):
        n_bytes += sys.getsizeof(document.text) + ROW_BYTES
        budget.draw("the texts that --split chooses", n_bytes)
        slug, again = document.slug, 1
        while slug in selected:  # slices may overlap, so one text may occur twice, but each has its own folder
            again += 1
            slug = f"{document.slug}-again-{again}"
        selected[slug] = replace(document, slug=slug)
    if not selected:
        sizes = {part.name: sum(1 for _ in source.rows(part.name)) for part in parts}
        counts = (f"{split} has {size} text{'' if size == 1 else 's'}" for split, size in sizes.items())
        raise InvalidSource(f"{name} selects no texts", hint=f"The split {', '.join(counts)}.")
    documents, notices = mend_surrogates(selected.values())
    return Corpus(name, documents, (*source.notices, *said, *notices))


def _select_documents(source: Source, parts: Sequence[Part], spec: TextOptions, said: list[str]) -> Iterator[Document]:
    """Yield each chosen text, with few rows in memory at a time. What is read otherwise than written goes to `said`."""
    for part in parts:
        n_rows = part.needed if part.bounds else 2**62
        if n_rows is None:  # for shares and positions from the end, all rows of the split are counted
            n_rows = sum(1 for _ in source.rows(part.name))
        positions, stem = part.positions(n_rows), re.sub(r"[^A-Za-z0-9._-]", "-", part.name)
        rows = islice(source.rows(part.name), positions.start, positions.stop)
        for position, (text, label) in enumerate(rows, positions.start):
            if not spec.keep_markup and "<" in text and BREAK.search(text):
                text = BREAK.sub("\n", text)
                said += [] if BREAKS in said else [BREAKS]
            yield Document(text, f"{source.name} {part.name}[{position}]", f"{stem}-{position}", label)


def open_parts(spec: TextOptions, budget: Budget) -> tuple[Source, tuple[Part, ...], str]:
    """Open a source; return it, its chosen parts (else its default split) and the name of both.

    Raises InvalidOption for an invalid --split, InvalidSource for a source that cannot be opened or lacks the split.
    """
    chosen = None if spec.split is None else parse(spec.split)  # checked first: to open a source may be slow
    check_encoding(spec.encoding)
    wanted = Wanted(spec.text_column, spec.label_column, spec.encoding, budget, keep_markup=spec.keep_markup)
    source = open_source(DEFAULT_DATASET if spec.dataset is None else spec.dataset, wanted)
    if chosen is None and "train" not in source.splits and len(source.splits) != 1:
        hint = f"Choose with --split: {', '.join(source.splits)}."
        raise InvalidSource(f"{source.name} has no split train", hint=hint)
    parts = chosen or (Part("train" if "train" in source.splits else source.splits[0]),)
    for part in parts:
        if part.name not in source.splits:
            problem = f"{source.name} has no split {part.name!r}"
            raise InvalidSource(problem, hint=suggest_name(part.name, source.splits))
    return source, parts, f"{source.name} {'+'.join(map(str, parts))}"


@dataclass(frozen=True, eq=False)
class TextStream:
    """The texts of one split or of one command line; each call of `documents` begins with the first.

    What is to be said of them is whole once all were read.
    """

    name: str
    documents: Callable[[], Iterator[Document]]
    notices: list[str] = field(default_factory=list)


def stream_corpus(spec: TextOptions, max_memory: float = 4.0) -> TextStream:
    """Stream the texts of `load_corpus`, in the same order with the same names.

    Raises as `load_corpus` does; for a row that cannot be read, when it is reached.
    """
    if spec.inline:
        corpus = load_corpus(spec, max_memory)
        return TextStream(corpus.name, lambda: iter(corpus.documents), list(corpus.notices))
    source, parts, name = open_parts(spec, Budget(max_memory))
    notices = [*describe_argument(spec), *source.notices]
    chosen = partial(_select_documents, source, parts, spec, notices)
    return TextStream(name, lambda: (mend_surrogates([document])[0][0] for document in chosen()), notices)


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
