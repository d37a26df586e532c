"""What a model's heads do over many texts, as numbers that parts of a survey can be merged of. Knows no files.

Parts of one survey have equal `SurveyInfo`; whatever the order in which they are merged, the result has the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np
from jaxtyping import Float64, Int64

from attnviz.commands.survey.moments import N_MOMENTS, Moments, merge_moments
from attnviz.commands.survey.words import WordTable, merge_words
from attnviz.errors import InvalidOption
from attnviz.measures.class_differences import ClassSums, merge_classes
from attnviz.measures.summaries import Summary, merge_summaries
from attnviz.records import Setting

TOKENS = "n_tokens"  # a column that is no measure; nor are those whose names begin as follows
ABLATION = "without_head_"
EQUAL = "equal_"  # what attention that favours no key gives, one number of each text
CAN = ("ablate", "explain")
QUERIES = f"{ABLATION}queries"  # a number that a text without another beside it does not have


@dataclass(frozen=True)
class SurveyMeasure:
    """One measure: what it is of, and its smallest and largest number of any text that is read."""

    name: str
    unit: str
    level: str  # "head", "layer", or "text" for one number of each text
    low: float
    high: float

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
        sizes = {"head": self.n_places, "layer": len(self.layer_numbers), "text": 1}
        found, start = {}, 0
        for measure in self.measures:
            found[measure.name] = slice(start, start + sizes[measure.level])
            start += sizes[measure.level]
        return found

    @cached_property
    def bounds(self) -> Float64[np.ndarray, "2 column"]:
        """The smallest and the largest possible number of each column."""
        widths = [of.stop - of.start for of in self.columns.values()]
        return np.array([np.repeat([getattr(of, end) for of in self.measures], widths) for end in ("low", "high")])


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


@dataclass(frozen=True)
class TextExcerpt:
    """Enough of a text to know it again."""

    text: int  # its number
    name: str
    n_tokens: int
    words: str  # the first ones
    positions: tuple[int, ...] = ()  # of the tokens that moments show
    pieces: tuple[str, ...] = ()  # these, each after a space where the text has room before it

    def keep(self, positions: Sequence[int]) -> TextExcerpt:
        """Return it with these tokens only."""
        if self.positions == tuple(positions):
            return self
        known = dict(zip(self.positions, self.pieces, strict=True))
        return replace(self, positions=tuple(positions), pieces=tuple(known[position] for position in positions))


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of the texts of some blocks."""

    info: SurveyInfo
    blocks: tuple[tuple[int, int], ...]  # stretches of blocks of texts, in order, none touching the next
    summary: Summary
    slopes: Float64[np.ndarray, " column"]  # change of each number with the log of a text's length
    moments: Moments
    excerpts: dict[int, TextExcerpt]  # of the texts that the summary or a moment names
    distances: Int64[np.ndarray, "place offset"]  # attention from a query to the key so far behind it: see `reach`
    equal_distances: Int64[np.ndarray, " offset"]  # the same of attention that favours no key
    n_queries: int
    words: WordTable
    classes: ClassSums
    skipped: dict[int, str] = field(default_factory=dict)  # texts without tokens
    n_texts: int | None = None  # of the corpus; None: not read to its end
    facts: ModelFacts | None = None  # None: of another part

    @property
    def is_whole(self) -> bool:
        """Whether no text is missing."""
        done = self.summary.n_texts + len(self.skipped)
        return self.facts is not None and self.n_texts == done

    def has_block(self, block: int) -> bool:
        """Whether the texts of a block are among these."""
        return any(start <= block < stop for start, stop in self.blocks)


def empty_survey(info: SurveyInfo, slopes: Float64[np.ndarray, " column"]) -> Survey:
    """Return the survey of no text, which every survey begins with."""
    n_columns = info.bounds.shape[1]
    summary = Summary.from_texts(np.zeros((0, n_columns)), info.bounds, np.zeros(0, np.int64), np.zeros(0, np.uint64))
    distances = np.zeros((info.n_places, 2 * info.reach + 1), np.int64)
    moments = Moments.empty(info.n_places, N_MOMENTS)
    return Survey(info, (), summary, slopes, moments, {}, distances, distances.sum(axis=0), 0, WordTable(), ClassSums())


def merge_surveys(parts: Sequence[Survey]) -> Survey:
    """The survey of the texts of all parts. Raises InvalidOption where they are of different surveys or overlap."""
    first = parts[0]
    for part in parts[1:]:
        if part.info != first.info:
            raise InvalidOption(
                f"parts of different surveys: {find_difference(first.info, part.info)}",
                hint="Merge those of one command.",
            )
    known = [part.n_texts for part in parts if part.n_texts is not None]
    if len(set(known)) > 1:
        raise InvalidOption(f"the texts were {min(known):,} and then {max(known):,}", hint="Survey one state of them.")
    summary = merge_summaries([part.summary for part in parts])
    moments = merge_moments([part.moments for part in parts])
    excerpts = {text: excerpt for part in parts for text, excerpt in part.excerpts.items()}
    return Survey(
        info=first.info,
        blocks=_join_stretches([block for part in parts for block in part.blocks]),
        summary=summary,
        slopes=first.slopes,
        moments=moments,
        excerpts=_keep_named(excerpts, summary, moments, first.info),
        distances=np.sum([part.distances for part in parts], axis=0),
        equal_distances=np.sum([part.equal_distances for part in parts], axis=0),
        n_queries=sum(part.n_queries for part in parts),
        words=merge_words([part.words for part in parts]),
        classes=merge_classes([part.classes for part in parts]),
        skipped=dict(sorted((text, name) for part in parts for text, name in part.skipped.items())),
        n_texts=known[0] if known else None,
        facts=next((part.facts for part in parts if part.facts is not None), None),
    )


def _keep_named(
    excerpts: Mapping[int, TextExcerpt], summary: Summary, moments: Moments, info: SurveyInfo
) -> dict[int, TextExcerpt]:
    """Keep the texts that the summary or a moment names, and of their tokens those that moments show."""
    shown = moments.list_tokens()
    texts = sorted(summary.texts | shown.keys())
    return {text: excerpts[text].keep(shown.get(text, ()) if info.has_words else ()) for text in texts}


def _join_stretches(blocks: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for start, stop in sorted(blocks):
        if found and start < found[-1][1]:
            raise InvalidOption("two parts hold the same texts", hint="Name each part once.")
        if found and start == found[-1][1]:
            found[-1] = (found[-1][0], stop)
        else:
            found.append((start, stop))
    return tuple(found)


def find_difference(one: SurveyInfo, other: SurveyInfo) -> str:
    """Say in what two surveys differ first."""
    name = next(name for name, value in vars(one).items() if name in vars(other) and vars(other)[name] != value)
    if name == "settings":
        changed = {key for key, _ in one.settings.items() ^ other.settings.items()}
        return (
            "of other texts" if changed <= {"copies", "texts_sha256"} else f"not alike in {', '.join(sorted(changed))}"
        )
    return f"not alike in {name.replace('_', ' ')}" if name != "model" else f"of {one.model} and of {other.model}"
