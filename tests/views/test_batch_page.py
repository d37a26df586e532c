"""A batch as a page, by hand: what leads where, whose numbers are beside whose, and what cannot be compared."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import Any

import pytest

from attnviz.report import Charts, Report, Table
from attnviz.store.manifest import Entry, File, Manifest
from attnviz.views.index_page import batch_page
from tests.made import columns_by


def entry(name: str, numbers: Any = None, files: tuple[str, ...] = (), **settings: Any) -> Entry:
    made = tuple(File(f"{name}/{file}", "00", 1) for file in files)
    return Entry(name, "heatmap", {"seed": 0, **settings}, "f", {}, numbers or {}, (), made)


def page(*entries: Entry) -> Report:
    return batch_page(Manifest({"figures.yaml": "c0ffee"}, {"attnviz": "0.1"}, entries))


def tables(report: Report) -> dict[str, Table]:
    return {table.name: table for table in report.tables}


def charts(report: Report) -> list[Charts]:
    return [each for each in report.pictures if isinstance(each, Charts)]


def of(*texts: str, entropy: float = 1.0) -> Any:
    """Two heads of each text, the second half a nat wider."""
    return {text: {"entropy": [[entropy + place, entropy + place + 0.5]]} for place, text in enumerate(texts)}


def test_a_jobs_name_leads_to_its_page_or_to_what_shows_most_of_it() -> None:
    failed = Entry("d", "predict", {}, "", {}, {}, ("1 character has no glyph",), (), error="no\x1btokens")
    report = page(
        entry("a", files=("layer-0-head-0.png", "text-0/attention.html", "overview.png", "index.html")),
        entry("b", files=("layer-0-head-0.png", "overview.png")),
        entry("c", files=("report.md", "layer-0-head-0.svg"), heads=[1, 2], text="a b"),
        failed,
    )
    jobs = tables(report)["jobs"]
    assert jobs.links == ("a/index.html", "b/overview.png", "c/layer-0-head-0.svg", "")
    assert jobs.rows[2] == ("c", "heatmap", "seed=0 heads=1,2 text=a b", 2, "")
    assert jobs.rows[3] == ("d", "predict", "", 0, "failed: no\\x1btokens; 1 character has no glyph")
    assert report.title == "4 jobs, 1 failed"
    assert dict(report.facts) == {"sha256 of figures.yaml": "c0ffee", "attnviz": "0.1"}
    assert list(tables(report)) == ["jobs"]  # nothing was measured


def test_a_number_of_all_heads_of_a_layer_has_no_chart_of_heads() -> None:
    """It comes first, is in the table, and does not say how many heads there are."""
    numbers = {text: {"vendi_score": [[1.5]], "entropy": [[1.0, 2.0]]} for text in ("a", "b")}
    shown = page(entry("job", numbers))
    assert [row[3:] for row in tables(shown)["numbers"].rows] == [(1.5, 1.5)] * 2
    assert [chart.title for chart in charts(shown)[0].charts] == ["entropy"]
    assert charts(shown)[0].charts[0].names == ("0", "1")


def test_numbers_are_means_over_the_heads_and_what_was_not_measured_is_missing() -> None:
    other = {"text": {"peak": [[0.2, 0.4], [0.6, 0.8]]}}
    numbers = tables(page(entry("a", of("text", entropy=2.0)), entry("b", other, model="multi:2")))["numbers"]
    assert [(column.header, column.unit) for column in numbers.columns[3:]] == [("entropy", "nats"), ("peak", "share")]
    missing: Any = pytest.approx(nan, nan_ok=True)
    assert [row[2:] for row in numbers.rows] == [("as it comes", 2.25, missing), ("multi:2", missing, 0.5)]


def test_each_head_of_a_model_is_a_sample_over_its_texts() -> None:
    (picture,) = charts(
        page(
            entry("a", of("x", "y"), model="multi:2"),
            entry("b", of("z", entropy=5.0), model="multi:2"),
            entry("c", of("x", "y", entropy=3.0), model="multi:2", causal=True, seed=7),
            entry("d", of("x"), model="single"),  # of one text
        )
    )
    (chart,) = picture.charts
    assert (chart.title, chart.y_axis) == ("entropy", "entropy (nats)")
    samples = columns_by(chart, "x", "group", "y")
    found = [(groups[0], chart.names[x], values) for x, (groups, values) in samples.items()]
    causal = "multi:2, seed 7, causal True, 2 texts"
    assert found == [
        ("multi:2, 3 texts", "0", (1.0, 2.0, 5.0)),
        ("multi:2, 3 texts", "1", (1.5, 2.5, 5.5)),
        (causal, "0", (3.0, 4.0)),
        (causal, "1", (3.5, 4.5)),
    ]


def test_layers_have_the_models_own_numbers() -> None:
    layered = {text: {"peak": [[0.5], [0.25]]} for text in ("x", "y")}
    shown = page(replace(entry("a", layered), layers={"x": [1, 3], "y": [1, 3]}))
    assert charts(shown)[0].charts[0].names == ("1.0", "3.0")
    assert charts(page(entry("a", layered)))[0].charts[0].names == ("0.0", "1.0"), "which are not known"
    assert not charts(page(replace(entry("a", layered), layers={"x": [1, 3]}))), "two texts through other layers"


def test_there_is_no_chart_of_chosen_heads_or_of_one_text_or_of_too_many_heads() -> None:
    assert not charts(page(entry("a", of("x", "y"), head="1,3")))  # the first number is not of head 0
    assert not charts(page(entry("a", of("x")), entry("b", of("x"), model="single")))
    many = {text: {"peak": [[0.5] * 33]} for text in ("x", "y")}
    assert not charts(page(entry("a", many)))


def test_measures_that_not_all_have_are_not_drawn() -> None:
    both = {"x": {"entropy": [[1.0]], "peak": [[0.5]]}}
    (picture,) = charts(page(entry("a", both), entry("b", {"y": {"entropy": [[2.0]]}})))
    assert [chart.title for chart in picture.charts] == ["entropy"]


def test_the_mean_over_heads_is_none_of_them() -> None:
    numbers = {"t": {"entropy": [[1.0, 2.0, 9.0]], "divergence_from_mean": [[0.25]]}, "u": {"entropy": [[9.0]]}}
    job = replace(entry("a", numbers), heads={"t": [0, 1, "mean"], "u": ["mean"]})
    found, alone = (row[3:] for row in tables(page(job))["numbers"].rows)
    assert found == (1.5, 0.25)
    assert alone == pytest.approx((nan, nan), nan_ok=True)
