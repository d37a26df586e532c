"""What a survey was asked of which model and texts, and what it measures once of the model."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from attnviz.records import Setting
from attnviz.records.head_names import PLACE, SINKS

TOKENS = "n_tokens"  # a column that is no measure; nor are those whose names begin as follows
ABLATION = "without_head_"
QUERIES = f"{ABLATION}queries"  # a number that a text without another beside it does not have
N_SAMPLED = 256  # texts over which a head's output is a mean, where that takes its place
WORD, PATTERN, OFFSET = "word", "pattern", "offset"  # what heads attend to
ON_REPEATS = " on repeats"  # behind the name of what a head does with random tokens that come twice
SUCCESSOR = "successor on lists"  # what a head does that looks from a word to the one that comes before it in a list
PLACES = ("repeats", "texts", "lists")  # where it is measured what goes without heads


@dataclass(frozen=True)
class SurveyMeasure:
    """One measure: what it is of."""

    name: str
    unit: str
    level: str  # "head", "layer", or "text" for one number of each text


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
    can: tuple[str, ...]  # what else the program does with such a model: "ablate", "explain"
    has_words: bool  # whether anything of the texts is kept but their names and numbers
    measures: tuple[SurveyMeasure, ...]
    settings: dict[str, Setting]
    versions: dict[str, str]

    @cached_property
    def heads(self) -> list[tuple[int, int]]:
        """List the heads, each by the layer's own number and the head's."""
        return list(product(self.layer_numbers, range(self.n_heads)))

    def place(self, heads: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the places of heads that have their layers' own numbers: layers are counted from 0."""
        return [(self.layer_numbers.index(layer), head) for layer, head in heads]

    @property
    def has_costs(self) -> bool:
        """Tell whether it is measured what answers lose without heads."""
        return any(measure.name.startswith(ABLATION) for measure in self.measures)

    def list_places(self, level: str) -> list[tuple[int | None, int | None]]:
        """Return the layer and head of each number of a measure of that level."""
        if level == "head":
            return [*self.heads]
        return [(layer, None) for layer in (self.layer_numbers if level == "layer" else (None,))]

    def list_columns(self) -> list[str]:
        """Return the names of all columns of numbers, in order; that of tokens is one of whole numbers."""
        return [name for measure in self.measures if measure.name != TOKENS for name in self.name_columns(measure)]

    def name_columns(self, measure: SurveyMeasure) -> list[str]:
        """Return what the columns of a measure are called: "peak 0.1", "vendi_score 0", "n_tokens"."""
        places = self.list_places(measure.level)
        return [f"{measure.name} {'.'.join(str(n) for n in at if n is not None)}".rstrip() for at in places]


def choose_places(kind: str) -> tuple[str, str]:
    """Return where a kind was found, so that its heads should cost something there, and where it is of no use."""
    if kind == SUCCESSOR:
        return "lists", "texts"
    return ("repeats", "texts") if kind.endswith(ON_REPEATS) else ("texts", "repeats")


@dataclass(frozen=True)
class HeadCost:
    """What a decoder loses where some heads give zeros: nats per token more than with all."""

    kind: str  # what the heads are named
    heads: tuple[tuple[int, int], ...]  # a layer's own number and a head
    lost: dict[str, float]  # at the two of `choose_places`
    chance: dict[str, float]  # there, what as many heads at random cost at most

    @property
    def stands(self) -> bool:
        """Tell whether the heads cost more than chance where their kind was found, and nothing where it is of no use.

        What only rests on a sink says of itself that it does nothing, so that nothing is asked of it. A place from the
        query and the same word are there to be looked at in any text, and so on random tokens that come twice: such
        heads may cost elsewhere, too.
        """
        bare = self.kind.removesuffix(ON_REPEATS)
        if bare in SINKS:
            return True
        is_missed, is_missed_elsewhere = (self.lost[at] > self.chance[at] for at in choose_places(self.kind))
        is_anywhere = PLACE.fullmatch(bare) is not None or bare == "same word"
        return is_missed and (is_anywhere or not is_missed_elsewhere)


@dataclass(frozen=True)
class HeadFeed:
    """How much of a head's pattern on repeats, a share of its attention, is left without a head of a lower layer."""

    writer: tuple[int, int]
    reader: tuple[int, int]
    before: float  # with all heads
    after: float
    least: float  # that is left without any one of some heads at random


@dataclass(frozen=True)
class ModelFacts:
    """What was measured of the model on a few of the texts: what chance gives, and what word order does."""

    n_texts: int = 0
    n_random: int = 0  # models of first weights
    plain: dict[str, tuple[float, ...]] = field(default_factory=dict)  # by measure or offset: the mean of each head
    chance: dict[str, float] = field(default_factory=dict)  # the largest mean of any head of any random model
    shuffled: dict[str, tuple[float, ...]] = field(default_factory=dict)  # as `plain`, words in random order
    probes: dict[str, tuple[float, ...]] = field(default_factory=dict)  # by kind: each head's, on repeats and lists
    probe_chance: dict[str, float] = field(default_factory=dict)  # by kind: the most of any head at any wrong place
    costs: tuple[HeadCost, ...] = ()  # of a decoder: see `leave_out_heads`
    feeds: tuple[HeadFeed, ...] = ()  # see `measure_feeds`
    named: tuple[str, ...] = ()  # what each head looks at, by the model's card if it has one


def find_difference(one: SurveyInfo, other: SurveyInfo) -> str:
    """Say in what two surveys differ first."""
    name = next(name for name, value in vars(one).items() if name in vars(other) and vars(other)[name] != value)
    if name == "settings":
        changed = {key for key, _ in one.settings.items() ^ other.settings.items()}
        return "of other texts" if changed == {"texts_sha256"} else f"not alike in {', '.join(sorted(changed))}"
    return f"not alike in {name.replace('_', ' ')}" if name != "model" else f"of {one.model} and of {other.model}"
