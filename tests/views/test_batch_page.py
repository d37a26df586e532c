"""A batch as a page, by hand: what leads where, and whose numbers are beside whose."""

from collections.abc import Iterable
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.report import Column, Report, Table
from attnviz.store.manifest import Entry, File, Manifest, TextNumbers
from attnviz.views.index_page import batch_page, texts_page


def entry(name: str, numbers: Iterable[TextNumbers] = (), files: tuple[str, ...] = (), **settings: Any) -> Entry:
    made = tuple(File(f"{name}/{file}", "00", 1) for file in files)
    return Entry(name, "heatmap", {"seed": 0, **settings}, "f", {}, tuple(numbers), (), made)


def page(*entries: Entry) -> Report:
    return batch_page(Manifest({"figures.yaml": "c0ffee"}, {"attnviz": "0.1"}, entries))


def tables(report: Report) -> dict[str, Table]:
    return {table.name: table for table in report.tables}


def of(text: str, **values: list[float]) -> TextNumbers:
    """Numbers of the heads of one layer."""
    (first, *_) = values.values()
    return TextNumbers(text, values, [0] * len(first), [*range(len(first))])


def test_a_jobs_name_leads_to_its_page_or_to_what_shows_most_of_it() -> None:
    failed = Entry("d", "predict", {}, "", {}, (), ("1 character has no glyph",), (), error="no\x1btokens")
    report = page(
        entry("a", files=("layer-0-head-0.png", "text-0/attention.html", "overview.png", "index.html")),
        entry("b", files=("layer-0-head-0.png", "overview.png")),
        entry("c", files=("report.md", "layer-0-head-0.svg"), heads=[1, 2], index=[*range(20)]),
        failed,
    )
    jobs = tables(report)["jobs"]
    assert jobs.links == ("", "a/index.html", "b/overview.png", "c/layer-0-head-0.svg")
    assert jobs.rows[3] == ("c", "heatmap", "seed=0 heads=1,2 index=0,1,2,3,4,5,6,7 and 12 more", 2, "")
    assert jobs.rows[0] == ("d", "predict", "", 0, "failed: no\\x1btokens; 1 character has no glyph")
    assert report.title == "4 jobs, 1 failed"
    assert dict(report.facts) == {"sha256 of figures.yaml": "c0ffee", "attnviz": "0.1"}
    assert list(tables(report)) == ["jobs"]  # nothing was measured


def test_numbers_are_means_over_the_heads_and_what_was_not_measured_is_missing() -> None:
    other = entry("b", [of("text", to_self=[0.2, 0.4, 0.6, 0.8])])
    numbers = tables(page(entry("a", [of("text", entropy=[2.0, 2.5])]), other))["numbers"]
    assert numbers.columns[2:] == (Column("entropy", "nats"), Column("to self", "share"))
    missing: Any = pytest.approx(nan, nan_ok=True)
    assert [row[2:] for row in numbers.rows] == [(2.25, missing), (missing, 0.5)]


def test_what_failed_stands_first_and_then_what_changed() -> None:
    failed = Entry("d", "predict", {}, "", {}, (), (), (), error="no tokens")
    entries = (entry("a"), entry("b"), entry("c"), failed)
    manifest = Manifest({"figures.yaml": "c0ffee"}, {}, entries)
    (jobs,) = batch_page(manifest, {"a": "data:image/webp;base64,"}, {"c"}).tables
    assert [row[0] for row in jobs.rows] == ["d", "c", "a", "b"]
    assert [row[4] for row in jobs.rows] == ["failed: no tokens", "changed", "", ""]
    assert jobs.thumbs == ("", "", "data:image/webp;base64,", "")


def test_the_mean_over_heads_is_none_of_them() -> None:
    heads = replace(of("t", entropy=[1.0, 2.0, 9.0]), head=[0, 1, "mean"])
    layer, mean = (
        TextNumbers("t", {"vendi_score": [0.25]}, [0], [None]),
        TextNumbers("u", {"entropy": [9.0]}, [0], ["mean"]),
    )
    found, alone = (row[2:] for row in tables(page(entry("a", [heads, layer, mean])))["numbers"].rows)
    assert found == (1.5, 0.25)
    assert alone == pytest.approx((nan, nan), nan_ok=True)


@pytest.mark.parametrize(
    ("grid", "many", "unit"), [(None, "texts", "tokens"), (attnviz.Grid(2, 2), "images", "patches")]
)
def test_an_index_says_whether_texts_or_images_are_looked_at(grid: attnviz.Grid | None, many: str, unit: str) -> None:
    maps = attnviz.from_attentions(np.full((1, 1, 4, 4), 0.25), keys=grid or [*"abcd"])
    shown = texts_page(maps, None, [entry("a", [of("“a”", distance=[1.0])]), entry("b", [of("“b”", distance=[2.0])])])
    assert shown.title == f"module attends to 2 {many}"
    (table,) = shown.tables
    assert (table.title, table.columns[0].header) == (f"{many.capitalize()}, with means over the heads", many[:-1])
    assert table.columns[1].unit == unit
