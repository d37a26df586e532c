"""What heads do with repeated tokens, and what a classifier loses without them. Knows `survey`."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from attnviz.commands.survey.survey import ABLATION, Survey
from attnviz.measures.intervals import MAX_DEGREES, MIN_TEXTS, holm, p_value
from attnviz.report import Column, Note, Row, Table

ALPHA = 0.05
TOO_FEW = f"Tests of heads need {MIN_TEXTS} texts."


def probes_tables(survey: Survey) -> Iterator[Table]:
    """A row per head: induction, duplicate and previous token, on random tokens that come twice."""
    if survey.facts is None or not survey.facts.probes:
        return
    info, probes = survey.info, survey.facts.probes
    columns = (Column("layer"), Column("head"), *map(Column, probes))
    rows: list[Row] = [(*of, *(scores[place] for scores in probes.values())) for place, of in enumerate(info.heads)]
    yield Table("probes", "Random tokens that come twice: shares of attention", "facts", columns, tuple(rows))


def ablations_blocks(survey: Survey) -> Iterator[Table | Note]:
    """A row per head: what the right answer's probability loses without it, and whether that is more than chance.

    Of each column over the texts that have a number there: queries of another text need one beside it.
    """
    info, summary = survey.info, survey.summary
    kinds = [name for name in info.columns if name.startswith(ABLATION)]
    if not kinds:
        return
    means, deviations, n = summary.means(info.bounds), summary.deviations(info.bounds), summary.n_texts
    counts = summary.counts
    numbers = [number for kind in kinds for number in range(info.columns[kind].start, info.columns[kind].stop)]
    tested = [number for number in numbers if counts[number] >= MIN_TEXTS]
    corrected = dict(
        zip(tested, holm([_p(means[k], deviations[k], int(counts[k])) for k in tested]), strict=True) if tested else ()
    )
    columns = [Column("layer"), Column("head")]
    for kind in kinds:
        columns += [Column(kind.removeprefix(ABLATION)), Column("p (Holm)", minor=True)]
    rows: list[Row] = []
    for place, of in enumerate(info.heads):
        cells: list[str | float] = []
        for kind in kinds:
            number = info.columns[kind].start + place
            cells += [f"{means[number]:+.4f}" if counts[number] else "-", corrected.get(number, "-")]
        rows.append((*of, *cells))
    yield Table(
        "ablations", "Probability that the right answer loses without a head", "facts", tuple(columns), tuple(rows)
    )
    yield Note("Of a text whose label is missing, or none that the model knows, it is the model's own answer.")
    for kind in kinds:
        n_having = int(counts[info.columns[kind]].max())
        if n_having < n:
            what = kind.removeprefix(ABLATION)
            yield Note(f"{what}: over the texts that have another beside them, {n_having:,} of {n:,}.")
    if f"{ABLATION}mean" in kinds:
        n_sampled = len(summary.hashes)
        drawn = "" if n == n_sampled else ", drawn at random by a hash of each text"
        yield Note(f"mean: what a head gives on average over the tokens of {n_sampled:,} texts{drawn}.")
    yield Note(_verdict(means, corrected, kinds, survey) if tested else TOO_FEW)


def _verdict(means: np.ndarray, corrected: dict[int, float], kinds: list[str], survey: Survey) -> str:
    """Which heads matter, after correction."""
    info, found = survey.info, []
    for place, (layer, head) in enumerate(info.heads):
        for kind in kinds:
            number = info.columns[kind].start + place
            if corrected.get(number, 1.0) < ALPHA:
                found.append(
                    (-abs(float(means[number])), f"{layer}.{head} {kind.removeprefix(ABLATION)} {means[number]:+.4f}")
                )
    of = f"Of {len(corrected)} paired differences, corrected for their number (Holm 1979),"
    counts = survey.summary.counts[list(corrected)]
    least = "" if counts.min() == counts.max() else f"{counts.min():,} to "
    texts = f"over {least}{counts.max():,} texts"
    if not found:
        return f"{of} none is shown to differ from 0 {texts}: no single head is seen to matter here."
    return f"{of} {len(found)} differ from 0 {texts}; the largest: {', '.join(said for _, said in sorted(found)[:5])}."


def _p(mean: float, deviation: float, n: int) -> float:
    """Of a paired t-test; 1 where nothing changes at all."""
    return p_value(float(mean) / (float(deviation) / sqrt(n)), min(n - 1, MAX_DEGREES)) if deviation > 0 else 1.0
