"""What differs between two surveys: what was asked, and the means of every measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnviz.commands.survey.file import load_survey, survey_bytes
from attnviz.commands.survey.heads import STRENGTH, describe_heads
from attnviz.commands.survey.survey import Survey, SurveyInfo, SurveyMeasure
from attnviz.errors import InvalidRecord
from attnviz.numbers.intervals import MAX_DEGREES, MIN_TEXTS, t_quantile
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
    """Compare two surveys as files. Raises InvalidRecord for a part of a survey, and for what is no survey."""
    one, other = (load_survey(path) for path in (before, after))
    for path, survey in ((before, one), (after, other)):
        if not survey.is_whole:
            raise InvalidRecord(f"{path} is a part of a survey", hint="attnviz merge puts parts together.")
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
    measures = [{measure.name: measure for measure in of.info.measures} for of in (before, after)]
    found += (
        Difference(name_side(name in measures[0]), f"measure {name}") for name in measures[0].keys() ^ measures[1]
    )
    shared = [measure for name, measure in measures[0].items() if name in measures[1]]
    changes = sorted(_changes(before, after, shared), key=lambda each: -each.strength)
    found += (each.number for each in changes if not tolerances.allow(each.number.measure, each.number.change))
    if (before.info.layer_numbers, before.info.n_heads) == (after.info.layer_numbers, after.info.n_heads):
        for (layer, head), one, other in zip(
            before.info.heads, describe_heads(before), describe_heads(after), strict=True
        ):
            if STRENGTH.sub("", one) != STRENGTH.sub("", other):
                found.append(replace(place, what="pattern", layer=layer, head=head, before=one, after=other))
    if not (found or tolerances.numbers or tolerances.named or _content(before) == _content(after)):
        found.append(replace(place, what="survey", said="not its means, but what else it holds of the texts"))
    return found, changes


def _content(survey: Survey) -> bytes:
    """All of it, but for the versions of packages."""
    return survey_bytes(replace(survey, info=replace(survey.info, versions={})))


def _changes(before: Survey, after: Survey, measures: list[SurveyMeasure]) -> Iterator[MeanChange]:
    """Of each head, layer or text that both have."""
    sides = [(of.info, of.summary.means(of.info.bounds), of.summary.counts) for of in (before, after)]
    with np.errstate(invalid="ignore"):
        errors = [
            of.summary.deviations(of.info.bounds) / np.sqrt(np.maximum(of.summary.counts, 1)) for of in (before, after)
        ]
    for measure in measures:
        columns = [_columns(info, measure) for info, *_ in sides]
        for where in columns[0].keys() & columns[1].keys():
            at = [of_side[where] for of_side in columns]
            n_texts = min(int(counts[column]) for (_, _, counts), column in zip(sides, at, strict=True))
            if not n_texts:  # of a measure that some texts have
                continue
            one, other = (float(means[column]) for (_, means, _), column in zip(sides, at, strict=True))
            times = t_quantile(min(n_texts - 1, MAX_DEGREES)) if n_texts >= MIN_TEXTS else np.nan
            half = times * float(np.hypot(errors[0][at[0]], errors[1][at[1]]))
            yield MeanChange(Difference("differs", "number", "", "", "", measure.name, *where, one, other), half)


def _columns(info: SurveyInfo, measure: SurveyMeasure) -> dict[tuple[int | None, int | None], int]:
    """Which column is of which layer and head."""
    return dict(zip(info.list_places(measure.level), count(info.columns[measure.name].start)))
