"""What it costs to do without heads: which are shown, in which order, and what is said to be beyond chance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.commands.survey import effects
from attnviz.commands.survey.effects import BEYOND, WITHIN, AblationCosts, _draw_costs, _sum_up
from attnviz.report import Note, Table
from tests.made import columns_by


def costs_of(means: list[float], p_values: list[float], half: float = 0.01) -> AblationCosts:
    n = len(means)
    return AblationCosts("zero", np.array(means), np.full(n, half), np.full(n, 40), tuple(p_values))


def survey_of(n: int) -> Any:
    return SimpleNamespace(info=SimpleNamespace(heads=[(place // 8, place % 8) for place in range(n)]))


def test_heads_stand_by_their_cost_and_those_beyond_chance_among_quiet_ones() -> None:
    costs = costs_of([0.02, -0.03, 0.05, 0.0], [1.0, 0.04, 0.001, 1.0])
    chart = _draw_costs(survey_of(4), costs)
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
    chart = _draw_costs(survey_of(30), costs_of(means, [1.0] * 30))
    assert chart.title == "replaced by zero, the 20 largest of 30 heads"
    assert (len(chart.names), chart.names[0], chart.names[-1]) == (20, "3.5", "0.3")


def test_what_is_said_names_those_beyond_chance_or_the_largest() -> None:
    certain = _sum_up(survey_of(3), [costs_of([0.01, -0.03, 0.02], [0.01, 0.02, 0.9])]).text
    assert certain.endswith("2 differ from 0 over 40 texts; the largest: 0.1 zero -0.0300, 0.0 zero +0.0100.")
    none = _sum_up(survey_of(3), [costs_of([0.01, -0.03, 0.02], [1.0, 1.0, 1.0])]).text
    assert "none is beyond chance over 40 texts" in none
    assert none.endswith("the largest: 0.1 zero -0.0300.")


def test_few_texts_have_no_interval() -> None:
    costs = costs_of([0.01, 0.02], [1.0, 1.0], half=np.nan)
    assert costs.write(1) == "+0.0200"
    chart = _draw_costs(survey_of(2), costs)
    assert np.isnan(chart.column("low")).all()
    assert chart.y_axis == "probability that the right answer loses"


def test_no_p_value_is_written_as_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "find_costs", lambda _: [costs_of([0.05, 0.01], [1.2e-7, 0.5])])
    info = SimpleNamespace(heads=[(0, 0), (0, 1)], n_places=2)
    shown: Any = SimpleNamespace(info=info, n_texts=40)
    (table,) = (each for each in effects.show_ablations(shown) if isinstance(each, Table))
    assert [row[3] for row in table.rows] == ["1.2e-07", "0.5"]


@pytest.mark.parametrize(("sizes", "said"), [([5, 7], "(here 5)"), ([20] * 21, "(here 21)"), ([12], "")])
def test_classes_that_are_not_compared_are_said_to_be(sizes: list[int], said: str) -> None:
    of = SimpleNamespace(sizes=dict(enumerate(sizes)), n_matched=sum(sizes))
    classes: Any = SimpleNamespace(class_sizes=of, differences=[])
    found = [each.text for each in effects.show_classes(classes) if isinstance(each, Note)]
    assert len(found) == bool(said)
    assert not said or said in found[0]
