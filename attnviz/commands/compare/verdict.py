"""What a comparison says, in plain words, and never more than its numbers bear. Knows `comparison`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan, log

import numpy as np

from attnviz.commands.compare.comparison import UNIFORM, ComparedModel, Comparison, explain_missing
from attnviz.display import pluralize
from attnviz.measures.divergence import max_divergence_from_mean
from attnviz.numbers.intervals import compute_seed_interval
from attnviz.records.training_metrics import TestMetrics
from attnviz.views.answers import describe_answer, describe_given_labels
from attnviz.views.likeness import describe_likeness

COPY = 0.05  # of the largest divergence there is: heads nearer than this are nearly copies of each other
KEYS = "effective_keys"
NO_EVIDENCE = "no evidence that more heads help this task"


def verdict(comparison: Comparison) -> tuple[str, ...]:
    """Sentences: how wide the heads look, how much they differ, which are alike, and whether it matters to the task."""
    first, *others = comparison.models
    sentences: list[str] = []
    for place, other in enumerate(others):
        sentences += _width(comparison, first, other, place)
    for model in comparison.models:
        sentences += _kinds(comparison, model)
    if comparison.divergences is not None and len(comparison.heads) > 1:
        sentences.append(describe_likeness(comparison.divergences, comparison.head_names))
    for place, other in enumerate(others):
        sentences += _task(comparison, first, other, place)
    for model in comparison.models:  # how they are held against labels that they were not trained on
        if model.answers:
            readings = describe_given_labels(model.answers, [each.gold for each in model.predictions])
            sentences += [f"{model.label}: {reading[0].lower()}{reading[1:]}" for reading in readings]
    for model in comparison.models:  # how much of the texts the vocabularies do not hold, and what is not judged for it
        n, n_unknown = len(model.predictions), sum(each.n_unknown for each in model.predictions)
        n_others = sum(not each.is_judged for each in model.predictions)
        if n_unknown and (n > 1 or not n_others):
            n_read = sum(each.n_read for each in model.predictions)
            left = f"; {n_others} of {n} texts, half unknown or more, are not judged" if n_others else ""
            sentences.append(f"{model.label} reads {n_unknown:,} of {n_read:,} tokens as [UNK]{left}.")
    sentences += _cards(first, others)
    return tuple(sentences)


def near_copies(comparison: Comparison, model: ComparedModel) -> int | None:
    """How many heads have a near copy within their own layer; None where that was not measured."""
    if comparison.divergences is None:
        return None
    number, own = 0, [place for place, (of, *_) in enumerate(comparison.heads) if of is model]
    for start in range(0, len(own), model.n_heads):
        layer = own[start : start + model.n_heads]
        between = comparison.divergences[np.ix_(layer, layer)] + np.diag([np.inf] * model.n_heads)
        number += int((between.min(axis=1) < COPY * log(2)).sum())
    return number


def _width(comparison: Comparison, first: ComparedModel, other: ComparedModel, place: int) -> Iterator[str]:
    if KEYS not in comparison.differences:
        return
    difference = comparison.differences[KEYS][place]
    keys, against, uniform = (f"{comparison.mean(name, KEYS):.1f}" for name in (other.name, first.name, UNIFORM))
    on = "On this text" if comparison.n_texts == 1 else f"On these {comparison.n_texts:,} texts"
    finding = ""
    if not isnan(difference.low):
        interval = f"({difference.low:+.1f} to {difference.high:+.1f})"
        doubt = "" if difference.is_beyond_chance else " that may be none"
        finding = f": a difference of {difference.value:+.1f} keys {interval}{doubt}"
    yield (
        f"{on} {_name_heads(other)} attends to {keys} effective keys against {against} for {_name_heads(first)} "
        f"(uniform attention: {uniform}){finding}."
    )
    is_narrower = difference.value < 0 and (isnan(difference.low) or difference.is_beyond_chance)
    if other.n_heads > first.n_heads and not is_narrower:
        yield f"That the heads of {other.label} look more narrowly than those of {first.label} is not seen here."


def _kinds(comparison: Comparison, model: ComparedModel) -> Iterator[str]:
    """How far a model's heads differ from each other."""
    if model.n_heads == 1:
        return
    if "vendi_score" in comparison.differences:
        copies, tail = near_copies(comparison, model), ""
        if copies is not None:
            n_heads = model.n_layers * model.n_heads
            tail = f"; {copies} of {n_heads} {'is' if copies == 1 else 'are'} nearly copies"
            tail += f" (of another in their layer: JSD under {COPY:.0%} of ln 2)" if copies else ""
        yield (
            f"The {model.n_heads} heads {'of' if model.n_layers == 1 else 'of a layer of'} {model.label} are as "
            f"different as {comparison.mean(model.name, 'vendi_score'):.1f} heads that share nothing{tail}."
        )
    if "divergence_from_mean" in comparison.differences:
        lost = comparison.mean(model.name, "divergence_from_mean")
        share = lost / max_divergence_from_mean(model.n_heads)
        yield (
            f"The mean of its heads is {lost:.3f} nats of JSD away from each of them ({share:.0%} of the most that "
            f"{model.n_heads} heads can have): so much a single map of means does not show."
        )


def _task(comparison: Comparison, first: ComparedModel, other: ComparedModel, place: int) -> Iterator[str]:
    if comparison.n_texts == 1:
        if first.predictions and other.predictions:
            yield f"{_describe_reading(first)}, {_describe_reading(other)}."
        return
    if not comparison.right:
        return
    difference = comparison.right[place]
    interval = f"({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"
    if reason := explain_missing(difference):
        interval = f"(no interval: {reason})"
    if difference.is_beyond_chance:
        finding = f"{(other if difference.value > 0 else first).label} does better on texts like these"
    else:
        finding = NO_EVIDENCE if other.n_heads > first.n_heads else "no evidence that either does better"
    shares = [f"{comparison.mean(model.name, 'right'):.1%}" for model in (other, first)]
    task = f"{other.label} is right on {shares[0]} of them and {first.label} on {shares[1]}"
    yield f"{task}: {100 * difference.value:+.1f} points {interval}, {finding}."


def _cards(first: ComparedModel, others: Sequence[ComparedModel]) -> Iterator[str]:
    """What the model cards say over several seeds, which one comparison cannot."""
    if first.tested is None:
        return
    for other in others:
        if other.tested is None or (other.tested.data, other.tested.seeds) != (first.tested.data, first.tested.seeds):
            continue
        means = f"{other.tested.mean.value:.4f} against {first.tested.mean.value:.4f}"
        n_seeds = len(other.tested.seeds)
        yield (
            f"Over {n_seeds} {pluralize(n_seeds, 'seeds')} on {other.tested.n_texts:,} texts the cards say {means} for "
            f"{other.label} and {first.label}{_between_seeds(first.tested, other.tested)}."
        )


def _between_seeds(first: TestMetrics, other: TestMetrics) -> str:
    """Say how far two recipes differ seed by seed on the same texts: overlap of their intervals does not say that."""
    pairs = [after - before for before, after in zip(first.accuracies, other.accuracies, strict=True)]
    if len(pairs) < 2:
        return ": one seed tells nothing of others"
    found = compute_seed_interval(pairs)
    doubt = ", which may be none" if found.low <= 0 <= found.high else ""
    interval = f"95 % interval over seeds of training {found.low:+.4f} to {found.high:+.4f}"
    return f": {found.value:+.4f} seed by seed ({interval}){doubt}"


def _name_heads(model: ComparedModel) -> str:
    n = model.n_layers * model.n_heads
    return f"each of the {n} heads of {model.label}" if n > 1 else f"the head of {model.label}"


def _describe_reading(model: ComparedModel) -> str:
    (prediction,) = model.predictions
    assert model.answers is not None
    if not prediction.is_judged:
        unknown = f"{prediction.n_unknown} of {prediction.n_read} tokens are not in its vocabulary"
        return f"{model.label} does not judge it ({unknown})"
    return f"{model.label} reads it as {describe_answer(model.answers, prediction)}"
