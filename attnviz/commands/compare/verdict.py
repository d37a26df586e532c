"""What a comparison says, in plain words, and never more than its numbers bear. Knows `comparison`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log

import numpy as np

from attnviz.commands.compare.comparison import Comparison, MeanDifference, ModelComparison
from attnviz.display import escape_for_display, pluralize
from attnviz.measures.divergence import max_divergence_from_mean
from attnviz.numbers.intervals import compute_seed_interval
from attnviz.records.training_metrics import TestMetrics
from attnviz.views.answers import describe_answer, describe_given_labels
from attnviz.views.likeness import describe_likeness

COPY = 0.05  # of the largest divergence there is: heads nearer than this are nearly copies of each other
NO_EVIDENCE = "no evidence that more heads help this task"


def verdict(comparison: Comparison) -> tuple[str, ...]:
    """Sentences: how wide the heads look, how much they differ, which are alike, and whether it matters to the task."""
    first, *others = comparison.models
    sentences: list[str] = []
    for place, other in enumerate(others):
        sentences += _width(comparison, first, other, place)
    for model in comparison.models:
        sentences += _kinds(comparison, model)
    sentences += _alike(comparison)
    for place, other in enumerate(others):
        sentences += _task(comparison, first, other, place)
    sentences += _explain_labels(comparison.models)
    sentences += _unknown(comparison.models)
    sentences += _cards(first, others)
    return tuple(sentences)


def near_copies(comparison: Comparison, model: ModelComparison) -> int | None:
    """How many heads have a near copy within their own layer; None where that was not measured."""
    if comparison.divergences is None:
        return None
    start = sum(len(each.heads) for each in comparison.models[: comparison.models.index(model)])
    number = 0
    for layer in range(len(model.layer_numbers)):
        own = slice(start + layer * model.n_heads, start + (layer + 1) * model.n_heads)
        between = comparison.divergences[own, own] + np.diag([np.inf] * model.n_heads)
        number += int((between.min(axis=1) < COPY * log(2)).sum())
    return number


def _width(comparison: Comparison, first: ModelComparison, other: ModelComparison, place: int) -> Iterator[str]:
    if "effective_keys" not in comparison.differences:
        return
    difference = comparison.differences["effective_keys"][place]
    keys = [f"{model.per_text('effective_keys').mean():.1f}" for model in (other, first)]
    uniform = f"{comparison.uniform['effective_keys'].mean():.1f}"
    subject = f"{_each(other)}{_heads(other)} attends to {keys[0]} effective keys"
    against = f"{keys[1]} for {_each(first)}{_heads(first)}"
    on = "On this text" if comparison.n_texts == 1 else f"On these {comparison.n_texts:,} texts"
    yield f"{on} {subject} against {against} (uniform attention: {uniform}){_finding(difference)}."
    bounds = (difference.value, difference.low, difference.high)
    if other.n_heads > first.n_heads and not all(bound < 0 for bound in bounds if bound is not None):
        yield f"That the heads of {_name(other)} look more narrowly than those of {_name(first)} is not seen here."


def _kinds(comparison: Comparison, model: ModelComparison) -> Iterator[str]:
    """How far a model's heads differ from each other."""
    if not _many(model):
        return
    copies = near_copies(comparison, model)
    if "vendi_score" in comparison.differences:
        worth = model.per_text("vendi_score").mean()
        tail = (
            "" if copies is None else f"; {copies} of {len(model.heads)} {'is' if copies == 1 else 'are'} nearly copies"
        )
        explained = f" (of another in their layer: JSD under {COPY:.0%} of ln 2)" if copies else ""
        of_layer = "of" if len(model.heads) == model.n_heads else "of a layer of"
        yield (
            f"The {model.n_heads} heads {of_layer} {_name(model)} are as different as {worth:.1f} heads "
            f"that share nothing{tail}{explained}."
        )
    if "divergence_from_mean" in comparison.differences:
        lost = model.per_text("divergence_from_mean").mean()
        share = lost / max_divergence_from_mean(model.n_heads)
        yield (
            f"The mean of its heads is {lost:.3f} nats of JSD away from each of them ({share:.0%} of the most that "
            f"{model.n_heads} heads can have): so much a single map of means does not show."
        )


def _alike(comparison: Comparison) -> Iterator[str]:
    """Say which heads of all models are most alike."""
    heads = comparison.head_names
    if comparison.divergences is not None and len(heads) > 1:
        yield describe_likeness(comparison.divergences, heads)


def _explain_labels(models: Sequence[ModelComparison]) -> Iterator[str]:
    """Say how models are held against the labels of the texts, where they were not trained on such."""
    for model in models:
        if model.answers:
            for reading in describe_given_labels(model.answers, [each.gold for each in model.predictions]):
                yield f"{_name(model)}: {reading[0].lower()}{reading[1:]}"


def _unknown(models: Sequence[ModelComparison]) -> Iterator[str]:
    """Say how much of the texts the vocabularies do not hold, and what is not judged for that."""
    for model in models:
        n, n_unknown = len(model.predictions), sum(each.n_unknown for each in model.predictions)
        n_others = sum(not each.is_judged for each in model.predictions)
        if n_unknown and (n > 1 or not n_others):
            n_read = sum(each.n_read for each in model.predictions)
            left = f"; {n_others} of {n} texts, half unknown or more, are not judged" if n_others else ""
            yield f"{_name(model)} reads {n_unknown:,} of {n_read:,} tokens as [UNK]{left}."


def _task(comparison: Comparison, first: ModelComparison, other: ModelComparison, place: int) -> Iterator[str]:
    if comparison.right and comparison.n_texts > 1 and None not in (first.accuracy, other.accuracy):
        difference = comparison.right[place]
        points = f"{100 * difference.value:+.1f} points"
        interval = f"(no interval: {difference.no_interval})"
        if difference.low is not None and difference.high is not None:
            interval = f"({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"
        task = f"{_name(other)} is right on {other.accuracy:.1%} of them and {_name(first)} on {first.accuracy:.1%}"
        if difference.includes_zero is not False:
            more = other.n_heads > first.n_heads
            finding = NO_EVIDENCE if more else "no evidence that either does better"
        else:
            finding = f"{_name(other if difference.value > 0 else first)} does better on texts like these"
        yield f"{task}: {points} {interval}, {finding}."
    elif comparison.n_texts == 1 and first.predictions and other.predictions:
        yield f"{_reads(first)}, {_reads(other)}."


def _cards(first: ModelComparison, others: list[ModelComparison]) -> Iterator[str]:
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
            f"{_name(other)} and {_name(first)}{_between_seeds(first.tested, other.tested)}."
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


def _finding(difference: MeanDifference) -> str:
    if difference.low is None or difference.high is None:
        return ""
    interval = f"({difference.low:+.1f} to {difference.high:+.1f})"
    doubt = " that may be none" if difference.includes_zero else ""
    return f": a difference of {difference.value:+.1f} keys {interval}{doubt}"


def _heads(model: ModelComparison) -> str:
    n = len(model.heads)
    return f"the {n} heads of {_name(model)}" if n > 1 else f"the head of {_name(model)}"


def _each(model: ModelComparison) -> str:
    return "each of " if len(model.heads) > 1 else ""


def _reads(model: ModelComparison) -> str:
    (prediction,) = model.predictions
    assert model.answers is not None
    if not prediction.is_judged:
        unknown = f"{prediction.n_unknown} of {prediction.n_read} tokens are not in its vocabulary"
        return f"{_name(model)} does not judge it ({unknown})"
    return f"{_name(model)} reads it as {describe_answer(model.answers, prediction)}"


def _many(model: ModelComparison) -> bool:
    return model.n_heads > 1


def _name(model: ModelComparison) -> str:
    return escape_for_display(model.name, 40)
