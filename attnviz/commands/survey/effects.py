"""What is tested of heads: what answers lose without them, and what differs between texts of different classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attnviz.commands.survey.heads import ablation_tests
from attnviz.commands.survey.survey import ABLATION, N_SAMPLED, Survey
from attnviz.display import format_count
from attnviz.measures.class_differences import MAX_CLASSES
from attnviz.numbers.intervals import MIN_TEXTS
from attnviz.report import Chart, Charts, Column, Note, Row, Table

ALPHA = 0.05
N_LISTED = 5  # differences on a screen
N_COSTS = 20  # heads that a chart has room for, and a screen
CERTAIN = 0.995  # from which on a p-value is written as 1
COST = "what it costs to do without ({})"
BEYOND, WITHIN = "beyond chance (Holm)", "not shown to differ from 0"


@dataclass(frozen=True, eq=False)
class AblationCosts:
    """What the right answer's probability loses without each head, replaced in one way; NaN where no text has it."""

    kind: str  # what heads are replaced by
    means: np.ndarray  # by place, as are the others
    halves: np.ndarray  # of 95 % intervals; NaN of too few texts
    counts: np.ndarray  # of texts
    p_values: tuple[float | None, ...]  # corrected (Holm); None: not tested

    def order(self) -> list[int]:
        """Return the places, the most costly first; those without a number last."""
        return sorted(range(len(self.means)), key=lambda place: (not self.counts[place], -self.means[place]))

    def choose(self, n: int) -> list[int]:
        """Return the places of the `n` largest numbers, below 0 or above, in order."""
        largest = sorted(self.order(), key=lambda place: (not self.counts[place], -abs(self.means[place])))[:n]
        return [place for place in self.order() if place in largest]

    def write(self, place: int) -> str:
        """Write "+0.0181 ± 0.0120"."""
        if not self.counts[place]:
            return "-"
        half = self.halves[place]
        return f"{self.means[place]:+.4f}" + (f" ± {half:.4f}" if np.isfinite(half) else "")

    def is_beyond_chance(self, place: int) -> bool:
        """Return whether its head is shown to matter."""
        p_value = self.p_values[place]
        return p_value is not None and p_value < ALPHA


def find_costs(survey: Survey) -> list[AblationCosts]:
    """Return what was measured without heads, of each way to replace them."""
    every, tests = survey.statistics, ablation_tests(survey)
    return [
        AblationCosts(
            name.removeprefix(ABLATION),
            every.means[of],
            every.halves[of],
            every.counts[of],
            tuple(tests.get(column) for column in range(of.start, of.stop)),
        )
        for name, of in survey.info.columns.items()
        if name.startswith(ABLATION)
    ]


def draw_ablations(survey: Survey) -> Iterator[Charts]:
    """Yield a chart for each way to replace heads: a dot per head with its interval, the most costly first."""
    charts = tuple(_draw_costs(survey, costs) for costs in find_costs(survey) if costs.counts.any())
    if charts:
        yield Charts("ablations", "what it costs to do without each head", charts)


def _draw_costs(survey: Survey, costs: AblationCosts) -> Chart:
    heads = survey.info.heads
    places = [place for place in costs.choose(N_COSTS) if costs.counts[place]]
    has_intervals = bool(np.isfinite(costs.halves[places]).any())
    halves = np.nan_to_num(costs.halves) if has_intervals else np.full(len(heads), np.nan)  # no bar of equal numbers
    rows = tuple(
        (
            x,
            costs.means[n],
            BEYOND if costs.is_beyond_chance(n) else WITHIN,
            *(costs.means[n] + (-halves[n], halves[n])),
        )
        for x, n in enumerate(places)
    )
    some = f", the {N_COSTS} largest of {len(heads)} heads" if len(heads) > N_COSTS else ""
    return Chart(
        kind="point",
        title=f"replaced by {costs.kind}{some}",
        x_axis="head",
        y_axis=f"probability that the right answer loses{', with 95 % interval' if has_intervals else ''}",
        columns=("x", "y", "group", "low", "high"),
        rows=rows,
        names=tuple("{}.{}".format(*heads[place]) for place in places),
        quiet=(WITHIN,),
    )


def show_ablations(survey: Survey) -> Iterator[Table | Note]:
    """Yield a row per head: what the right answer's probability loses without it, and whether that is more than chance.

    Of each column over the texts that have a number there: queries of another text need one beside it. The most costly
    heads stand first.
    """
    info, n, found = survey.info, survey.n_texts, find_costs(survey)
    if not found:
        return
    columns, cells = [Column("layer"), Column("head")], [*zip(*info.heads, strict=True)]
    for costs in found:
        columns.append(Column(costs.kind))
        cells.append(tuple(map(costs.write, range(info.n_places))))
        if any(p_value is not None and p_value < CERTAIN for p_value in costs.p_values):
            columns.append(Column("p (Holm)", minor=True))
            cells.append(tuple("-" if p_value is None else f"{p_value:.2g}" for p_value in costs.p_values))
    rows: list[Row] = [*zip(*cells, strict=True)]
    order, title = found[0].order(), "Probability that the right answer loses without a head"
    title += " (± 95 %)" if n >= MIN_TEXTS else ""
    first = [order.index(place) for place in found[0].choose(N_COSTS)] if info.n_places > N_COSTS else []
    more = f"The {N_COSTS} largest of {info.n_places} heads: --table full shows all." if first else ""
    sorted_rows = tuple(rows[place] for place in order)
    yield Table("ablations", title, "facts", tuple(columns), sorted_rows, first=tuple(first), more=more)
    yield Note("Of a text whose label is missing, or none that the model knows, it is the model's own answer.")
    fewer = dict[str, list[str]]()
    for costs in found:
        if (n_having := int(costs.counts.max())) < n:
            beside = " and have another beside them" if costs.kind == "queries" else ""
            over = f"over the {n_having:,} of {format_count(n, 'texts')} that are less than half unknown{beside}"
            fewer.setdefault(over, []).append(costs.kind)
    yield from (Note(f"{', '.join(kinds)}: {over}.") for over, kinds in fewer.items())
    if any(costs.kind == "mean" for costs in found):
        n_sampled = min(n, N_SAMPLED)
        drawn = "" if n == n_sampled else ", drawn at random by a hash of each text"
        yield Note(f"mean: what a head gives on average over the tokens of {n_sampled:,} texts{drawn}.")
    yield _sum_up(survey, found)


def _sum_up(survey: Survey, found: list[AblationCosts]) -> Note:
    """Say how many heads are shown to matter, and which numbers are the largest."""
    tested = [
        (-abs(costs.means[place]), costs, place)
        for costs in found
        for place, p_value in enumerate(costs.p_values)
        if p_value is not None
    ]
    if not tested:
        return Note(f"Tests of heads need {MIN_TEXTS} texts.")
    ranked = sorted(tested, key=lambda each: each[0])
    differing = [each for each in ranked if each[1].is_beyond_chance(each[2])]
    named = [
        f"{'{}.{}'.format(*survey.info.heads[place])} {costs.kind} {costs.means[place]:+.4f}"
        for _, costs, place in (differing[:N_LISTED] or ranked[:1])
    ]
    counts = [int(costs.counts[place]) for _, costs, place in tested]
    texts = f"over {'' if min(counts) == max(counts) else f'{min(counts):,} to '}{max(counts):,} texts"
    said = f"Of {len(tested)} paired differences, corrected for their number (Holm 1979),"
    if differing:
        return Note(f"{said} {len(differing)} differ from 0 {texts}; the largest: {', '.join(named)}.")
    return Note(
        f"{said} none is beyond chance {texts}: no single head is seen to matter here; the largest: {named[0]}."
    )


def describe_column(survey: Survey, column: int) -> tuple[int, int, str]:
    """Return which layer, head and measure a column is of."""
    info = survey.info
    measure = next(each for each in info.measures if info.columns[each.name].stop > column)
    return (*info.heads[column - info.columns[measure.name].start], measure.title)


def show_classes(survey: Survey) -> Iterator[Table | Note]:
    """Yield which heads do something else in texts of one class than in the others, where that is no chance."""
    found, sizes = survey.differences, survey.class_sizes.sizes
    n_matched, n = survey.class_sizes.n_matched, sum(sizes.values())
    if not found:
        reason, fewest = "", min(sizes.values(), default=0)
        if len(sizes) > MAX_CLASSES or fewest < MIN_TEXTS:
            of_each = f"{MIN_TEXTS} texts of each (here {fewest:,})"
            reason = f"that takes {of_each} and at most {MAX_CLASSES} classes (here {len(sizes):,})"
        elif n_matched < n:
            reason = f"{n_matched:,} of {n:,} texts have one of another class of about their length"
        if reason and len(sizes) > 1:
            yield Note(f"Classes are not compared: {reason}.")
        return
    named = "the others" if len(sizes) > 2 else f"class {min(sizes)}"
    rows: list[Row] = []
    for each in found:
        if each.p_value < ALPHA:
            layer, head, measure = describe_column(survey, each.column)
            rows.append(
                (layer, head, measure, each.label, f"{each.change:+.3f} ± {each.half:.3f}", f"{each.p_value:.2g}")
            )
    columns = tuple(map(Column, ("layer", "head", "measure", "class", f"more than {named}", "p (Holm)")))
    more = f"All {len(rows)} of them: --table full." if len(rows) > N_LISTED else ""
    first = tuple(range(min(len(rows), N_LISTED))) if more else ()
    title = "What differs between classes, over texts of about one length"
    yield Table("classes", title, "facts", columns, tuple(rows), first=first, more=more)
    of = ", ".join(f"{label}: {size:,}" for label, size in sizes.items())
    over = (
        f", over the {n_matched:,} texts that have one of another class of about their length," if n_matched < n else ""
    )
    said = f"{len(rows):,} are" if len(rows) > 1 else "1 is" if rows else "none is"
    yield Note(f"Of {len(found):,} differences between classes ({of}){over or ','} {said} beyond chance (Holm).")


def list_differences(survey: Survey) -> dict[str, object]:
    """Return how many differences were tested, and those that are shown to be there, for machines."""
    found, names = survey.differences, ("layer", "head", "measure")
    return {
        "labels": {str(label): size for label, size in survey.class_sizes.sizes.items()},
        "matched": survey.class_sizes.n_matched,
        "tested": len(found),
        "differences": [
            {
                **dict(zip(names, describe_column(survey, each.column), strict=True)),
                "class": each.label,
                "change": each.change,
                "half": each.half,
                "p_value": each.p_value,
            }
            for each in found
            if each.p_value < ALPHA
        ],
    }
