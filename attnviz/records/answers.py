"""What a classifier answers: one label of several, any number of labels, or numbers; and how its training went.

Also what its heads look at. Knows no torch, no models, no texts and no files.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from attnviz.records import Setting, is_mostly_unknown
from attnviz.records.head_names import HeadPattern, choose_name
from attnviz.table.intervals import Interval


@dataclass(frozen=True)
class Prediction:
    """What a classifier says about one text. `probabilities` are one per label, in the order of its labels.

    A regressor gives `scores` instead.
    """

    text_name: str
    probabilities: tuple[float, ...]
    gold: int | None  # the label that came with the text, by the number that its data set gives it
    n_tokens: int  # in the whole text
    n_read: int  # of them by the model
    n_unknown: int = 0  # of these, not in its vocabulary
    scores: tuple[float, ...] = ()

    @property
    def is_judged(self) -> bool:
        """Check whether the vocabulary holds over half of what was read: else there is an answer, and no verdict."""
        return not is_mostly_unknown(self.n_unknown, self.n_read)

    @property
    def label(self) -> int:
        """Return the most probable label; of equals the first."""
        return self.probabilities.index(max(self.probabilities))

    @property
    def probability(self) -> float:
        """Return how sure the model is of its answer."""
        return max(self.probabilities)


@dataclass(frozen=True)
class Point:
    """Training at one moment: means since the last one, with dropout as it is in training."""

    epoch: float  # passes over the texts so far, such as 1.25
    loss: float  # cross-entropy of labels in nats, smoothing included
    accuracy: float


@dataclass(frozen=True)
class HeadScore:
    """How much of its attention each head gives to what counts, a mean over queries."""

    name: str  # such as "previous token"
    shares: tuple[tuple[float, ...], ...]  # [layer][head]
    equal: float  # what uniform attention gives


@dataclass(frozen=True)
class Epoch:
    """The model after one pass over the training texts, measured on texts held out."""

    number: int  # from 1
    loss: float  # cross-entropy in nats, without label smoothing
    accuracy: float


@dataclass(frozen=True)
class History:
    """A training run: many points, an epoch now and then, and which of the epochs was kept."""

    points: tuple[Point, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    masked_word_loss: float | None = None  # in nats, on texts held out, at the end of pretraining if there was any

    @property
    def best(self) -> Epoch | None:
        """Return the epoch of the highest accuracy, of equals the one of the lowest loss."""
        return max(self.epochs, key=lambda epoch: (epoch.accuracy, -epoch.loss), default=None)


@dataclass(frozen=True)
class AttentionCost:
    """How much of a model's accuracy goes with what its attention looks at, paired by text."""

    what: str  # "every key alike", "layer 0, head 3: every key alike"
    texts: Interval  # over texts, of the model itself
    seeds: Interval | None  # over seeds of training
    p_value: float  # of no difference on these texts, corrected for how many costs there are (Holm 1979)


@dataclass(frozen=True)
class ValidationMetrics:
    """The kept model, as it lies in its files, on the texts held out."""

    n_texts: int
    accuracy: Interval
    loss: float  # cross-entropy in nats, calibrated
    calibration_error: float
    temperature: float
    labels_changed: int  # by the rounding of the stored weights
    calibration_bound: float | None = None  # 95 % of the errors that chance gives right probabilities are below it


@dataclass(frozen=True)
class TestMetrics:
    """Runs of one recipe that differ in their seed only, on texts that were not learned from."""

    data: str
    n_texts: int
    seeds: tuple[int, ...]
    accuracies: tuple[float, ...]  # one per seed
    mean: Interval  # over the seeds, Student's t; of one seed over the texts
    costs: tuple[AttentionCost, ...] = ()
    n_cost_texts: int = 0  # of these texts, that costs were measured on


@dataclass(frozen=True)
class HeadMetrics:
    """What the kept model's heads look at, on texts held out, and what chance gives."""

    n_texts: int
    n_tokens: int  # read of each, at most
    scores: tuple[HeadScore, ...]
    n_random: int  # encoders with random weights
    chance: dict[str, float]  # the largest share of any of their heads, by score

    def __post_init__(self) -> None:
        """Raise ValueError for scores that are not of the same heads, or that nothing is a multiple of."""
        if len({tuple(map(len, score.shares)) for score in self.scores}) != 1 or any(s.equal <= 0 for s in self.scores):
            raise ValueError("scores must be of the same heads and have an equal share above 0")


@dataclass(frozen=True)
class Metrics:
    """All there is to say about a training run that ended. Without clock or path: the same run has the same metrics."""

    settings: dict[str, Setting]
    data: str
    data_sha256: str
    n_texts: int
    labels: tuple[str, ...]
    sizes: dict[str, Setting]  # of the encoder
    n_parameters: int
    weights_sha256: str
    versions: dict[str, str]
    computed_on: str  # such as "cpu, 1 thread"
    history: History
    held_out: ValidationMetrics
    heads: HeadMetrics | None = None  # where texts are held out
    tested: TestMetrics | None = None


def name_heads(measured: HeadMetrics) -> list[list[HeadPattern]]:
    """Return by layer and head what it looks at over many texts, by the rule of `choose_name`.

    Chance is as far beyond an equal share again as the largest share of any head with random weights: the heads of
    another random model come a little beyond those that were looked at.
    """
    chance = {each.name: 2 * measured.chance.get(each.name, 1.0) - each.equal for each in measured.scores}
    return [
        [
            choose_name(HeadPattern(each.name, each.shares[layer][head], chance[each.name]) for each in measured.scores)
            for head in range(len(shares))
        ]
        for layer, shares in enumerate(measured.scores[0].shares)
    ]


AnswerKind = Literal["label", "labels", "score"]
MIN_PROBABILITY = 0.5  # of a label that a text has, where each label has a probability of its own
SIDES = {"negative": 0, "neg": 0, "positive": 1, "pos": 1}  # as data sets number them
NUMBERED = re.compile("(?:label_)?([0-9]{1,6})")


@dataclass(frozen=True)
class AnswerInfo:
    """The labels of a classifier, or the names of the numbers that a regressor gives, in the order of its outputs.

    `label`: a text has one of them. `labels`: it has each or not, with a probability of its own. `score`: numbers.
    """

    labels: tuple[str, ...]  # distinct
    kind: AnswerKind
    numbers: tuple[int, ...] | None  # by which data sets call the labels; None: not known
    third_party: bool = False  # then the numbers were read off the names of the labels

    @classmethod
    def from_training(cls, labels: Sequence[str]) -> "AnswerInfo":
        """Return the labels of a model that was trained on their numbers."""
        return cls(tuple(labels), "label", tuple(range(len(labels))))

    @classmethod
    def from_names(cls, names: Sequence[str], kind: AnswerKind) -> "AnswerInfo":
        """Return the answers of a third-party model; names that are not distinct get their numbers."""
        distinct = len(set(names)) == len(names)
        labels = tuple(names) if distinct else tuple(f"{name} ({place})" for place, name in enumerate(names))
        return cls(labels, kind, number_labels(names) if kind == "label" else None, third_party=True)

    def find_labels(self, given: Sequence[int | None]) -> list[int | None]:
        """Return the place of the label that each number of a data set means; None where there is none.

        Where any of them is a number that no label has, all are None: of classes 0, 1 and 2 the 1 is hardly the
        "positive" of a model that has two.
        """
        places = {} if self.list_lacking(given) else {number: place for place, number in enumerate(self.numbers or ())}
        return [None if number is None else places.get(number) for number in given]

    def list_lacking(self, given: Sequence[int | None]) -> list[int]:
        """Return the numbers of a data set that no label has, in rising order; below 0 they say that there is none."""
        lacking = {number for number in given if number is not None and number >= 0} - {*(self.numbers or ())}
        return [] if self.numbers is None else sorted(lacking)

    def list_numbers(self) -> list[tuple[int, str]]:
        """Return the numbers that data sets give the labels, beside the labels, in rising order."""
        return [] if self.numbers is None else sorted(zip(self.numbers, self.labels, strict=True))

    def choose_labels(self, prediction: Prediction) -> tuple[int, ...]:
        """Return the places of a text's labels: the most probable one, or all that are probable; of numbers none."""
        if self.kind == "label":
            return (prediction.label,)
        probable = (probability >= MIN_PROBABILITY for probability in prediction.probabilities)
        return tuple(place for place, is_probable in enumerate(probable) if is_probable)


def number_labels(names: Sequence[str]) -> tuple[int, ...] | None:
    """Return the number of each label, where names say it: "NEG" and "POS", or "LABEL_0", "LABEL_1" …; else None.

    Of negative, neutral and positive it is None: whether positive is 1 or 2 depends on the data set.
    """
    plain = [name.strip().lower() for name in names]
    numbered = [NUMBERED.fullmatch(name) for name in plain]
    found = [SIDES.get(name) if match is None else int(match[1]) for name, match in zip(plain, numbered, strict=True)]
    known = tuple(number for number in found if number is not None)
    return known if sorted(known) == list(range(len(names))) and len(known) == len(names) else None
