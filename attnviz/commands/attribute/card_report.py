"""What methods that explain answers are worth: numbers beside chance, and a verdict that goes no further."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import NamedTuple

import numpy as np

from attnviz.display import escape_for_display, escape_for_spreadsheet, format_count
from attnviz.numbers.intervals import MIN_TEXTS, compute_intervals
from attnviz.records import Provenance
from attnviz.records.answers import AnswerKind
from attnviz.records.attribution import MethodTest, PerText, ReplacedTest
from attnviz.report import Block, Column, Note, Report, Row, Table
from attnviz.views import captions

JAIN_WALLACE = (0.437, 0.341)  # τ of attention with the gradient and with leave-one-out: table 2, IMDb (both classes)
MAX_NAME = 80


class Mean(NamedTuple):
    """A mean over texts with the ends of its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float

    @classmethod
    def from_numbers(cls, numbers: PerText) -> Mean:
        """Over the texts that have a number."""
        known = numbers[~np.isnan(numbers)]
        if not len(known):
            return cls(*(float("nan"),) * 3)
        if len(known) < MIN_TEXTS:
            return cls(float(known.mean()), float("nan"), float("nan"))
        low, high = compute_intervals(known[:, None])[:, 0].tolist()
        return cls(float(known.mean()), low, high)

    @property
    def is_above_zero(self) -> bool:
        """Return whether the interval lies above 0; equal numbers have none, and show nothing of other texts."""
        return self.low > 0

    def __str__(self) -> str:
        half = "" if np.isnan(self.low) else f" ±{(self.high - self.low) / 2:.3f}".replace("±0.", "±.")
        return "-" if np.isnan(self.value) else f"{self.value:.3f}{half}"


def card_report(
    found: Sequence[MethodTest],
    instead: Sequence[ReplacedTest],
    names: Sequence[str],
    provenance: Provenance,
    corpus: str,
    kind: AnswerKind = "label",
) -> Report:
    """A row per method, chance first, and one per way to replace attention, the model's own first; then what follows.

    The data hold model, texts, and by method each mean with its interval and the numbers of every text.
    """
    n_texts = len(names)
    of = escape_for_display(corpus if n_texts != 1 else names[0], MAX_NAME)
    model = escape_for_display(provenance.model, MAX_NAME)
    blocks: list[Block] = [_table(found), *([_instead(instead, kind)] if instead else [])]
    blocks += map(Note, (*_verdicts(found, n_texts), *_describe_attention(instead, kind), *_reading(kind)))
    return Report(
        title=f"what explains the answers of {model}, tested on {of}",
        subtitle=f"{captions.describe_status(provenance)} · {format_count(n_texts, 'texts')}",
        blocks=tuple(blocks),
        facts=captions.list_facts(provenance),
        data={
            "model": provenance.model,
            "revision": provenance.revision,
            **({} if kind == "label" else {"answers": kind}),
            "corpus": corpus,
            "texts": list(names),
            "methods": {each.method: _data(each, NUMBERS) for each in found},
            "attention": {each.by or "own": _data(each, OF_REPLACED) for each in instead},
            "jain_wallace_2019": {"tau_gradient": JAIN_WALLACE[0], "tau_leave_one_out": JAIN_WALLACE[1]},
        },
    )


def card_rows(found: Sequence[MethodTest], names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A header and a row per text and method, for CSV, with every digit."""
    yield ("text", "method", *NUMBERS)
    for place, name in enumerate(names):
        for each in found:
            numbers = (float(getattr(each, number)[place]) for number in NUMBERS)
            yield (escape_for_spreadsheet(name), each.method, *("" if isnan(n) else repr(n) for n in numbers))


NUMBERS = ("comprehensiveness", "sufficiency", "tau_leave_one_out", "tau_gradient", "n_passes")
OF_REPLACED = ("variation", "changed", "right")


def _table(found: Sequence[MethodTest]) -> Table:
    columns = (
        Column("tokens ranked by"),
        Column("comprehens. ↑"),
        Column("sufficiency ↓"),
        Column("τ left out"),
        Column("τ gradient"),
        Column("passes", digits=0),
    )
    rows: list[Row] = [
        (
            "chance" if each.method == "random" else each.method,
            *(str(Mean.from_numbers(getattr(each, number))) for number in NUMBERS[:2]),
            *(f"{Mean.from_numbers(getattr(each, number)).value:.3f}" for number in NUMBERS[2:4]),
            f"{each.n_passes.mean():.0f}",
        )
        for each in found
    ]
    gradient, leave_one_out = JAIN_WALLACE
    rows.append(("attention (J. & W.)", "-", "-", f"{leave_one_out:.3f}", f"{gradient:.3f}", "-"))
    return Table("card", "methods, tested", "facts", columns, tuple(rows))


def _instead(instead: Sequence[ReplacedTest], kind: AnswerKind) -> Table:
    """What becomes of the answers under other attention."""
    headings = {"variation": VARIATION[kind], "changed": "other answers", "right": "right answers"}
    numbers = [name for name in headings if any(not np.isnan(getattr(each, name)).all() for each in instead)]
    columns = (Column("attention"), *(Column(headings[number]) for number in numbers))
    rows = [
        (NAMES[each.by], *(str(Mean.from_numbers(getattr(each, number))) for number in numbers)) for each in instead
    ]
    return Table("attention", "answers under other attention", "facts", columns, tuple(rows))


VARIATION: dict[AnswerKind, str] = {
    "label": "total variation",
    "labels": "change of probabilities",
    "score": "change of the score",
}
NAMES = {
    "": "the model's own",
    "permuted": "permuted in each row",
    "uniform": "alike for every key",
    "random": "frozen to random",
}


def _describe_attention(instead: Sequence[ReplacedTest], kind: AnswerKind) -> Iterator[str]:
    if len(instead) < 2:
        return
    least = min(instead[1:], key=lambda each: float(each.variation.mean()))
    changed, varied = float(least.changed.mean()), float(least.variation.mean())
    changes = {
        "label": f"{changed:.1%} of the answers change, and their probabilities by {varied:.3f} of 1 (total variation)",
        "labels": f"{changed:.1%} of the answers change, and the probability of a label by {varied:.3f}",
        "score": f"the score changes by {varied:.3f}",
    }[kind]
    yield (
        f"With attention {NAMES[least.by]}, {changes}: no more than that needs the weights that the model works out "
        "(Jain & Wallace 2019; Wiegreffe & Pinter 2019). It was not trained under other attention, so what it loses "
        "may say more of that than of its own weights."
    )


def _verdicts(found: Sequence[MethodTest], n_texts: int) -> Iterator[str]:
    """What the intervals say and no more."""
    if n_texts < MIN_TEXTS:
        yield f"Over {format_count(n_texts, 'texts')} there is no interval, and so no verdict: it takes {MIN_TEXTS}."
        return
    chance, *others = found
    lost = {each.method: each.comprehensiveness for each in others}
    beyond = {name: Mean.from_numbers(numbers - chance.comprehensiveness) for name, numbers in lost.items()}
    nothing = [name for name, difference in beyond.items() if not difference.is_above_zero]
    if nothing:
        listed = ", ".join(f"{name} {beyond[name]}" for name in nothing)
        yield (
            "Not shown to cost the answer more than deleting tokens of the same texts at random (paired difference): "
            f"{listed}."
        )
    better = sorted((name for name in lost if name not in nothing), key=lambda name: -beyond[name].value)
    if better:
        listed = ", ".join(f"{name} +{beyond[name]}" for name in better)
        yield f"More than by chance is lost by deleting what is ranked first (paired difference) by: {listed}."
        behind = {name: Mean.from_numbers(lost[better[0]] - lost[name]) for name in better[1:]}
        equal = [name for name, difference in behind.items() if not difference.is_above_zero]
        if equal:
            yield f"Paired, these texts do not tell {better[0]} and {', '.join(equal)} apart."
        if apart := [f"{name} by {behind[name]}" for name in behind if name not in equal]:
            yield f"Paired, {better[0]} is ahead of {', '.join(apart)}."


def _reading(kind: AnswerKind) -> Iterator[str]:
    is_score = kind == "score"
    lost = "by how much the score falls" if is_score else "the probability that the answer loses"
    left = "by how much it falls" if is_score else "what it loses"
    yield (
        f"Comprehensiveness is {lost}, as a mean, when the first 5, 10, 20 and 50 % of "
        f"the tokens are deleted; sufficiency {left} when only these are left, below 0 where it "
        f"{'rises' if is_score else 'gains'} (DeYoung et al. 2020). ± is half of a 95 % interval over texts."
    )
    yield (
        "τ (Kendall) compares the sizes of scores with those of leave-one-out and of the gradient, as Jain & Wallace "
        "2019 did for attention in a BiLSTM on IMDb (J. & W.). It counts every pair of tokens alike, and most tokens "
        "change hardly anything; deleting counts the few that are ranked first, and on which side they are. So the two "
        "may disagree, and neither is the other's proof."
    )


def _data(each: MethodTest | ReplacedTest, numbers: Sequence[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for number in numbers:
        values: PerText = getattr(each, number)
        mean = Mean.from_numbers(values)
        interval = None if np.isnan(mean.low) else [mean.low, mean.high]
        shown = [None if isnan(value) else value for value in values.tolist()]
        found[number] = {"mean": None if np.isnan(mean.value) else mean.value, "interval": interval, "texts": shown}
    return found
