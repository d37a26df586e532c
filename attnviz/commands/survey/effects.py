"""What is tested of heads: what answers lose without them, and what differs between texts of different classes."""

from __future__ import annotations

from collections.abc import Iterator

from attnviz.commands.survey.classes import ClassDifference, compare_classes, widen_bounds
from attnviz.commands.survey.heads import ablation_tests
from attnviz.commands.survey.survey import ABLATION, Survey
from attnviz.measures.intervals import MIN_TEXTS
from attnviz.report import Column, Note, Row, Table

ALPHA = 0.05
N_LISTED = 5  # differences on a screen


def show_ablations(survey: Survey) -> Iterator[Table | Note]:
    """Yield a row per head: what the right answer's probability loses without it, and whether that is more than chance.

    Of each column over the texts that have a number there: queries of another text need one beside it.
    """
    info, n = survey.info, survey.summary.n_texts
    kinds = {name.removeprefix(ABLATION): of for name, of in info.columns.items() if name.startswith(ABLATION)}
    if not kinds:
        return
    means, counts, p_values = survey.summary.means(info.bounds), survey.summary.counts, ablation_tests(survey)
    columns = [Column("layer"), Column("head")]
    for kind in kinds:
        columns += [Column(kind), Column("p (Holm)", minor=True)]
    rows: list[Row] = []
    differing: list[tuple[float, str]] = []
    for place, (layer, head) in enumerate(info.heads):
        cells: list[str | float] = []
        for kind, of in kinds.items():
            column = of.start + place
            lost = f"{means[column]:+.4f}"
            cells += [lost if counts[column] else "-", p_values.get(column, "-")]
            if p_values.get(column, 1.0) < ALPHA:
                differing.append((-abs(means[column]), f"{layer}.{head} {kind} {lost}"))
        rows.append((layer, head, *cells))
    title = "Probability that the right answer loses without a head"
    yield Table("ablations", title, "facts", tuple(columns), tuple(rows))
    yield Note("Of a text whose label is missing, or none that the model knows, it is the model's own answer.")
    for kind, of in kinds.items():
        if (n_having := int(counts[of].max())) < n:
            yield Note(f"{kind}: over the texts that have another beside them, {n_having:,} of {n:,}.")
    if "mean" in kinds:
        n_sampled = len(survey.summary.hashes)
        drawn = "" if n == n_sampled else ", drawn at random by a hash of each text"
        yield Note(f"mean: what a head gives on average over the tokens of {n_sampled:,} texts{drawn}.")
    if not p_values:
        yield Note(f"Tests of heads need {MIN_TEXTS} texts.")
        return
    least, most = counts[[*p_values]].min(), counts[[*p_values]].max()
    tested = f"Of {len(p_values)} paired differences, corrected for their number (Holm 1979),"
    texts = f"over {'' if least == most else f'{least:,} to '}{most:,} texts"
    if differing:
        largest = ", ".join(said for _, said in sorted(differing)[:5])
        yield Note(f"{tested} {len(differing)} differ from 0 {texts}; the largest: {largest}.")
    else:
        yield Note(f"{tested} none is shown to differ from 0 {texts}: no single head is seen to matter here.")


def find_differences(survey: Survey) -> list[ClassDifference]:
    """Hold the classes of texts against each other, by every measure of heads; the surest differences first."""
    info = survey.info
    measures = [each.name for each in info.measures if each.level == "head" and not each.name.startswith(ABLATION)]
    columns = [column for name in measures for column in range(*info.columns[name].indices(info.bounds.shape[1]))]
    return compare_classes(survey.classes, widen_bounds(info.bounds, survey.slopes, info.max_tokens), columns)


def describe_column(survey: Survey, column: int) -> tuple[int, int, str]:
    """Return which layer, head and measure a column is of."""
    info = survey.info
    measure = next(each for each in info.measures if info.columns[each.name].stop > column)
    return (*info.heads[column - info.columns[measure.name].start], measure.title)


def show_classes(survey: Survey) -> Iterator[Table | Note]:
    """Yield which heads do something else in texts of one class than in the others, where that is no chance."""
    found = find_differences(survey)
    if not found:
        return
    is_pair = len(survey.classes.labels) == 2
    named = "the others" if not is_pair else f"class {survey.classes.labels[0]}"
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
    title = "What differs between classes, over texts of one length"
    yield Table("classes", title, "facts", columns, tuple(rows), first=first, more=more)
    sizes = ", ".join(f"{label}: {n:,}" for label, n in zip(survey.classes.labels, survey.classes.sizes, strict=True))
    said = f"{len(rows):,} are" if len(rows) > 1 else "1 is" if rows else "none is"
    yield Note(f"Of {len(found):,} differences between classes ({sizes}), {said} beyond chance (Holm).")


def list_differences(survey: Survey) -> dict[str, object]:
    """Return how many differences were tested, and those that are shown to be there, for machines."""
    found, names = find_differences(survey), ("layer", "head", "measure")
    return {
        "labels": dict(zip(map(str, survey.classes.labels), survey.classes.sizes, strict=True)),
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
