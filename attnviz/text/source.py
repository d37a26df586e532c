"""What every source has: splits, and rows with a text and perhaps a label. Knows no file format.

No type says how the values of a column become labels, negative (0), positive (1), another class, or none: 1 and 2 are
classes in one file and negative and positive in the next. So values are looked at, what they are taken for is said, and
what fits two readings is refused. Knows no file format.
"""

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from attnviz.bounded import Budget, format_bytes
from attnviz.display import list_first
from attnviz.errors import InvalidSource

Row = tuple[str, int | None]
Thing = TypeVar("Thing")
Fields = Mapping[str, Any]  # of a row of a table, by the names of its columns
Rows = Generator[tuple[str, Fields], None, None]  # each with where it begins, for messages

SPLIT_NAMES = ("train", "test", "validation", "valid", "val", "dev", "eval", "unsupervised")
MAX_TEXT = 2**24  # bytes of one text or line: three times the Bible
ROW_BYTES = 800  # bytes beside a text: its name, its label, its position
MAX_ROWS = 2**21  # of one label that are looked at for a second one
MAX_COLUMNS = 2**12
LOOKED_AT = 200  # lines or rows from which is guessed how a table is written, and what columns without names hold
MAX_LOOKED_AT = 2**20  # characters of them
NO_COLUMN = "none"  # of --label-column


@dataclass(frozen=True)
class Wanted:
    """What is asked for of a source: columns by name or number, how its bytes are characters (None: look), and what
    it may take.
    """

    text: str | None = None
    label: str | None = None  # NO_COLUMN: labels are left out
    encoding: str | None = None
    budget: Budget = field(default_factory=Budget)
    keep_markup: bool = False


@dataclass(frozen=True, repr=False)
class OtherKind:
    """A value that was left as it lies, since its kind is neither that of a text nor of a label."""

    kind: object

    def __repr__(self) -> str:
        return str(self.kind)


@dataclass(frozen=True, eq=False)
class Source:
    """An open data set. `rows` yields the rows of a split, with few of them in memory at a time."""

    name: str
    splits: tuple[str, ...]
    rows: Callable[[str], Iterator[Row]]
    notices: tuple[str, ...] = ()


def as_text(value: object, column: str, where: str) -> str:
    """Return the value, a text. Raises InvalidSource for another type, as converting 5 to "5.0" would change it."""
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            found = f"{where}: a text of {len(value):,} characters"
            raise InvalidSource(found, hint=f"At most {format_bytes(MAX_TEXT)} of one text are read.")
        return value
    found = "null" if value is None else f"{type(value).__name__} {value!r:.40}".removeprefix("OtherKind ")
    raise InvalidSource(f"{where}: {column!r} holds {found}, not text", hint="Leave the row out, or see --text-column.")


def take_first(things: Iterable[Thing]) -> tuple[list[Thing], bool]:
    """Take so many lines or rows that something can be guessed from them, and say whether they are all."""
    taken, size = list[Thing](), 0
    for thing in things:
        if len(taken) == LOOKED_AT or size > MAX_LOOKED_AT:
            return taken, False
        taken.append(thing)
        size += len(str(thing))
    return taken, True


ROWS_LOOKED_AT = 1000  # rows from which a reading is chosen, and on until two values differ: files are sorted by label
LOOKED_AT_RATINGS = 50_000  # and of ratings, whose largest says of which scale they are: IMDb, sorted
MAX_DIGITS = 8  # of a class
MAX_SAID = 6  # values in a notice
NO_LABEL = ("", "-1", "unsup", "unlabeled", "unlabelled", "none", "null", "na", "n/a", "nan", "?", "neutral", "neu")
WORDS = {
    **dict.fromkeys(("neg", "negative", "false", "rotten"), 0),
    **dict.fromkeys(("pos", "positive", "true", "fresh"), 1),
}
FASTTEXT = "__label__"
WHOLE_NUMBER = re.compile(r"\+?(-?[0-9]+)(?:\.0*)?")
NUMBER = re.compile(r"[0-9]{1,2}(?:\.[0-9]{1,3})?")
# The values of a column, apart from none, and what they then mean.
PAIRS: Mapping[frozenset[str], Mapping[str, int | None]] = {
    frozenset({"1", "2"}): {"1": 0, "2": 1},  # Zhang et al., 2015: Amazon and Yelp reviews
    frozenset({"0", "4"}): {"0": 0, "2": None, "4": 1},  # Go et al., 2009: Sentiment140
    frozenset({"0", "2", "4"}): {"0": 0, "2": None, "4": 1},
    frozenset({"-1", "1"}): {"-1": 0, "1": 1},
}
# The largest rating, the largest negative one and the smallest positive one, which of ten is that of Maas et al., 2011.
SCALES = ((5, 2, 4), (10, 4, 7))


@dataclass(frozen=True)
class LabelReading:
    """How the values of a column are read. `parse` raises KeyError for a value that it does not know, or for none."""

    parse: Callable[[str], int | None]
    said: str  # what the values are taken for
    is_plain: bool = False  # the numbers of the file are the labels

    def read(self, value: object, column: str, where: str) -> int | None:
        """Return the label that a value stands for, or None. Raises InvalidSource for another than was seen before."""
        name = normalize_label(value)
        try:
            return self.parse(name)
        except KeyError as error:
            if name in NO_LABEL:
                return None
            found = f"{where}: {column!r} holds {value!r:.40}, which is not a label"
            hint = f"Before it there are {self.said}; --label-column none reads texts alone."
            raise InvalidSource(found, hint=hint) from error


def normalize_label(value: object) -> str:
    """Write a value as labels are compared: "Positive " as positive, 1.0 and True as 1, None as nothing."""
    if value is None:
        return ""
    if isinstance(value, (bool, int)):
        return str(int(value))
    name = str(value).strip().lower().removeprefix(FASTTEXT)
    whole = WHOLE_NUMBER.fullmatch(name)
    return str(int(whole[1])) if whole and len(whole[1]) <= MAX_DIGITS + 1 else name


def choose_reading(values: Iterable[Any], column: str, where: str, *, is_rating: bool = False) -> LabelReading | None:
    """Look at values, and return how they are read; None where they are not labels.

    Raises InvalidSource where two readings fit.
    """
    remaining = islice(values, MAX_ROWS)
    seen = {normalize_label(value) for value in islice(remaining, LOOKED_AT_RATINGS if is_rating else ROWS_LOOKED_AT)}
    while len(seen.difference(NO_LABEL)) < 2 and (value := next(remaining, None)) is not None:
        seen.add(normalize_label(value))
    named = seen.difference(NO_LABEL)
    if not named:
        return LabelReading(dict[str, None]().__getitem__, "none", is_plain=seen <= {"", "-1"})
    with_minus = named | seen & {"-1"}
    twofold = ""
    if with_minus == {"-1", "0", "1"}:
        twofold = "-1, 0 and 1: negative, neutral and positive, or none, negative and positive"
    elif is_rating and with_minus <= {"0", "1", "2"} and not {"0"} <= named <= {"0", "1"}:
        twofold = f"no rating above {max(named)}: few stars, or negative and positive"
    if twofold:
        hint = "Write neg and pos, or leave out labels with --label-column none."
        raise InvalidSource(f"{where}: {column!r} holds {twofold}", hint=hint)
    if pair := PAIRS.get(frozenset(with_minus)):
        return _from_mapping(pair, seen)
    if is_rating and not named <= {"0", "1"}:
        return _read_ratings(named)
    if named <= set(WORDS):
        return _from_mapping(WORDS, seen)
    if all(name.isascii() and name.isdigit() and len(name) <= MAX_DIGITS for name in named):
        classes = list_first(sorted(named, key=int), MAX_SAID)
        return LabelReading(_parse_class, f"classes {classes}", is_plain=named <= {"0", "1"})
    return None


def name_swapped(names: Sequence[object]) -> dict[object, str]:
    """Return the names of two classes by number where they say that 0 is positive and 1 negative, else nothing."""
    return dict(enumerate(map(str, names))) if [WORDS.get(normalize_label(name)) for name in names] == [1, 0] else {}


def _from_mapping(meanings: Mapping[str, int | None], seen: set[str]) -> LabelReading:
    labels = {name: meanings.get(name) for name in sorted(seen)}
    written = [f"{name or 'nothing'} {'none' if label is None else label}" for name, label in labels.items()]
    return LabelReading(meanings.__getitem__, list_first(written, MAX_SAID))


def _parse_class(name: str) -> int | None:
    if name.isascii() and name.isdigit() and len(name) <= MAX_DIGITS:
        return int(name)
    raise KeyError(name)


def _read_ratings(named: set[str]) -> LabelReading | None:
    """Read stars: few are negative, many positive, those between neither."""
    if not all(NUMBER.fullmatch(name) for name in named):
        return None
    above = max(map(float, named))
    if not SCALES[0][1] < above <= SCALES[1][0]:
        return None
    largest, low, high = SCALES[above > SCALES[0][0]]

    def parse(name: str) -> int | None:
        if not NUMBER.fullmatch(name) or float(name) > largest:
            raise KeyError(name)
        return 0 if float(name) <= low else 1 if float(name) >= high else None

    said = f"ratings up to {largest}, of which up to {low} is negative 0, from {high} positive 1, others none"
    return LabelReading(parse, said)
