"""What differs between two surveys: what was asked, and the means of every measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnviz.commands.survey.files import load_files
from attnviz.commands.survey.heads import STRENGTH, describe_heads
from attnviz.commands.survey.survey import Survey
from attnviz.errors import InvalidRecord
from attnviz.numbers.intervals import MIN_TEXTS, t_quantile
from attnviz.numbers.table import Numbers, join
from attnviz.records.differences import (
    ComparedMeans,
    Difference,
    Tolerances,
    compare_values,
    find_version_changes,
    name_side,
)


class MeanChange(NamedTuple):
    """A mean over texts on both sides, and half of the 95 % interval of its change: NaN of fewer than 10 texts."""

    number: Difference
    half: float

    @property
    def strength(self) -> float:
        """By what to rank it: the change in half intervals, where there is one."""
        apart = abs(self.number.change)
        return apart / self.half if self.half > 0 else apart


def compare_files(before: Path, after: Path, tolerances: Tolerances) -> ComparedMeans:
    """Compare two surveys by a file of each. Raises InvalidRecord for a part of a survey, and for what is no survey."""
    one, other = (load_files(path.parent).open() for path in (before, after))
    for path, survey in ((before, one), (after, other)):
        if not survey.is_whole:
            raise InvalidRecord(f"{path.parent} is a part of a survey", hint="attnviz merge puts parts together.")
    differences, changes = compare_surveys(one, other, tolerances)
    shared = tuple(measure.name for measure in one.info.measures if measure.name in other.info.columns)
    return ComparedMeans(
        tuple(differences), changes, shared, find_version_changes(one.info.versions, other.info.versions)
    )


def compare_surveys(before: Survey, after: Survey, tolerances: Tolerances) -> tuple[list[Difference], list[MeanChange]]:
    """What differs, and the means that both have, the surest change first.

    Without a tolerance, everything else that a survey holds has to be the same as well.
    """
    place = Difference("differs", "")
    left_out = {"measures": "", "settings": "", "versions": ""}
    found = list(compare_values(place, [asdict(of.info) | left_out | of.info.settings for of in (before, after)]))
    names = [{measure.name for measure in of.info.measures} for of in (before, after)]
    found += (Difference(name_side(name in names[0]), f"measure {name}") for name in names[0] ^ names[1])
    changes = sorted(_find_changes(before, after), key=lambda each: -each.strength)
    found += (each.number for each in changes if not tolerances.allow(each.number.measure, each.number.change))
    if before.info.heads == after.info.heads:
        for (layer, head), one, other in zip(
            before.info.heads, describe_heads(before), describe_heads(after), strict=True
        ):
            if STRENGTH.sub("", one) != STRENGTH.sub("", other):
                found.append(replace(place, what="pattern", layer=layer, head=head, before=one, after=other))
    if not (found or tolerances.numbers or tolerances.named or before.holds_same(after)):
        found.append(replace(place, what="survey", said="not its means, but what else it holds of the texts"))
    return found, changes


def _find_changes(before: Survey, after: Survey) -> Iterator[MeanChange]:
    """Yield the means of each head, layer or text that both have."""
    for row in join(*map(list_means, (before, after))).rows():
        ends = [row[f"mean {side}"] for side in ("before", "after")]
        if None in ends:  # of a measure that one side does not have, or that some texts have
            continue
        n_texts = min(row["n before"], row["n after"])
        times = t_quantile(n_texts - 1) if n_texts >= MIN_TEXTS else np.nan
        half = times * float(np.hypot(row["error before"], row["error after"]))
        at = row["measure"], row["layer"], row["head"]
        yield MeanChange(Difference("differs", "number", "", "", "", *at, *ends), half)


def list_means(survey: Survey) -> Numbers:
    """Return a row per head, layer or text and measure, with its mean, standard error and number of texts."""
    of, rows = survey.statistics, list[dict[str, object]]()
    errors = np.nan_to_num(of.errors)  # of equal numbers
    for measure in survey.info.measures:
        first = survey.info.columns[measure.name].start
        for column, (layer, head) in enumerate(survey.info.list_places(measure.level), first):
            if of.counts[column]:
                numbers = {"mean": float(of.means[column]), "error": float(errors[column])}
                rows.append(
                    {"measure": measure.name, "layer": layer, "head": head, "n": int(of.counts_once[column]), **numbers}
                )
    return Numbers.from_rows(rows, ("measure", "layer", "head"))
