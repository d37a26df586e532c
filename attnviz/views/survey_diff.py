"""What changed between two surveys, head by head. Knows `survey`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnviz.differences import Difference, Thresholds, is_beyond
from attnviz.display import escape_for_display, quantity
from attnviz.measures.intervals import MAX_DEGREES, MIN_TEXTS, t_quantile
from attnviz.report import Column, Note, Report, Row, Table
from attnviz.survey import ABLATION, TOKENS, Survey, SurveyInfo
from attnviz.views.captions import MAX_TITLE_LENGTH
from attnviz.views.survey_labels import shown_labels


def survey_differences(
    before: Survey, after: Survey, measures: tuple[str, ...]
) -> tuple[tuple[Difference, float], ...]:
    """Of each head the means of each measure, and half of the 95 % interval of their difference; the largest first.

    The difference is divided by its interval to be ranked. NaN of fewer than 10 texts. Layers and heads are those that
    both have.
    """
    found = []
    means = [each.summary.means(each.info.bounds) for each in (before, after)]
    counts = [each.summary.counts for each in (before, after)]
    errors = [
        each.summary.deviations(each.info.bounds) / np.sqrt(np.maximum(n, 1))
        for each, n in zip((before, after), counts, strict=True)
    ]
    for name in measures:
        starts = (each.info.columns[name].start for each in (before, after))
        n_texts = min(int(n[start]) for n, start in zip(counts, starts, strict=True))
        if not n_texts:  # of a measure that some texts have
            continue
        times = t_quantile(min(n_texts - 1, MAX_DEGREES)) if n_texts >= MIN_TEXTS else np.nan
        for layer, head, (a, b) in _columns(before.info, after.info, name):
            half = times * float(np.hypot(errors[0][a], errors[1][b]))
            number = Difference("number", "", "", "", name, layer, head, float(means[0][a]), float(means[1][b]))
            found.append((number, half))
    return tuple(sorted(found, key=lambda each: -_strength(*each)))


def shared_measures(before: Survey, after: Survey) -> tuple[str, ...]:
    """Measures of heads that both have."""
    of_heads = (each.name for each in before.info.measures if each.level == "head" and each.name != TOKENS)
    return tuple(name for name in of_heads if name in after.info.columns and not name.startswith(ABLATION))


def _columns(one: SurveyInfo, other: SurveyInfo, name: str) -> Iterator[tuple[int, int, tuple[int, int]]]:
    for layer in sorted({*one.layer_numbers} & {*other.layer_numbers}):
        for head in range(min(one.n_heads, other.n_heads)):
            places = (of.layer_numbers.index(layer) * of.n_heads + head for of in (one, other))
            a, b = (of.columns[name].start + place for of, place in zip((one, other), places, strict=True))
            yield layer, head, (a, b)


def _strength(number: Difference, half: float) -> float:
    apart = abs(number.change)
    return apart / half if half > 0 else apart


def surveys_report(
    before: Survey, after: Survey, found: tuple[tuple[Difference, float], ...], thresholds: Thresholds
) -> Report:
    """A row per head and measure, and a row per head whose label changed."""
    columns = [Column("measure"), Column("layer"), Column("head"), Column("A"), Column("B"), Column("B - A")]
    columns += [Column("± 95 %"), *([Column("beyond")] if thresholds else [])]
    rows: list[Row] = []
    for number, half in found:
        beyond = ("yes" if is_beyond(number, thresholds) else "no",) if thresholds else ()
        interval = "-" if np.isnan(half) else half
        rows.append((number.measure, number.layer or 0, number.head or 0, *number.numbers, interval, *beyond))
    are_tested = any(np.isfinite(half) for _, half in found)
    first = "surest" if are_tested else "largest"
    names = [f"{of.info.model} over {of.info.corpus}" for of in (before, after)]
    a, b = (escape_for_display(name, MAX_TITLE_LENGTH // 2) for name in names)
    return Report(
        title=f"A {a}, B {b}",
        subtitle=f"A {quantity(before.summary.n_texts, 'texts')}, B {quantity(after.summary.n_texts, 'texts')}",
        blocks=(
            Table("changes", f"Means over texts, the {first} change first", "facts", tuple(columns), tuple(rows)),
            *_labels(before, after),
            *map(Note, _notes(before, after, are_tested=are_tested)),
        ),
        data={
            "a": {"model": before.info.model, "texts": before.info.corpus, "number": before.summary.n_texts},
            "b": {"model": after.info.model, "texts": after.info.corpus, "number": after.summary.n_texts},
            "changes": [
                {"measure": n.measure, "layer": n.layer, "head": n.head, "a": n.expected, "b": n.actual}
                | {"interval": None if np.isnan(half) else half}
                for n, half in found
            ],
        },
    )


def _labels(before: Survey, after: Survey) -> Iterator[Table]:
    labels = shown_labels(before), shown_labels(after)
    rows: list[Row] = []
    for layer, head, (a, b) in _columns(before.info, after.info, before.info.measures[0].name):
        starts = (of.info.columns[before.info.measures[0].name].start for of in (before, after))
        of_a, of_b = (of[at - start] for of, at, start in zip(labels, (a, b), starts, strict=True))
        if of_a.split(" ")[0] != of_b.split(" ")[0]:
            rows.append((layer, head, of_a, of_b))
    if rows:
        columns = (Column("layer"), Column("head"), Column("A"), Column("B"))
        yield Table("labels", "Heads that are called otherwise", "facts", columns, tuple(rows))


def _notes(before: Survey, after: Survey, *, are_tested: bool) -> Iterator[str]:
    if are_tested:
        yield "Intervals take the texts of A and B as drawn apart: of the same texts they are too wide."
    else:
        yield f"Of fewer than {MIN_TEXTS} texts there is no interval: changes are of these texts."
    if before.info.corpus != after.info.corpus:
        yield "A and B are of different texts: what differs may be theirs."
    for name in ("max_tokens", "keep"):
        one, other = getattr(before.info, name), getattr(after.info, name)
        if one != other:
            yield f"A was read with --{name.replace('_', '-')} {one}, B with {other}."
