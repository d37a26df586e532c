"""What heads do over many texts: attention by distance, a row per head, labels, extreme texts. Knows `survey`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import nan, sqrt

import numpy as np

from attnviz.commands.survey.exact import N_SAMPLED
from attnviz.commands.survey.labels import head_labels, label_notes, patterns_table, shown_labels
from attnviz.commands.survey.probes import ablations_blocks, probes_tables
from attnviz.commands.survey.survey import ABLATION, MASS_BITS, TOKENS, Survey, SurveyMeasure
from attnviz.commands.survey.words import words_table
from attnviz.display import escape_for_display, escape_for_spreadsheet, quantity
from attnviz.measures import HEADLINE, OF_SOME_TEXTS
from attnviz.measures.intervals import MAX_DEGREES, MIN_TEXTS, t_quantile
from attnviz.report import Block, Column, Curve, Curves, Line, Note, Report, Row, Table
from attnviz.views.captions import MAX_TITLE_LENGTH
from attnviz.views.patterns import FOR_LABELS

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MAX_LINES = 12  # of one chart
MAX_LISTED = 32  # heads of which extreme texts are listed one by one in a report


def survey_report(survey: Survey, top: int, title: str | None = None) -> Report:
    """Attention by distance, a row per head, which texts are extreme, what heads attend to, and what it rests on."""
    info, n = survey.info, survey.summary.n_texts
    named = f"{info.model} over {info.corpus}"
    blocks: list[Block] = [_distance(survey), heads_table(survey), patterns_table(survey)]
    blocks += [*_layers_tables(survey), *probes_tables(survey), *ablations_blocks(survey)]
    blocks += [*_extremes(survey, top), words_table(survey)]
    texts = f"{quantity(n, 'texts')}, {quantity(survey.n_queries, 'tokens')}"
    parts = [info.status, texts] if title is None else [info.model, info.status, info.corpus, texts]
    return Report(
        title=escape_for_display(named if title is None else title, MAX_TITLE_LENGTH),
        subtitle=escape_for_display(" · ".join([*parts, *(["causal"] if info.causal else [])]), MAX_TITLE_LENGTH),
        blocks=(*blocks, *map(Note, _notes(survey))),
        facts=tuple((name, escape_for_display(value, MAX_TITLE_LENGTH)) for name, value in _facts(survey)),
        data=survey_data(survey),
        caveat=info.status if info.trained is False else "",
    )


def shown_measures(survey: Survey, level: str = "head") -> tuple[SurveyMeasure, ...]:
    """Measures that were asked for: those that only name heads have a table of their own."""
    measures = (measure for measure in survey.info.measures if measure.name != TOKENS)
    found = [each for each in measures if each.level == level and not each.name.startswith(ABLATION)]
    return tuple(m for m in found if m.name not in FOR_LABELS) or tuple(found)


def heads_table(survey: Survey) -> Table:
    """A row per head: its label, and the mean over texts of each measure with its interval."""
    measures = shown_measures(survey)
    columns = [Column("layer"), Column("head"), Column("what it attends to")]
    columns += [Column(f"{measure.title} ({measure.unit})", minor=measure.name not in HEADLINE) for measure in measures]
    means, halves = mean_intervals(survey)
    labels = shown_labels(survey)
    rows: list[Row] = []
    for place, (layer, head) in enumerate(survey.info.heads):
        numbers = [survey.info.columns[measure.name].start + place for measure in measures]
        rows.append((layer, head, labels[place], *(_interval(means[n], halves[n]) for n in numbers)))
    return Table("heads", _title(survey, "Each head, mean over texts"), "heads", tuple(columns), tuple(rows))


def mean_intervals(survey: Survey) -> tuple[np.ndarray, np.ndarray]:
    """Of each column the mean over texts, and half of its 95 % interval (Student's t): NaN of fewer than 10 texts."""
    summary, bounds = survey.summary, survey.info.bounds
    counts = summary.counts
    times = np.full(len(counts), nan)
    for n in np.unique(counts[counts >= MIN_TEXTS]).tolist():
        times[counts == n] = t_quantile(min(n - 1, MAX_DEGREES)) / sqrt(n)
    return summary.means(bounds), times * summary.deviations(bounds)


def survey_rows(survey: Survey) -> Iterator[Row]:
    """For a spreadsheet: a row per head or layer and measure."""
    shares = [f"quantile {share:g}" for share in QUANTILES]
    header = ("layer", "head", "measure", "unit", "mean", "low", "high", "smallest", *shares, "largest", "label")
    yield header
    labels, places = head_labels(survey), survey.info.heads
    for measure, column, place in _numbers(survey):
        layer, head = places[place] if measure.level == "head" else ("", "")
        layer = survey.info.layer_numbers[place] if measure.level == "layer" else layer
        label = labels[place] if measure.level == "head" else ""
        numbers = {name: "" if value is None else repr(value) for name, value in column.items() if name != "texts"}
        yield (layer, head, measure.name, measure.unit, *numbers.values(), escape_for_spreadsheet(label))


def _numbers(survey: Survey) -> Iterator[tuple[SurveyMeasure, dict[str, float | None], int]]:
    """Of each column: the measure, its numbers by name, and the place among its heads or layers.

    A number is None where no text has one.
    """
    summary, bounds = survey.summary, survey.info.bounds
    means, halves = mean_intervals(survey)
    quantiles = summary.quantiles(QUANTILES, bounds)
    for measure in survey.info.measures:
        columns = survey.info.columns[measure.name]
        for place, n in enumerate(range(columns.start, columns.stop)):
            found = {
                "mean": means[n],
                "low": means[n] - halves[n],
                "high": means[n] + halves[n],
                "smallest": summary.ranges[0, n],
                **{f"quantile {share:g}": of[n] for share, of in zip(QUANTILES, quantiles, strict=True)},
                "largest": summary.ranges[1, n],
            }
            yield measure, {name: float(value) if np.isfinite(value) else None for name, value in found.items()}, place


def extreme_texts(survey: Survey, column: int, top: int) -> Iterator[tuple[str, int, str, float]]:
    """The texts with the largest and the smallest numbers: which end, the text's number and name, the number."""
    for side, sign in (("largest", 1.0), ("smallest", -1.0)):
        at = 0 if side == "largest" else 1
        texts, values = (
            of[at, :top, column].tolist() for of in (survey.summary.extreme_texts, survey.summary.extremes)
        )
        for text, value in zip(texts, values, strict=True):
            if np.isfinite(value):
                yield side, text, survey.names[text], sign * value


def _extremes(survey: Survey, top: int) -> Iterator[Table]:
    """Which texts to open, by their numbers. Of very many heads only the data lists them."""
    if survey.info.n_places > MAX_LISTED:
        return
    columns = (Column("layer"), Column("head"), Column("largest"), Column("smallest"))
    for measure in shown_measures(survey):
        first, rows = survey.info.columns[measure.name].start, list[Row]()
        for place, (layer, head) in enumerate(survey.info.heads):
            found: dict[str, list[str]] = {"largest": [], "smallest": []}
            for side, text, _, value in extreme_texts(survey, first + place, top):
                found[side].append(f"{text} ({value:.2g})" if value < 99.5 else f"{text} ({value:,.0f})")  # no 1e+02
            rows.append((layer, head, *map(", ".join, found.values())))
        title = f"Texts of extreme {measure.title}: their numbers for --index (and values)"
        yield Table(f"extremes-{measure.name}", title, "facts", columns, tuple(rows))


def _distance(survey: Survey) -> Curves:
    """A chart per layer, a line per head. Of many heads those are drawn that have the highest peaks."""
    info = survey.info
    shares = survey.distances / 2**MASS_BITS / max(1, survey.n_queries)
    at = tuple(map(float, range(-info.reach, info.reach + 1)))
    curves = []
    for layer, number in enumerate(info.layer_numbers):
        of_layer = shares[layer * info.n_heads : (layer + 1) * info.n_heads]
        drawn = sorted(range(info.n_heads), key=lambda head: (-of_layer[head].max(), head))[:MAX_LINES]
        lines = tuple(Line(f"head {head}", at, tuple(of_layer[head].tolist())) for head in sorted(drawn))
        curves.append(Curve(f"layer {number}", "key minus query (tokens)", "share of attention", lines))
    return Curves("distance", "attention by distance", tuple(curves))


def _layers_tables(survey: Survey) -> Iterator[Table]:
    measures = shown_measures(survey, "layer")
    if not measures:
        return
    means, halves = mean_intervals(survey)
    rows: list[Row] = []
    for place, layer in enumerate(survey.info.layer_numbers):
        numbers = [survey.info.columns[measure.name].start + place for measure in measures]
        rows.append((layer, *(_interval(means[n], halves[n]) for n in numbers)))
    columns = (Column("layer"), *(Column(f"{measure.title} ({measure.unit})") for measure in measures))
    yield Table("layers", _title(survey, "All heads of a layer together"), "facts", columns, tuple(rows))


def _interval(mean: float, half: float) -> str:
    """ "3.214 ± 0.012"."""
    if np.isnan(mean):
        return "-"
    return f"{mean:.3f}" if not np.isfinite(half) else f"{mean:.3f} ± {half:.3f}"


def _title(survey: Survey, what: str) -> str:
    return f"{what} ± half of its 95 % interval" if survey.summary.n_texts >= MIN_TEXTS else what


def _notes(survey: Survey) -> Iterator[str]:
    info, n = survey.info, survey.summary.n_texts
    if info.trained is False:
        yield "The model is untrained: its heads have learned nothing."
    yield from label_notes(survey)
    for measure in info.measures:
        if measure.name in OF_SOME_TEXTS:
            n_having = int(survey.summary.counts[info.columns[measure.name].start])
            over = f"means over the {n_having:,} of {quantity(n, 'texts')} that have such tokens"
            yield f"{measure.title}: {over if n_having else 'no text has such tokens'}."
    if n >= MIN_TEXTS:
        yield "Intervals are of texts (Student's t): they say what other texts of this kind would give."
    if n > N_SAMPLED:
        yield "Quantiles of so many texts are within 1/128 of what a measure can be."
    if info.dataset:
        read = f"--max-tokens {info.max_tokens} --keep {info.keep}"
        yield f"A text by its number: attnviz heatmap {info.dataset} --index N {read}, with the same --model."
    if survey.skipped:
        n_skipped = len(survey.skipped)
        verb = "is" if n_skipped == 1 else "are"
        named = escape_for_display(next(iter(survey.skipped.values())), 80)
        yield f"{quantity(n_skipped, 'texts')} without tokens {verb} left out, such as {named}."


def _facts(survey: Survey) -> Iterator[tuple[str, str]]:
    info = survey.info
    yield from (("model", info.model), ("status", info.status), ("revision", info.revision), ("texts", info.corpus))
    yield "number of texts", f"{survey.summary.n_texts}"
    yield from ((name, str(value)) for name, value in info.settings.items())
    yield from ((f"version of {name}", version) for name, version in info.versions.items())


def survey_data(survey: Survey) -> Mapping[str, object]:
    """Everything that is known of each head, for machines."""
    info, labels = survey.info, head_labels(survey)
    measures: dict[str, dict[str, object]] = {}
    for measure, numbers, place in _numbers(survey):
        column = info.columns[measure.name].start + place
        n_texts = int(survey.summary.counts[column])
        known = {"unit": measure.unit, "level": measure.level, "n_texts": n_texts, "numbers": []}
        of = measures.setdefault(measure.name, known)
        texts = [
            {"end": side, "index": text, "name": name, "value": value}
            for side, text, name, value in extreme_texts(survey, column, 10)
        ]
        of["numbers"].append({**numbers, "texts": texts})  # type: ignore[attr-defined]
    return {
        "model": info.model,
        "revision": info.revision,
        "status": info.status,
        "texts": {"name": info.corpus, "number": survey.summary.n_texts, "tokens": survey.n_queries},
        "heads": [
            {"layer": layer, "head": head, "label": labels[place] or None}
            for place, (layer, head) in enumerate(info.heads)
        ],
        "measures": measures,
        "by_distance": (survey.distances / 2**MASS_BITS / survey.n_queries).tolist(),
        "facts": None if survey.facts is None else vars(survey.facts),
        "skipped": list(survey.skipped.values()),
    }
