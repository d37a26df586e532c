"""`heatmap` and `render` as functions: which files, which texts, what the user is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from attnviz import store
from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.commands.render.spec import RenderSpec
from attnviz.errors import InvalidOption, InvalidText
from attnviz.options import build, replace_values
from attnviz.running import Result
from tests.events import report, result, results
from tests.made import content, cross_maps, page_content
from tests.starting import heatmap, render

TEXT = "the film was not good"


@pytest.fixture
def spec(tmp_path: Path) -> HeatmapSpec:
    return build(HeatmapSpec, text=(TEXT,), heads=2, out=str(tmp_path / "out"), dpi=50)


def only(spec: HeatmapSpec) -> Result:
    (drawn,) = results(heatmap(spec))
    return drawn


def test_pages_of_several_texts_have_an_index(spec: HeatmapSpec) -> None:
    several = replace_values(spec, text=(TEXT, "<b>", "acting"), head=("1",), format=("html",))
    *drawn, index = results(heatmap(several))
    out = Path(spec.figure.out)
    assert index.files == (out / "index.html",)
    content = page_content(index.files[0])
    (table,) = content["tables"]
    assert content["title"] == "multi:2 attends to 3 texts"
    assert [row[0] for row in table["rows"]] == ["“the film was not good”", "“<b>”", "“acting”"]
    assert table["links"] == [each.files[0].relative_to(out).as_posix() for each in drawn]
    place = next(i for i, column in enumerate(table["columns"]) if column["header"] == "entropy")
    assert [row[place] for row in table["rows"]] == [
        pytest.approx(np.mean(each.numbers[0].values["entropy"]))
        for each, row in zip(drawn, table["rows"], strict=True)
    ]
    assert len(results(heatmap(replace_values(several, format=("png",), out=f"{out}-png")))) == 3


def test_of_a_data_set_the_first_text_is_drawn_and_that_is_said(spec: HeatmapSpec) -> None:
    drawn = only(replace_values(spec, text=()))
    assert report(drawn).title.startswith("multi:2 attends to “")
    assert dict(report(drawn).facts)["text"] == "sample train[0]"
    assert "drawing text 0 of sample train (40 texts); --index chooses others" in drawn.notices


def test_the_whole_split_makes_the_vocabulary(spec: HeatmapSpec) -> None:
    spec = replace_values(spec, d_model=16)  # of a width that nobody has trained
    only(replace_values(spec, text=(), split="train[:10]"))
    ten = dict(store.load(Path(spec.figure.out) / "attention.safetensors").provenance.settings)
    only(replace_values(spec, text=(), split="train[:1]"))
    one = dict(store.load(Path(spec.figure.out) / "attention.safetensors").provenance.settings)
    assert ten["vocabulary_entries"] > one["vocabulary_entries"] > 3  # type: ignore[operator]


def test_a_blank_text_among_others_is_refused_before_the_first_picture(spec: HeatmapSpec) -> None:
    with pytest.raises(InvalidText, match="no tokens in the text"):
        list(heatmap(replace_values(spec, text=("fine", " "))))
    assert not Path(spec.figure.out).exists()


@pytest.mark.parametrize(
    ("change", "notice"),
    [
        ({"model": "random"}, "untrained: the weights are random (seed 0), so the maps show no learned attention"),
        ({"text": ("ह न",)}, "2 characters have no glyph in our fonts and are drawn as boxes (U+0928, U+0939)"),
        (
            {"text": ("a b " * 40,), "annotate": True},
            "some maps have too many cells for --annotate; their digits are left out",
        ),
    ],
)
def test_notices(spec: HeatmapSpec, change: dict[str, object], notice: str) -> None:
    assert notice in only(replace_values(spec, **change)).notices


def test_pictures_of_the_same_record_stay_and_are_pointed_out(spec: HeatmapSpec) -> None:
    only(spec)
    drawn = only(replace_values(spec, head=("1",)))
    assert any("also holds 2 pictures of an earlier run, such as layer-0-head-0.png" in n for n in drawn.notices)
    assert "layer-0-head-0.png" in content(Path(spec.figure.out))
    assert not any("earlier run" in notice for notice in only(spec).notices)


def test_pictures_of_another_record_go_and_what_is_not_ours_stays(spec: HeatmapSpec) -> None:
    only(replace_values(spec, heads=4, format=("png,svg,pdf,html",)))
    theirs = ("layer-0-head-9.png", "mine.png")
    for name in theirs:
        (Path(spec.figure.out) / name).write_bytes(b"mine")
    drawn = only(spec)
    assert content(Path(spec.figure.out)).keys() == {*theirs, *(file.name for file in drawn.files)}
    (notice,) = (notice for notice in drawn.notices if "earlier run" in notice)
    assert notice == ("removed 23 pictures of an earlier run, such as attention.html: it showed another text or model")
    other = replace_values(spec, text=("another text",), out=f"{spec.figure.out}-other")
    only(other)
    with pytest.raises(InvalidOption, match="holds another record and its pictures"):
        render(build(RenderSpec, record=f"{other.figure.out}/attention.safetensors", out=spec.figure.out))


@pytest.mark.parametrize("maps", [lambda: cross_maps(3, 5), lambda: cross_maps(1, 2)])
def test_a_record_between_two_texts_is_drawn(tmp_path: Path, maps: Callable[[], object]) -> None:
    store.save(maps(), tmp_path / "cross.safetensors")  # type: ignore[arg-type]
    spec = build(RenderSpec, record=str(tmp_path / "cross.safetensors"), out=str(tmp_path / "out"), dpi=50)
    drawn = result(render(spec))
    assert drawn.files
    measures = report(drawn).data["measures"]
    assert isinstance(measures, dict)
    assert "distance" not in measures


def test_padding_is_shown_only_when_asked_for(spec: HeatmapSpec) -> None:
    plain = only(replace_values(spec, max_tokens=8))
    shown = only(replace_values(spec, max_tokens=8, show_padding=True))
    weights = [np.asarray(report(drawn).data["weights"]) for drawn in (plain, shown)]
    assert [w.shape[-1] for w in weights] == [5, 8]
    np.testing.assert_allclose(weights[1][..., :5, :5], weights[0], atol=1e-6)
    assert any("3 of 8 tokens are padding" in note.text for note in report(shown).notes)
