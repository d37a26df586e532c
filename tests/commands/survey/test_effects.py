"""What it costs to do without heads: which are shown, in which order, and what is said to be beyond chance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.commands.survey.effects import BEYOND, WITHIN, draw_ablations, show_ablations, show_classes
from attnviz.commands.survey.tables import COLUMNS, DIFFERENCES, KEYS
from attnviz.report import Chart, Note, Table
from attnviz.table.numbers import Numbers
from tests.made import columns_by


def survey_of(means: list[float], p_values: list[float], half: float | None = 0.01) -> Any:
    """Return what is shown of a survey of 40 texts, of layers of eight heads."""
    rows: list[dict[str, object]] = []
    for place, (mean, p_value) in enumerate(zip(means, p_values, strict=True)):
        low, high = (None, None) if half is None else (mean - half, mean + half)
        said = {"measure": "without_head_zero", "layer": place // 8, "head": place % 8, "n": 40, "p_value": p_value}
        rows.append({**said, "mean": mean, "low": low, "high": high})
    tables = SimpleNamespace(numbers=Numbers.from_rows(rows, [*KEYS], COLUMNS))
    return SimpleNamespace(tables=tables, texts=range(40))


def chart_of(survey: Any) -> Chart:
    (charts,) = draw_ablations(survey)
    return charts.charts[0]


def table_of(survey: Any) -> Table:
    return next(each for each in show_ablations(survey) if isinstance(each, Table))


def last_note(survey: Any) -> str:
    *_, note = show_ablations(survey)
    assert isinstance(note, Note)
    return note.text


def test_heads_stand_by_their_cost_and_those_beyond_chance_among_quiet_ones() -> None:
    chart = chart_of(survey_of([0.02, -0.03, 0.05, 0.0], [1.0, 0.04, 0.001, 1.0]))
    assert chart.names == ("0.2", "0.0", "0.3", "0.1")
    assert columns_by(chart, "group", "x", "y") == {
        BEYOND: [(0, 3), (0.05, -0.03)],
        WITHIN: [(1, 2), (0.02, 0.0)],
    }
    assert chart.quiet == (WITHIN,)
    np.testing.assert_allclose(chart.column("low"), [0.04, 0.01, -0.01, -0.04])
    np.testing.assert_allclose(chart.column("high"), [0.06, 0.03, 0.01, -0.02])


def test_of_many_heads_the_largest_are_drawn_whether_they_help_or_harm() -> None:
    means = [0.001] * 30
    means[3], means[29] = -0.2, 0.1
    chart = chart_of(survey_of(means, [1.0] * 30))
    assert chart.title == "replaced by zero, the 20 largest of 30 heads"
    assert (len(chart.names), chart.names[0], chart.names[-1]) == (20, "3.5", "0.3")


def test_what_is_said_names_those_beyond_chance_or_the_largest() -> None:
    certain = last_note(survey_of([0.01, -0.03, 0.02], [0.01, 0.02, 0.9]))
    assert certain.endswith("2 differ from 0 over 40 texts; the largest: 0.1 zero -0.0300, 0.0 zero +0.0100.")
    none = last_note(survey_of([0.01, -0.03, 0.02], [1.0, 1.0, 1.0]))
    assert "none is beyond chance over 40 texts" in none
    assert none.endswith("the largest: 0.1 zero -0.0300.")


def test_few_texts_have_no_interval() -> None:
    costs = survey_of([0.01, 0.02], [1.0, 1.0], half=None)
    assert table_of(costs).rows[0][2] == "+0.0200"
    assert np.isnan(chart_of(costs).column("low")).all()
    assert chart_of(costs).y_axis == "probability that the right answer loses"


def test_no_p_value_is_written_as_0() -> None:
    assert [row[3] for row in table_of(survey_of([0.05, 0.01], [1.2e-7, 0.5])).rows] == ["1.2e-07", "0.5"]


@pytest.mark.parametrize(("sizes", "said"), [([5, 7], "(here 5)"), ([20] * 21, "(here 21)"), ([12], "")])
def test_classes_that_are_not_compared_are_said_to_be(sizes: list[int], said: str) -> None:
    of = SimpleNamespace(sizes=dict(enumerate(sizes)), n_matched=sum(sizes))
    classes: Any = SimpleNamespace(
        tables=SimpleNamespace(classes=of, differences=Numbers.from_rows([], [*KEYS], DIFFERENCES))
    )
    found = [each.text for each in show_classes(classes) if isinstance(each, Note)]
    assert len(found) == bool(said)
    assert not said or said in found[0]
