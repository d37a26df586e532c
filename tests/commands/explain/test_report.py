"""A model's query by hand: what is shown, what is summed up, and that the columns add up."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnviz.commands.explain.report import MAX_COMPONENTS, MAX_ROWS, explain_report
from attnviz.errors import TooLarge
from attnviz.records import Facts
from attnviz.records.attention_trace import AttentionTrace, Head, Projection, VerifiedTrace, trace_head
from attnviz.renderers.figure.calculation import CalculationPlan, Strip, plan_calculation
from attnviz.renderers.figure.layout import POINT, TextLine
from attnviz.renderers.figure.text import extent
from attnviz.report import Calculation, CalculationStep, FigureStyle, Report
from attnviz.specs import FigureOptions
from tests.attacks import endings
from tests.attacks.endings import RunHere, worked
from tests.made import FILM, known, page_content, provenance, table, tokens


def found(
    pieces: tuple[str, ...] = FILM,
    *,
    n_heads: int = 2,
    d_head: int = 4,
    query: int = 3,
    causal: bool = False,
    projects: bool = True,
    position: bool = False,
    seed: int = 0,
) -> VerifiedTrace:
    """A made-up layer whose arithmetic is right by definition."""
    random = np.random.default_rng(seed)
    n, d_model = len(pieces), n_heads * d_head
    attendable = np.arange(n) <= query if causal else np.ones(n, dtype=bool)
    made = [random.normal(size=(2 * n + 1, d_head)) for _ in range(n_heads)]
    bias = np.arange(n) - 1.5 if position else None
    heads = tuple(trace_head(of[0], of[1 : n + 1], of[n + 1 :], attendable, bias) for of in made)
    projection = Projection(random.normal(size=(d_model, d_model)), random.normal(size=d_model)) if projects else None
    worked = AttentionTrace(tokens(*pieces), query, attendable, random.normal(size=(n, d_model)), heads, projection)
    made_by = provenance(settings=(("norm", "pre"),), facts=Facts(causal=causal, tokens_in_text=n))
    return VerifiedTrace(worked, made_by, 0, 1, True, worked.output, 1e-8, 1e-9, 1e-4)


def shown(of: VerifiedTrace) -> Report:
    return explain_report(of, 0, FigureOptions())


# What is shown


def test_keys_of_the_largest_weight_have_rows_and_the_others_one() -> None:
    of = found(tuple(f"w{place}" for place in range(40)))
    weights = of.trace.heads[0].weights
    *rows, rest = table(shown(of), "steps-layer-0-head-0").rows
    assert [row[0] for row in rows] == [f"{key} w{key}" for key in sorted(np.argsort(-weights)[:MAX_ROWS].tolist())]
    assert rest[:-1] == ("… 16 other keys", "…", "…")
    assert sum(float(row[-1]) for row in (*rows, rest)) == pytest.approx(1)


# --- The steps as a picture: its numbers are the trace's, it holds what it shows, and how it ends without room ---


TEXT = "The movie was not bad"


def of_tokens(n: int, **more: Any) -> tuple[Report, Head]:
    """The report on a made-up head over so many tokens, and the head."""
    of = found(tuple(f"w{place}" for place in range(n)), query=min(2, n - 1), **more)
    return shown(of), of.trace.heads[0]


def chart_of(report: Report) -> Calculation:
    picture = next(report.pictures)
    assert isinstance(picture, Calculation)
    return picture


def step_of(chart: Calculation, formula: str) -> CalculationStep:
    (step,) = (step for step in chart.steps if any(line.startswith(formula) for line in step.formula))
    return step


def plan_of(report: Report, look: FigureStyle = FigureStyle()) -> CalculationPlan:  # noqa: B008 - it is frozen
    return plan_calculation(chart_of(report), report, look)


# Its numbers


@pytest.mark.parametrize(("n", "d_head"), [(3, 2), (11, 16), (64, 32)])
@pytest.mark.parametrize("position", [False, True])
def test_every_number_is_one_of_the_trace(n: int, d_head: int, position: bool) -> None:
    report, head = of_tokens(n, d_head=d_head, position=position)
    chart = chart_of(report)
    keys = [int(name.split()[0]) for name in chart.rows if not name.startswith("…")]
    assert len(keys) == min(n, MAX_ROWS)
    expected = {"k": head.keys, "q ·": head.scores, "s": head.scaled, "a =": head.weights, "v": head.values}
    expected |= {"a ·": head.weighted} | ({} if head.position is None else {"b": head.position})
    for formula, values in expected.items():
        assert np.array_equal(step_of(chart, formula).values[: len(keys)], values[keys].reshape(len(keys), -1))
    assert len(chart.steps) == len(expected)
    query, output = step_of(chart, "k").above, step_of(chart, "a ·").below
    assert np.array_equal(known(query).components, head.query)
    assert np.array_equal(known(output).components, head.output)


@pytest.mark.parametrize("n", [3, 25, 26, 64])
def test_the_columns_add_up_whatever_is_left_out(n: int) -> None:
    report, head = of_tokens(n)
    chart = chart_of(report)
    assert step_of(chart, "a =").values.sum() == pytest.approx(1)
    assert step_of(chart, "a ·").values.sum(axis=0) == pytest.approx(head.output)
    assert chart.has_rest == (n > MAX_ROWS + 1)
    assert chart.rows[-1] == (f"… {n - MAX_ROWS} other keys" if chart.has_rest else f"{n - 1} w{n - 1}")
    assert (
        any(note.startswith(f"of {n} keys, the {MAX_ROWS} with the largest") for note in chart.notes) == chart.has_rest
    )


def test_only_what_has_room_is_shown_and_that_is_said() -> None:
    of = found(tuple(f"w{place}" for place in range(200)), n_heads=1, d_head=2 * MAX_COMPONENTS)
    chart = chart_of(shown(of))
    assert len(chart.rows) == MAX_ROWS + 1
    assert step_of(chart, "v").values.shape[1] == MAX_COMPONENTS
    assert f"the first {MAX_COMPONENTS} of {2 * MAX_COMPONENTS} components" in chart.notes[0]


def test_what_is_masked_has_no_score_and_no_weight() -> None:
    report, _ = of_tokens(6, causal=True)
    chart = chart_of(report)
    assert step_of(chart, "s").values[3:, 0].tolist() == [-np.inf] * 3
    assert step_of(chart, "a =").values[3:, 0].tolist() == [0.0] * 3
    assert [line.text for line in plan_of(report).lines].count("−∞") == 3
    assert any("may not attend" in note for note in chart.notes)
    assert not any("may not attend" in note for note in chart_of(of_tokens(6)[0]).notes)


def test_bars_are_as_long_as_weights_and_strips_hold_their_components() -> None:
    report, head = of_tokens(5, d_head=8)
    plan = plan_of(report)
    assert [bar.width for bar in plan.bars] == pytest.approx(head.weights * (plan.bars[0].width / head.weights[0]))
    drawn = [strip.components for strip in plan.strips if len(strip.components) == 8]
    expected = [*head.keys, head.query, *head.values, *head.weighted, head.output]
    assert np.array_equal(np.array(drawn), np.array(expected))


# Its look


def crosses(line: TextLine, strip: Strip) -> bool:
    """Whether a text is not beside a strip."""
    box, width = strip.box, extent(line.text, line.size, line.bold).width * POINT
    left = line.x - {"left": 0.0, "center": width / 2, "right": width}[line.align] - box.left
    return not (left + width <= 0 or left >= box.width or not box.top < line.y < box.top + box.height)


@pytest.mark.parametrize("n", [1, 3, 11, 64])
@pytest.mark.parametrize("look", [FigureStyle(), FigureStyle(theme="dark"), FigureStyle(font_size=20, header=False)])
def test_nothing_sticks_out_and_no_texts_of_a_row_touch(n: int, look: FigureStyle) -> None:
    for report in (of_tokens(n, d_head=16, position=True)[0], of_tokens(3, d_head=4)[0]):
        plan = plan_of(report, look)
        by_row: dict[float, list[tuple[float, float]]] = {}
        for line in plan.lines:
            width = extent(line.text, line.size, line.bold).width * POINT
            left = line.x - {"left": 0.0, "center": width / 2, "right": width}[line.align]
            assert left >= 0
            assert left + width <= plan.width
            assert 0 < line.y < plan.height
            by_row.setdefault(round(line.y, 3), []).append((left, left + width))
        for ends in map(sorted, by_row.values()):
            assert all(one[1] <= other[0] for one, other in pairwise(ends))
        assert all(strip.box.left + strip.box.width <= plan.width for strip in plan.strips)
        assert not [line.text for line in plan.lines if any(crosses(line, strip) for strip in plan.strips)]


def test_a_width_is_kept_or_refused_with_one_that_works() -> None:
    report, _ = of_tokens(11, d_head=16, position=True)
    assert plan_of(report, FigureStyle(width=14.0)).width == pytest.approx(14)
    with pytest.raises(TooLarge, match="3 in are too few for 'steps-layer-0-head-0'") as refusal:
        plan_of(report, FigureStyle(width=3.0))
    (works,) = re.findall(r"--width ([\d.]+)in", str(refusal.value.hint))
    plan = plan_of(report, FigureStyle(width=float(works)))
    assert plan.width == pytest.approx(float(works), abs=0.01)
    assert all(strip.box.left + strip.box.width <= plan.width for strip in plan.strips)


# As a command


def test_each_head_is_drawn_where_and_as_it_was_asked(run_here: RunHere, tmp_path: Path) -> None:
    asked = ("explain", "--by-hand", TEXT, "--query", "not", "--out", "x", "--format", "svg,pdf,html")
    run = worked(run_here(*asked, "--head", "0.3", "--svg-text", "--json"))
    assert {path.name for path in (tmp_path / "x").iterdir()} == {
        "steps-layer-0-head-3.svg",
        "steps-layer-0-head-3.pdf",
        "attention.html",
    }
    assert endings.notes(run) == ['attnviz lesson "a sentence" makes a page of the same steps, to explore']
    head = json.loads(run.out)["heads"][3]
    drawn = (tmp_path / "x" / "steps-layer-0-head-3.svg").read_text(encoding="utf-8").replace("\u2212", "-")
    for number in (*head["scores"], *head["position"], *head["scaled"]):
        assert f">{number:.2f}<" in drawn
    (table,) = page_content(tmp_path / "x" / "attention.html")["tables"]
    assert table["picture"].startswith("data:image/svg+xml;base64,")
    worked(run_here(*asked[:5], "--head", "0.5", "--dpi", "40", "--title", "Mine"))
    assert {path.name for path in (tmp_path / "explanation").iterdir()} == {"steps-layer-0-head-5.png"}
