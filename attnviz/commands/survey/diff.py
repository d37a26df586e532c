"""What differs between two surveys: what was asked, the patterns of heads, and the means of every measure."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

from attnviz.commands.survey.files import Survey, load_files
from attnviz.commands.survey.heads import name_heads
from attnviz.commands.survey.tables import KEYS, TEXTS
from attnviz.errors import InvalidRecord
from attnviz.records import differences
from attnviz.records.differences import Diff, Difference, Fact, Facts, Tolerances, find_differences, pair, state_words
from attnviz.records.head_names import NO_NAME


def compare_files(before: Path, after: Path, tolerances: Tolerances) -> Diff:
    """Compare two surveys by a file of each, the surest change of a mean first.

    Without a tolerance, everything else that a survey holds has to be the same as well. Raises InvalidRecord for a part
    of a survey, and for what is no survey.
    """
    one, other = surveys = [load_files(path.parent) for path in (before, after)]
    for path, survey in zip((before, after), surveys, strict=True):
        if not survey.is_whole:
            raise InvalidRecord(f"{path.parent} is a part of a survey", hint="attnviz merge puts parts together.")
    found = find_differences(*map(state_survey, surveys), within=tolerances)
    # the surest change first
    changes = sorted(compare_means(one, other), key=lambda each: -abs(each.change) / (each.interval or 1.0))
    found += (each for each in changes if not tolerances.allow(each))
    if not (found or tolerances.numbers or tolerances.named or holds_same(one, other)):
        found.append(Difference("survey", said="not its means, but what else it holds of the texts"))
    shared = [each for each in changes if each.kind == "differs"]
    versions = differences.find_version_changes(one.info.versions, other.info.versions)
    return Diff(found, shared, tuple(dict.fromkeys(each.measure for each in shared)), versions)


def state_survey(survey: Survey) -> Facts:
    """State what was asked of which model and texts, and what each head looks at, without how strongly."""
    left_out = {"measures", "settings", "versions"}
    words = {**asdict(survey.info), **survey.info.settings}
    asked = state_words({name: value for name, value in words.items() if name not in left_out})
    patterns = {at: next((name for name, _ in of), NO_NAME) for at, of in name_heads(survey).items()}
    return asked | {Fact("pattern", layer=layer, head=head): name for (layer, head), name in patterns.items()}


def compare_means(*surveys: Survey) -> Iterator[Difference]:
    """Yield the mean over texts of each measure and head, layer or text on both sides.

    Half intervals of two independent means give that of their difference; means of few texts have none.
    """
    tables = (of.tables.numbers.select(over=TEXTS).having("mean") for of in surveys)  # of measures that some texts have
    sides = [{Fact(**{key: row[key] for key in KEYS}): row for row in of.rows()} for of in tables]
    for fact, one, other in pair(*sides):
        halves = [(row["high"] - row["low"]) / 2 for row in (one, other) if row and row["high"] is not None]
        interval = float(np.hypot(*halves)) if len(halves) == 2 else None
        before, after = (row["mean"] if row else None for row in (one, other))
        yield Difference(**vars(fact), before=before, after=after, interval=interval)


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
