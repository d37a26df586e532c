"""What a model's heads do over many texts: what was asked, a row of numbers per text, and what is read out of them.

Parts of one survey have equal `SurveyInfo`. Rows are sorted by the number of their text before anything is computed, so
that every result has the same bits, whoever measured which texts and in which order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import product, starmap
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from attnviz.measures.class_differences import (
    ClassDifference,
    ClassSizes,
    compare_classes,
    correct_differences,
    find_strata,
)
from attnviz.numbers.intervals import MIN_TEXTS, compute_quantiles, summarize, t_quantile
from attnviz.numbers.table import Numbers
from attnviz.records import Setting

TOKENS = "n_tokens"  # a column that is no measure; nor are those whose names begin as follows
ABLATION = "without_head_"
EQUAL = "equal_"  # what attention that favours no key gives, one number of each text
CAN = ("ablate", "explain")
QUERIES = f"{ABLATION}queries"  # a number that a text without another beside it does not have
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
N_EXTREMES = 10  # texts kept on either side of each column
N_SAMPLED = 256  # texts over which a head's output is a mean, where that takes its place
LEAST_SPREAD = 1e-9  # of logs of lengths: less is rounding, of texts of one length
WORD, OFFSET = "word", "offset"  # what heads attend to


@dataclass(frozen=True)
class SurveyMeasure:
    """One measure: what it is of."""

    name: str
    unit: str
    level: str  # "head", "layer", or "text" for one number of each text

    @property
    def title(self) -> str:
        """The name as tables and pictures have it: "effective keys"."""
        return self.name.replace("_", " ")


@dataclass(frozen=True)
class SurveyInfo:
    """What was asked of which model and texts: equal for all parts of one survey."""

    model: str
    option: str  # what --model names it by
    revision: str
    status: str  # trained or not
    trained: bool | None
    layer_numbers: tuple[int, ...]
    n_heads: int
    causal: bool
    corpus: str
    n_texts: int
    dataset: str  # the options that open one of its texts again, such as "--dataset imdb --split train"
    max_tokens: int
    keep: str
    reach: int  # how far from the query attention is told by its distance, on either side
    can: tuple[str, ...]  # what else the program does with such a model: some of CAN
    has_words: bool  # whether anything of the texts is kept but their names and numbers
    measures: tuple[SurveyMeasure, ...]
    settings: dict[str, Setting]
    versions: dict[str, str]

    @property
    def n_places(self) -> int:
        """How many heads there are."""
        return len(self.layer_numbers) * self.n_heads

    @property
    def heads(self) -> list[tuple[int, int]]:
        """Of each place the layer's own number and the head's."""
        return list(product(self.layer_numbers, range(self.n_heads)))

    def list_places(self, level: str) -> list[tuple[int | None, int | None]]:
        """Return of each number of a measure of that level which layer and head it is of."""
        if level == "head":
            return [*self.heads]
        return [(layer, None) for layer in (self.layer_numbers if level == "layer" else (None,))]

    @cached_property
    def columns(self) -> dict[str, slice]:
        """Where the numbers of each measure stand in a row: a number per head, layer after layer, or one per layer."""
        found, start = {}, 0
        for measure in self.measures:
            found[measure.name] = slice(start, start + len(self.list_places(measure.level)))
            start = found[measure.name].stop
        return found

    def list_columns(self) -> list[str]:
        """Return the names of all columns of numbers, in order; that of tokens is one of whole numbers."""
        return [name for measure in self.measures if measure.name != TOKENS for name in self.name_columns(measure)]

    def name_columns(self, measure: SurveyMeasure) -> list[str]:
        """Return what the columns of a measure are called: "peak 0.1", "vendi_score 0", "n_tokens"."""
        places = self.list_places(measure.level)
        return [f"{measure.name} {'.'.join(str(n) for n in at if n is not None)}".rstrip() for at in places]


@dataclass(frozen=True)
class ModelFacts:
    """What was measured of the model on a few of the texts: what chance gives, and what word order does."""

    n_texts: int = 0
    n_random: int = 0  # models of first weights
    plain: dict[str, tuple[float, ...]] = field(
        default_factory=dict
    )  # by measure or offset: each head's mean over these texts
    chance: dict[str, float] = field(default_factory=dict)  # the largest mean of any head of any random model
    shuffled: dict[str, tuple[float, ...]] = field(default_factory=dict)  # as `plain`, words in random order
    probes: dict[str, tuple[float, ...]] = field(default_factory=dict)  # by score: each head's, on repeated tokens
    probe_chance: dict[str, float] = field(default_factory=dict)  # as `chance`, of one draw of tokens
    named: tuple[str, ...] = ()  # what each head looks at, by the model's card if it has one


class TextExcerpt(NamedTuple):
    """Enough of a text to know it again."""

    text: int  # its number
    name: str
    n_tokens: int
    words: str  # the first ones


class Attended(NamedTuple):
    """What heads attend to, as shares of attention summed over all queries, in multiples of 2⁻³⁰."""

    names: tuple[str, ...]  # words, or offsets from query to key
    n: Int64[np.ndarray, " name"]  # how often a word stands in the texts
    equal: Int64[np.ndarray, " name"]  # if no key is favoured
    mass: Int64[np.ndarray, "name place"]


@dataclass(frozen=True, eq=False)
class Statistics:
    """What is said of each column over the texts that have a number there; NaN where that cannot be said.

    Means and quantiles are of all texts. `error`, `half` and whatever is tested take a text that stands several times
    once: copies are no further evidence.
    """

    counts: Int64[np.ndarray, " column"]
    means: Float64[np.ndarray, " column"]
    smallest: Float64[np.ndarray, " column"]
    largest: Float64[np.ndarray, " column"]
    quantiles: Float64[np.ndarray, "share column"]
    means_once: Float64[np.ndarray, " column"]
    halves: Float64[np.ndarray, " column"]  # of 95 % intervals
    counts_once: Int64[np.ndarray, " column"]
    slopes: Float64[np.ndarray, " column"]  # change of each number with the log of a text's length
    extremes: Int64[np.ndarray, "end rank column"]  # rows of the largest and smallest for their length; -1: none
    extreme_values: Float64[np.ndarray, "end rank column"]

    @property
    def errors(self) -> Float64[np.ndarray, " column"]:
        """The standard error of each mean; NaN of fewer than 10 texts and of equal numbers."""
        times = {n: t_quantile(n - 1) for n in np.unique(self.counts_once).tolist() if n >= MIN_TEXTS}
        return np.asarray(self.halves / np.array([times.get(n, np.nan) for n in self.counts_once.tolist()]))


@dataclass(frozen=True, eq=False)
class Survey:
    """A survey of the texts that were measured. `read_values` gives the numbers of a measure, text by text."""

    info: SurveyInfo
    texts: Numbers  # those with tokens, in order
    skipped: tuple[str, ...]  # names of texts without tokens
    words: Attended
    offsets: Attended
    moments: Numbers
    facts: ModelFacts | None  # None: of another part
    read_values: Callable[[SurveyMeasure], Float64[np.ndarray, "text place"]]

    @property
    def n_texts(self) -> int:
        """How many texts have tokens."""
        return len(self.texts)

    @cached_property
    def n_queries(self) -> int:
        """How many tokens they have."""
        return int(self.texts.array(TOKENS).sum())

    @property
    def is_whole(self) -> bool:
        """Whether no text is missing."""
        return self.facts is not None and self.info.n_texts == self.n_texts + len(self.skipped)

    @cached_property
    def is_first(self) -> Bool[np.ndarray, " text"]:
        """Whether no earlier text has the same content: copies count once in whatever is tested."""
        found = np.zeros(self.n_texts, dtype=bool)
        found[np.unique(self.texts.array("hash"), return_index=True)[1]] = True
        return found

    @cached_property
    def strata(self) -> Int64[np.ndarray, " text"]:
        """About which length each text has."""
        return find_strata(self.texts.array(TOKENS))

    @cached_property
    def class_sizes(self) -> ClassSizes:
        """How many texts each class has."""
        return ClassSizes.count(self.texts.array("label")[self.is_first], self.strata[self.is_first])

    @property
    def statistics(self) -> Statistics:
        """What is said of each column."""
        return self._computed[0]

    @property
    def differences(self) -> list[ClassDifference]:
        """What differs between the classes of texts, by every measure of heads; the surest differences first."""
        return self._computed[1]

    @cached_property
    def _computed(self) -> tuple[Statistics, list[ClassDifference]]:
        """Read one measure after the other, so that memory holds no more than that."""
        logs, labels = np.log(self.texts.array(TOKENS)), self.texts.array("label")[self.is_first]
        found, differences = list[Statistics](), list[ClassDifference]()
        for measure in self.info.measures:
            values = self.read_values(measure)
            slopes = np.zeros(values.shape[1])
            if measure.level != "text":
                slopes = fit_slopes(values[self.is_first], logs[self.is_first])
            rest = values - slopes * logs[:, None]
            found.append(_describe(values, rest, slopes, self.is_first))
            if measure.level == "head" and not measure.name.startswith(ABLATION):
                start = self.info.columns[measure.name].start
                compared = compare_classes(rest[self.is_first], labels, self.strata[self.is_first], self.class_sizes)
                differences += (each._replace(column=start + each.column) for each in compared)
        names = [each.name for each in fields(Statistics)]
        whole = Statistics(*(np.concatenate([getattr(of, name) for of in found], axis=-1) for name in names))
        return whole, correct_differences(differences)

    def holds_same(self, other: Survey) -> bool:
        """Return whether another survey of the same question holds the same of the same texts, to the bit."""
        tables = ((of.texts.table, of.moments.table) for of in (self, other))
        arrays = ((*of.words[1:], *of.offsets[1:]) for of in (self, other))
        return (
            self.facts == other.facts
            and all(one.equals(two) for one, two in zip(*tables, strict=True))
            and self.words.names == other.words.names
            and all(np.array_equal(one, two) for one, two in zip(*arrays, strict=True))
            and all(
                np.array_equal(self.read_values(measure), other.read_values(measure), equal_nan=True)
                for measure in self.info.measures
            )
        )

    @cached_property
    def excerpts(self) -> list[TextExcerpt]:
        """What is kept of the text in each row."""
        columns = (self.texts.table[name].to_pylist() for name in ("text", "name", TOKENS, "words"))
        return list(starmap(TextExcerpt, zip(*columns, strict=True)))


def fit_slopes(
    values: Float64[np.ndarray, "text column"], logs: Float64[np.ndarray, " text"]
) -> Float64[np.ndarray, " column"]:
    """Return how each column changes with the log of a text's length, by least squares.

    0 where the texts are too few or of one length.
    """
    there = ~np.isnan(values)
    n = np.maximum(there.sum(axis=0), 1)
    off_mean = there * (logs[:, None] - (there * logs[:, None]).sum(axis=0) / n)
    spread = (off_mean * off_mean).sum(axis=0)
    enough = (there.sum(axis=0) >= MIN_TEXTS) & (spread > LEAST_SPREAD)
    slopes = (off_mean * np.where(there, values, 0.0)).sum(axis=0) / np.where(enough, spread, 1.0)
    return np.where(enough, slopes, 0.0)


def _describe(
    values: Float64[np.ndarray, "text column"],
    rest: Float64[np.ndarray, "text column"],
    slopes: Float64[np.ndarray, " column"],
    is_first: Bool[np.ndarray, " text"],
) -> Statistics:
    every = summarize(values)
    once = every if is_first.all() else summarize(values[is_first])
    rows, numbers = zip(*(_find_extremes(values, ranks) for ranks in (-rest, rest)), strict=True)
    return Statistics(
        counts=every.n,
        means=every.mean,
        smallest=every.smallest,
        largest=every.largest,
        quantiles=compute_quantiles(values, QUANTILES),
        means_once=once.mean,
        halves=once.high - once.mean,
        counts_once=once.n,
        slopes=slopes,
        extremes=np.stack(rows),
        extreme_values=np.stack(numbers),
    )


def _find_extremes(
    values: Float64[np.ndarray, "text column"], ranks: Float64[np.ndarray, "text column"]
) -> tuple[Int64[np.ndarray, "rank column"], Float64[np.ndarray, "rank column"]]:
    """Return the rows of the smallest ranks of each column, of equal ones the first, and their values."""
    order = np.argsort(ranks, axis=0, kind="stable")[:N_EXTREMES]  # NaN stands last
    found = np.take_along_axis(values, order, axis=0)
    missing = ((0, N_EXTREMES - len(order)), (0, 0))
    rows = np.pad(np.where(np.isnan(found), -1, order), missing, constant_values=-1)
    return rows, np.pad(found, missing, constant_values=np.nan)


def find_difference(one: SurveyInfo, other: SurveyInfo) -> str:
    """Say in what two surveys differ first."""
    name = next(name for name, value in vars(one).items() if name in vars(other) and vars(other)[name] != value)
    if name == "settings":
        changed = {key for key, _ in one.settings.items() ^ other.settings.items()}
        return (
            "of other texts" if changed <= {"copies", "texts_sha256"} else f"not alike in {', '.join(sorted(changed))}"
        )
    return f"not alike in {name.replace('_', ' ')}" if name != "model" else f"of {one.model} and of {other.model}"
