"""What differs between two surveys: what was asked, the patterns of heads, and the means of every measure."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np

from attnviz.commands.survey.files import load_files
from attnviz.commands.survey.heads import choose_survey_names
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
from attnviz.records.head_names import NO_NAME


def compare_files(before: Path, after: Path, tolerances: Tolerances) -> Diff:
    """Compare two surveys by a file of each, the surest change of a mean first.

    Without a tolerance, everything else that a survey holds has to be the same as well. Raises InvalidRecord for a part
    of a survey, and for what is no survey.
    """
    one, other = surveys = [load_files(path.parent).open() for path in (before, after)]
    for path, survey in zip((before, after), surveys, strict=True):
        if not survey.is_whole:
            raise InvalidRecord(f"{path.parent} is a part of a survey", hint="attnviz merge puts parts together.")
    words = join_facts(*map(list_words, surveys))
    patterns = join_facts(*map(list_patterns, surveys), what="pattern")
    changes = sorted(join_facts(*map(list_means, surveys)), key=_measure_strength)
    found = [each for each in (*words, *patterns, *changes) if not tolerances.allow(each)]
    if not (found or tolerances.numbers or tolerances.named or one.holds_same(other)):
        found.append(Difference("differs", "survey", said="not its means, but what else it holds of the texts"))
    shared = [each for each in changes if each.kind == "differs"]
    versions = find_version_changes(one.info.versions, other.info.versions)
    return Diff(found, shared, tuple(dict.fromkeys(each.measure for each in shared)), versions)


def _measure_strength(change: Difference) -> float:
    """By what to rank it: the change in half intervals, where there is one."""
    return -abs(change.change) / (change.interval or 1.0)


def list_words(survey: Survey) -> Numbers:
    """State what was asked."""
    asked = asdict(survey.info) | survey.info.settings
    left_out = {"measures", "settings", "versions"}
    return state_words({name: value for name, value in asked.items() if name not in left_out})


def list_patterns(survey: Survey) -> Numbers:
    """State what each head looks at, without how strongly."""
    heads = zip(survey.info.heads, choose_survey_names(survey), strict=True)
    rows = ({"layer": at[0], "head": at[1], "value": name.pattern or NO_NAME} for at, name in heads)
    return Numbers.from_rows(rows, ("layer", "head"))


def list_means(survey: Survey) -> Numbers:
    """State the mean over texts of each measure and head, layer or text, its standard error and the number of texts."""
    of, rows = survey.statistics, list[dict[str, object]]()
    errors = np.nan_to_num(of.errors)  # of equal numbers
    for measure in survey.info.measures:
        first = survey.info.columns[measure.name].start
        for column, (layer, head) in enumerate(survey.info.list_places(measure.level), first):
            if of.counts[column]:  # of a measure that some texts have
                mean = {"value": float(of.means[column]), "error": float(errors[column])}
                n_texts = int(of.counts_once[column])
                rows.append({"measure": measure.name, "layer": layer, "head": head, "n": n_texts, **mean})
    return Numbers.from_rows(rows, ("measure", "layer", "head"))
