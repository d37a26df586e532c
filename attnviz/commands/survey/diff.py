"""What differs between two surveys: what was asked, the patterns of heads, and the means of every measure."""

from dataclasses import asdict
from pathlib import Path

import numpy as np

from attnviz.commands.survey.files import Survey, load_files
from attnviz.commands.survey.heads import name_heads
from attnviz.commands.survey.tables import KEYS, TEXTS
from attnviz.errors import InvalidRecord
from attnviz.records.differences import Diff, Difference, Tolerances, find_version_changes, join_facts, state_words
from attnviz.records.head_names import NO_NAME
from attnviz.table.numbers import Numbers


def compare_files(before: Path, after: Path, tolerances: Tolerances) -> Diff:
    """Compare two surveys by a file of each, the surest change of a mean first.

    Without a tolerance, everything else that a survey holds has to be the same as well. Raises InvalidRecord for a part
    of a survey, and for what is no survey.
    """
    one, other = surveys = [load_files(path.parent) for path in (before, after)]
    for path, survey in zip((before, after), surveys, strict=True):
        if not survey.is_whole:
            raise InvalidRecord(f"{path.parent} is a part of a survey", hint="attnviz merge puts parts together.")
    # what was asked
    asked = ({**asdict(survey.info), **survey.info.settings}.items() for survey in surveys)
    left_out = {"measures", "settings", "versions"}
    stated = (state_words({name: value for name, value in of if name not in left_out}) for of in asked)
    words = join_facts(*stated, within=tolerances)
    patterns = join_facts(*map(list_patterns, surveys), within=tolerances, what="pattern")
    # the surest first: by the change in half intervals, where there is one
    changes = sorted(join_facts(*map(list_means, surveys)), key=lambda each: -abs(each.change) / (each.interval or 1.0))
    found = [*words, *patterns, *(each for each in changes if not tolerances.allow(each))]
    if not (found or tolerances.numbers or tolerances.named or holds_same(one, other)):
        found.append(Difference("differs", "survey", said="not its means, but what else it holds of the texts"))
    shared = [each for each in changes if each.kind == "differs"]
    versions = find_version_changes(one.info.versions, other.info.versions)
    return Diff(found, shared, tuple(dict.fromkeys(each.measure for each in shared)), versions)


def list_patterns(survey: Survey) -> Numbers:
    """State what each head looks at, without how strongly."""
    names = ((at, next((name for name, _ in of), NO_NAME)) for at, of in name_heads(survey).items())
    rows = ({"layer": at[0], "head": at[1], "value": name} for at, name in names)
    return Numbers.from_rows(rows, ("layer", "head"))


def list_means(survey: Survey) -> Numbers:
    """State the mean over texts of each measure and head, layer or text, its standard error and the number of texts."""
    rows = survey.tables.numbers.select(over=TEXTS).having("mean").rows()  # of a measure that some texts have
    means = (
        {**{key: row[key] for key in KEYS}, "n": row["n_once"], "value": row["mean"], "error": row["error"] or 0.0}
        for row in rows
    )
    return Numbers.from_rows(means, [*KEYS])


def holds_same(one: Survey, other: Survey) -> bool:
    """Return whether two surveys of the same question hold the same of the same texts, to the bit."""
    tables = ((of.read.table, of.moments.table, of.attended.table) for of in (one, other))
    return (
        one.facts == other.facts
        and all(before.equals(after) for before, after in zip(*tables, strict=True))
        and all(
            np.array_equal(one.read_values(measure), other.read_values(measure), equal_nan=True)
            for measure in one.info.measures
        )
    )
