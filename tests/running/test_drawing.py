"""What of a record is drawn, and in which order its heads are listed: from options to files and reports."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from attnviz.errors import InvalidOption
from attnviz.records import AttentionMaps
from attnviz.renderers.documents import json as as_json
from attnviz.report import Table
from attnviz.running import Events, Progress, Result
from attnviz.running.drawing import Drawing
from attnviz.running.pictures import parse_inches
from attnviz.specs import FigureOptions, PrintOptions
from tests.events import report, result
from tests.made import cross_maps, random_maps, sink_maps, windowed_maps


def draw(maps: AttentionMaps, folder: Path, **choice: object) -> Result:
    drawing = Drawing.from_options(FigureOptions(dpi=50, **choice))  # type: ignore[arg-type]
    return drawn_by(drawing.draw(maps, folder, with_record=False))


def drawn_by(events: Generator[Progress, None, Result]) -> Result:
    """What a generator returns, after all that it gives."""

    def whole() -> Events:
        yield (yield from events)

    return result(whole())


def heads(drawn: Result) -> Table:
    (table,) = (table for table in report(drawn).tables if table.role == "heads")
    return table


@pytest.mark.parametrize(("kind", "words"), [("png", "a cat"), ("pdf", "قطة جميلة")])
def test_a_rollout_is_a_file(kind: str, words: str, tmp_path: Path) -> None:
    maps = random_maps(words.split())
    maps = replace(maps, provenance=replace(maps.provenance, text_name=words))
    drawn = draw(maps, tmp_path, rollout=True, format=(kind,))
    names = ["overview", "layer-0-head-0", "layer-0-head-1", "rollout"]
    assert [file.name for file in drawn.files] == [f"{name}.{kind}" for name in names]
    again = draw(maps, tmp_path, format=(kind,))
    assert any(f"also holds 1 picture of an earlier run, such as rollout.{kind}" in each for each in again.notices)


@pytest.mark.parametrize(
    ("length", "expected"),
    [("3.3in", 3.3), ("3.3", 3.3), (" 84 mm", 84 / 25.4), ("8.4cm", 8.4 / 2.54), ("240pt", 240 / 72), (None, None)],
)
def test_widths_in_the_units_of_publishers(length: str | None, expected: float | None) -> None:
    assert parse_inches(length) == expected


def test_a_measure_that_was_not_shown_becomes_a_column(tmp_path: Path) -> None:
    maps = random_maps(n_layers=2, n_heads=3)
    table = heads(draw(maps, tmp_path, sort="to_next"))
    headers = [column.header for column in table.columns]
    assert headers[-4:] == ["to next", "looks at", "strongest pair", "weight"]
    values = [float(row[-4]) for row in table.rows]
    assert values == sorted(values, reverse=True)
    shown = heads(draw(maps, tmp_path, sort="-peak"))
    assert [column.header for column in shown.columns].count("peak") == 1
    only = heads(draw(maps, tmp_path, measure=("entropy",), sort="query_information"))
    assert [column.header for column in only.columns][2:-2] == ["entropy", "query information", "looks at"]


@pytest.mark.parametrize("maps", [cross_maps(3, 5), sink_maps(), windowed_maps(), random_maps(padding=2)])
def test_every_kind_of_record_takes_every_option(maps: AttentionMaps, tmp_path: Path) -> None:
    drawn = draw(maps, tmp_path, merge="words", drop_first=True, sort="to_sink", rollout=maps.self_attention)
    assert (tmp_path / "rollout.png").exists() == maps.self_attention
    assert "to sink" in [column.header for column in heads(drawn).columns]
    assert '"hidden"' in "".join(as_json.chunks([report(drawn)]))


def test_what_cannot_be_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="distance needs self-attention"):
        draw(cross_maps(), tmp_path / "out", sort="distance")
    assert not (tmp_path / "out").exists()


def test_every_weight_is_a_row_where_csv_and_the_full_table_are_asked_for(tmp_path: Path) -> None:
    maps = random_maps("abc", n_layers=2, n_heads=2)
    for table, kind, n_rows in (("full", "csv", 2 * 9), ("heads", "csv", None), ("full", "table", None)):
        spec = FigureOptions(pick=("1.0,0.1",), table=table, format=("svg",))  # type: ignore[arg-type]
        drawing = Drawing.from_options(spec, PrintOptions(print=kind))  # type: ignore[arg-type]
        header, *rows = drawn_by(drawing.draw(maps, tmp_path, with_record=False)).rows
        assert (header[-1], len(rows)) == ("weight", n_rows) if n_rows else header[-1] == "value"
        assert dict.fromkeys(row[2:4] for row in rows) == dict.fromkeys([(1, 0), (0, 1)])  # just those that are picked
