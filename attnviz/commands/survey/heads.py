"""What a survey knows of each head, for machines: means and intervals, quantiles, extreme texts, labels, tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import nan, sqrt

import numpy as np
from jaxtyping import Float64

from attnviz.commands.survey.exact import N_EXTREMES
from attnviz.commands.survey.survey import ABLATION, MASS_BITS, ModelFacts, Survey, SurveyMeasure
from attnviz.display import escape_for_spreadsheet
from attnviz.measures.intervals import MAX_DEGREES, MIN_TEXTS, correct_p_values, p_value, t_quantile
from attnviz.records import training_metrics
from attnviz.records.training_metrics import HeadMetrics, HeadScore
from attnviz.report import Row
from attnviz.views.patterns import LABELS, NO_PATTERN

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LARGE = 0.5  # of attention: a share that names a head by itself


def mean_intervals(survey: Survey) -> tuple[Float64[np.ndarray, " column"], Float64[np.ndarray, " column"]]:
    """Of each column the mean over texts, and half of its 95 % interval (Student's t): NaN of fewer than 10 texts."""
    summary, bounds = survey.summary, survey.info.bounds
    counts = summary.counts
    times = np.full(len(counts), nan)
    for n in np.unique(counts[counts >= MIN_TEXTS]).tolist():
        times[counts == n] = t_quantile(min(n - 1, MAX_DEGREES)) / sqrt(n)
    return summary.means(bounds), times * summary.deviations(bounds)


def head_labels(survey: Survey) -> list[str]:
    """Of each head such as "previous token 0.93", "punctuation 5.2 ×"; "" for no single pattern, or no null."""
    facts, info = survey.facts or ModelFacts(), survey.info
    if not facts.chance:
        return [""] * info.n_places
    means = survey.summary.means(info.bounds)
    scores = tuple(
        HeadScore(label, (tuple(means[info.columns[name]].tolist()),), facts.equal[name])
        for name, label in LABELS.items()
        if name in facts.chance and facts.equal[name] > 0
    )
    chance = {LABELS[name]: share for name, share in facts.chance.items()}
    measured = HeadMetrics(survey.summary.n_texts, info.max_tokens, scores, facts.n_random, chance)
    return list(training_metrics.label_heads(measured, LARGE))


def describe_heads(survey: Survey) -> list[str]:
    """The same for people, who are to tell a head without a single pattern from one that was held against nothing."""
    without = NO_PATTERN if survey.facts is not None and survey.facts.chance else "-"
    return [label or without for label in head_labels(survey)]


def extreme_texts(survey: Survey, column: int, top: int) -> Iterator[tuple[str, int, float]]:
    """The texts with the largest and the smallest numbers of a column: which end, the text's number, the column's."""
    summary = survey.summary
    for end, (side, sign) in enumerate((("largest", 1.0), ("smallest", -1.0))):
        texts, values = (of[end, :top, column].tolist() for of in (summary.extreme_texts, summary.extremes))
        yield from ((side, text, sign * value) for text, value in zip(texts, values, strict=True) if np.isfinite(value))


def top_words(survey: Survey, top: int, min_support: int) -> Iterator[list[tuple[str, float, int]]]:
    """Of each head the words that receive most: each with the mean share that its places receive, as a multiple of the
    mean over all places, and how often it stands in the texts, at least `min_support` times.
    """
    table = survey.words
    often = np.flatnonzero(table.support >= min_support)
    means = table.mass[often] / table.support[often, None]
    lifts = means / (table.mass.sum(axis=0) / table.support.sum())
    for of_head in lifts.T:
        best = np.argsort(-of_head, kind="stable")[:top]
        yield [(table.words[often[n]], float(of_head[n]), int(table.support[often[n]])) for n in best]


def ablation_tests(survey: Survey) -> dict[int, float]:
    """By column: the p-value of what the right answer loses without a head, corrected for all heads and ways together.

    Paired t-tests over the texts that have a number there; of columns with fewer than 10 texts there is none.
    """
    info, summary = survey.info, survey.summary
    means, deviations, counts = summary.means(info.bounds), summary.deviations(info.bounds), summary.counts
    found: dict[int, float] = {}
    for name, columns in info.columns.items():
        for n in range(columns.start, columns.stop) if name.startswith(ABLATION) else ():
            if counts[n] >= MIN_TEXTS:  # t is 0 where nothing changes at all
                t = means[n] / (deviations[n] / sqrt(counts[n])) if deviations[n] > 0 else 0.0
                found[n] = p_value(float(t), min(int(counts[n]) - 1, MAX_DEGREES))
    return dict(zip(found, correct_p_values([*found.values()]), strict=True))


def survey_rows(survey: Survey) -> Iterator[Row]:
    """For a spreadsheet: a row per head or layer and measure."""
    shares = [f"quantile {share:g}" for share in QUANTILES]
    yield ("layer", "head", "measure", "unit", "mean", "low", "high", "smallest", *shares, "largest", "label")
    info = survey.info
    places: dict[str, list[tuple[str | int, str | int, str]]] = {
        "head": [(*of, label) for of, label in zip(info.heads, head_labels(survey), strict=True)],
        "layer": [(layer, "", "") for layer in info.layer_numbers],
        "text": [("", "", "")],
    }
    for measure, numbers, place, _ in _numbers(survey):
        layer, head, label = places[measure.level][place]
        written = ("" if value is None else repr(value) for value in numbers.values())
        yield (layer, head, measure.name, measure.unit, *written, escape_for_spreadsheet(label))


def survey_data(survey: Survey) -> Mapping[str, object]:
    """Everything that is known of each head."""
    info, labels, counts = survey.info, head_labels(survey), survey.summary.counts
    found: dict[str, list[object]] = {measure.name: [] for measure in info.measures}
    for measure, numbers, _, column in _numbers(survey):
        texts = [
            {"end": side, "index": text, "name": survey.names[text], "value": value}
            for side, text, value in extreme_texts(survey, column, N_EXTREMES)
        ]
        found[measure.name].append({**numbers, "texts": texts})
    return {
        "model": info.model,
        "revision": info.revision,
        "status": info.status,
        "texts": {"name": info.corpus, "number": survey.summary.n_texts, "tokens": survey.n_queries},
        "heads": [
            {"layer": layer, "head": head, "label": label or None}
            for (layer, head), label in zip(info.heads, labels, strict=True)
        ],
        "measures": {
            measure.name: {
                "unit": measure.unit,
                "level": measure.level,
                "n_texts": int(counts[info.columns[measure.name].start]),
                "numbers": found[measure.name],
            }
            for measure in info.measures
        },
        "by_distance": (survey.distances / 2**MASS_BITS / survey.n_queries).tolist(),
        "facts": None if survey.facts is None else vars(survey.facts),
        "skipped": list(survey.skipped.values()),
    }


def _numbers(survey: Survey) -> Iterator[tuple[SurveyMeasure, dict[str, float | None], int, int]]:
    """Of each column: the measure, its numbers by name, the place among its heads or layers, and the column.

    A number is None where no text has one.
    """
    summary, bounds = survey.summary, survey.info.bounds
    means, halves = mean_intervals(survey)
    names = ("mean", "low", "high", "smallest", *(f"quantile {share:g}" for share in QUANTILES), "largest")
    lowest, highest = summary.ranges
    rows = np.stack(
        [means, means - halves, means + halves, lowest, *summary.quantiles(QUANTILES, bounds), highest], axis=1
    )
    numbers = [[value if np.isfinite(value) else None for value in row] for row in rows.tolist()]
    for measure in survey.info.measures:
        columns = survey.info.columns[measure.name]
        for place, column in enumerate(range(columns.start, columns.stop)):
            yield measure, dict(zip(names, numbers[column], strict=True)), place, column
