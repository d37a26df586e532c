"""What differs between two surveys: what was asked, the patterns of heads, and the means of every measure."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path

import numpy as np

from attnviz.commands.survey.file import load_survey, survey_bytes
from attnviz.commands.survey.heads import STRENGTH, describe_heads
from attnviz.commands.survey.survey import Survey
from attnviz.errors import InvalidRecord
from attnviz.numbers.table import Numbers
from attnviz.records.differences import (
    Diff,
    Difference,
    Tolerances,
    find_version_changes,
    join_facts,
    state_words,
)

CONTENT = "what else it holds of the texts"


def compare_files(before: Path, after: Path, tolerances: Tolerances) -> Diff:
    """Compare two surveys as files, the surest change of a mean first.

    Without a tolerance, everything else that a survey holds has to be the same as well. Raises InvalidRecord for a part
    of a survey, and for what is no survey.
    """
    surveys = [load_survey(path) for path in (before, after)]
    for path, survey in zip((before, after), surveys, strict=True):
        if not survey.is_whole:
            raise InvalidRecord(f"{path} is a part of a survey", hint="attnviz merge puts parts together.")
    words = join_facts(*(state_words(list_words(survey)) for survey in surveys))
    patterns = join_facts(*map(list_patterns, surveys), what="pattern")
    changes = sorted(join_facts(*map(list_means, surveys)), key=_measure_strength)
    found = [each for each in (*words, *patterns, *changes) if not tolerances.allow(each)]
    if len(found) > 1 or tolerances.numbers or tolerances.named:
        found = [each for each in found if each.what != CONTENT]  # which follows from the rest
    shared = [each for each in changes if each.kind == "differs"]
    versions = find_version_changes(*(survey.info.versions for survey in surveys))
    return Diff(found, shared, tuple(dict.fromkeys(each.measure for each in shared)), versions)


def _measure_strength(change: Difference) -> float:
    """By what to rank it: the change in half intervals, where there is one."""
    return -abs(change.change) / (change.interval or 1.0)


def list_words(survey: Survey) -> dict[str, object]:
    """State what was asked, and a digest of all that a survey holds but for the versions of packages."""
    asked = asdict(survey.info) | survey.info.settings
    content = survey_bytes(replace(survey, info=replace(survey.info, versions={})))
    left_out = {"measures", "settings", "versions"}
    words = {name: value for name, value in asked.items() if name not in left_out}
    return words | {CONTENT: hashlib.sha256(content).hexdigest()}


def list_patterns(survey: Survey) -> Numbers:
    """State what each head looks at, without how strongly."""
    heads = zip(survey.info.heads, describe_heads(survey), strict=True)
    rows = ({"layer": at[0], "head": at[1], "value": STRENGTH.sub("", pattern)} for at, pattern in heads)
    return Numbers.from_rows(rows, ("layer", "head"))


def list_means(survey: Survey) -> Numbers:
    """State the mean over texts of each measure and head, layer or text, its standard error and the number of texts."""
    summary, info = survey.summary, survey.info
    means, counts = summary.means(info.bounds), summary.counts
    with np.errstate(invalid="ignore"):
        errors = summary.deviations(info.bounds) / np.sqrt(np.maximum(counts, 1))
    rows: list[dict[str, object]] = []
    for measure in info.measures:
        for (layer, head), at in zip(info.list_places(measure.level), count(info.columns[measure.name].start)):
            if counts[at]:  # of a measure that some texts have
                mean = {"value": float(means[at]), "n": int(counts[at]), "error": float(errors[at])}
                rows.append({"measure": measure.name, "layer": layer, "head": head, **mean})
    return Numbers.from_rows(rows, ("measure", "layer", "head"))
