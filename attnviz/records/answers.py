"""What a model answers a text with: one label of several, any number of labels, or numbers. Knows no model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from attnviz.records.training_metrics import Prediction

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
    def from_training(cls, labels: Sequence[str]) -> AnswerInfo:
        """Return the labels of a model that was trained on their numbers."""
        return cls(tuple(labels), "label", tuple(range(len(labels))))

    @classmethod
    def from_names(cls, names: Sequence[str], kind: AnswerKind) -> AnswerInfo:
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
