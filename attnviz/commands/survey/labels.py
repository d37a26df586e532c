"""What each head of a survey is called, and why. Knows `survey` and the patterns of heads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnviz.commands.survey.survey import Survey
from attnviz.records import training_metrics
from attnviz.records.training_metrics import MANY_TIMES, HeadMetrics, HeadScore
from attnviz.report import Column, Row, Table
from attnviz.views.patterns import LABELS, NO_PATTERN

LARGE = 0.5  # of attention: a share that names a head by itself


def head_labels(survey: Survey) -> list[str]:
    """Of each head such as "previous token 0.93", "punctuation 5.2 ×"; "" for no single pattern, or no null."""
    facts, info = survey.facts, survey.info
    if facts is None or not facts.chance:
        return [""] * info.n_places
    means = survey.summary.means(info.bounds)
    scores = tuple(
        HeadScore(LABELS[name], by_layer(means[info.columns[name]], info.n_heads), facts.equal[name])
        for name in LABELS
        if name in facts.chance and facts.equal[name] > 0
    )
    chance = {LABELS[name]: share for name, share in facts.chance.items()}
    measured = HeadMetrics(survey.summary.n_texts, info.max_tokens, scores, facts.n_random, chance)
    return list(training_metrics.head_labels(measured, LARGE))


def shown_labels(survey: Survey) -> list[str]:
    """The same for people, who are to tell a head without a single pattern from one that was held against nothing."""
    without = NO_PATTERN if survey.facts is not None and survey.facts.chance else "-"
    return [label or without for label in head_labels(survey)]


def by_layer(values: np.ndarray, n_heads: int) -> tuple[tuple[float, ...], ...]:
    """Of each layer its heads."""
    return tuple(tuple(map(float, layer)) for layer in values.reshape(-1, n_heads))


def patterns_table(survey: Survey) -> Table:
    """Of each pattern the head that follows it most, and what it is held against."""
    info, facts = survey.info, survey.facts
    means = survey.summary.means(info.bounds)
    columns = [Column("pattern"), Column("layer"), Column("head"), Column("share"), Column("equal share")]
    if facts is not None and facts.chance:
        columns.append(Column("first weights, at most"))
    if facts is not None and facts.shuffled:
        columns.append(Column("words shuffled"))
    rows: list[Row] = []
    for name, pattern in LABELS.items():
        if name in info.columns and facts is not None and facts.equal.get(name, 0) > 0:
            shares = means[info.columns[name]]
            place = int(shares.argmax())
            compared = [facts.chance.get(name, "-")] if facts.chance else []
            compared += [facts.shuffled[name][place] if name in facts.shuffled else "-"] if facts.shuffled else []
            rows.append((pattern, *info.heads[place], float(shares[place]), facts.equal[name], *compared))
    return Table("patterns", "The head that follows each pattern most", "facts", tuple(columns), tuple(rows))


def label_notes(survey: Survey) -> Iterator[str]:
    """What a label needs."""
    facts = survey.facts
    if facts is None or not facts.chance:
        yield "Heads are not labelled: that takes --null random, which says what chance gives."
        return
    yield (
        f"A label needs a share of at least {LARGE:g}, or {MANY_TIMES:g} × an equal share, and more than the largest "
        f"of any head in {facts.n_random} models of first weights on {facts.n_texts} of the texts."
    )
    if facts.shuffled:
        yield (
            "A share that stays where words are shuffled is one of places, not of language: both were measured on "
            f"{facts.n_texts} of the texts."
        )
