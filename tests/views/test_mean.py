"""The mean over heads, beside heads or in their place: pictures, what it hides, tables and data."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

import attnviz
from attnviz.errors import InvalidSelection
from attnviz.measures.divergence import divergence_from_mean
from attnviz.records import AttentionMaps
from attnviz.report import Report
from attnviz.running.drawing import Drawing
from attnviz.specs import FigureOptions
from attnviz.views.heatmap import make_report
from tests.events import data, report
from tests.made import heatmaps, overview, random_maps, record, table
from tests.running.test_drawing import drawn_by

FILM = ("the", "film", "was", "good")


def show(maps: AttentionMaps, **choice: Any) -> Report:
    return make_report(maps, FigureOptions(**choice))


def divergence(rows: np.ndarray) -> float:
    """What the mean of heads hides, from [head, query, key]."""
    return float(divergence_from_mean(record(rows[None])).values[0])


def test_a_mean_is_drawn_under_its_name_with_what_it_hides() -> None:
    maps = random_maps(n_layers=2, n_heads=3)
    shown = show(maps, head=("mean",), layer=("1",))
    (picture,) = heatmaps(shown)
    assert (picture.name, picture.title) == ("layer-1-mean", "layer 1, mean of 3 heads")
    assert picture.values == pytest.approx(maps.weights[1].mean(axis=0), abs=1e-7)
    apart = divergence(maps.weights[1].astype(np.float64))
    said = f"heads differ from their mean by {apart:.2f} of at most 0.32 nats (Jensen-Shannon divergence)"
    assert shown.subtitle.endswith(said)
    ((layer, value),) = table(shown, "layers").rows
    assert layer == 1
    assert value == pytest.approx(apart, abs=1e-6)
    assert table(shown, "heads").rows[0][:2] == (1, "mean")
    assert table(shown, "layer-1-mean-top").rows[0][3] == pytest.approx(float(maps.weights[1].mean(axis=0)[0].max()))


def test_heads_and_mean_stand_in_the_order_given() -> None:
    maps = random_maps(n_layers=2, n_heads=3)
    shown = show(maps, head=("2,mean,0",))
    names = ["layer-{}-head-2", "layer-{}-mean", "layer-{}-head-0"]
    assert [each.name for each in heatmaps(shown)] == [name.format(layer) for layer in (0, 1) for name in names]
    assert np.array_equal(heatmaps(shown)[3].values, maps.weights[1, 2])
    assert overview(shown).title == "4 heads of 2 layers and the mean of 3 heads"
    assert shown.data["heads"] == [2, "mean", 0]
    weights: Any = shown.data["weights"]
    assert weights[:, 1] == pytest.approx(maps.weights.mean(axis=1), abs=1e-7)
    assert np.array_equal(weights[:, 2], maps.weights[:, 0])
    one_layer = overview(show(random_maps(n_layers=3, n_heads=3), head=("0-1,mean",), layer=("1",)))
    assert one_layer.title == "2 heads of layer 1 and the mean of 3 heads"


def test_one_query_of_a_mean_is_a_row() -> None:
    maps = random_maps(n_heads=3)
    (alone,) = heatmaps(show(maps, head=("mean",), query="1"))
    assert alone.title.endswith("attends to, mean of 3 heads of layer 0")
    (strip,) = heatmaps(show(maps, head=("mean,1",), query="1"))
    assert strip.rows == ("mean", "1")
    rows = maps.weights[0, :, 1]
    assert strip.values == pytest.approx(np.stack([rows.mean(axis=0), rows[1]]), abs=1e-7)


def test_shares_of_what_is_moved_are_averaged_not_the_weights() -> None:
    maps: Any = attnviz.attention("the acting saved the film")
    moved = maps.weights.astype(np.float64) * maps.value_norms[:, :, None]
    expected = (moved / moved.sum(axis=-1, keepdims=True))[0]
    shown = show(maps, head=("mean",), layer=("0",), weigh="values")
    (picture,) = heatmaps(shown)
    assert picture.values == pytest.approx(expected.mean(axis=0), abs=1e-6)
    assert np.abs(expected.mean(axis=0) - maps.weights[0].mean(axis=0)).max() > 0.01
    assert f"by {divergence(expected):.2f} of at most" in shown.subtitle
    assert shown.scale.label.startswith("share of what is moved")
    assert "by what they move" in shown.subtitle


def test_patches_of_an_image_have_a_mean() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(10), size=(1, 3, 10))
    maps = attnviz.from_attentions(weights, keys=attnviz.Grid(3, 3, leading=["[CLS]"]))
    patches: Any = next(show(maps, head=("mean,1",)).pictures)
    assert patches.title.endswith(": 1 head of layer 0 and the mean of 3 heads")
    assert [each.title for each in patches.maps] == ["mean of 3 heads", "head 1"]
    assert patches.maps[0].values.ravel() == pytest.approx(weights[0, :, 0, 1:].mean(axis=0), abs=1e-6)


def test_files_of_a_mean_have_names_of_their_own(tmp_path: Path) -> None:
    spec = FigureOptions(head=("0,mean",), format=("svg",))
    drawn = drawn_by(Drawing.from_options(spec).draw(random_maps(FILM, n_heads=2), tmp_path))
    assert [file.name for file in drawn.files[:-1]] == ["overview.svg", "layer-0-head-0.svg", "layer-0-mean.svg"]
    assert attnviz.load(drawn.files[-1]).n_heads == 2
    assert [of.head for of in drawn.numbers] == [[0, "mean"], [None]]
    assert [row[3] for row in list(drawn.rows)[1:] if row[4] == "entropy"] == [0, "mean"]
    assert [row[2:5] for row in drawn.rows if row[4] == "divergence_from_mean"] == [(0, "", "divergence_from_mean")]
    assert data(drawn)["measures"]["entropy"]["values"].shape == (1, 2)
    assert report(drawn).render.heads == "--head 0,mean"  # type: ignore[union-attr]
    again = FigureOptions(head=("1",), format=("svg",))
    left = drawn_by(Drawing.from_options(again).draw(random_maps(FILM, n_heads=2), tmp_path, with_record=False))
    assert any("also holds 3 pictures of an earlier run" in notice for notice in left.notices)


def test_python_draws_a_mean_and_does_not_record_one() -> None:
    maps = attnviz.attention("the acting saved the film")
    figure = attnviz.heatmap(maps, head="mean")
    assert any("mean of 8 heads" in text.get_text() for text in figure.findobj(Text))
    (overview,) = attnviz.show(maps, pick="0.mean").report.pictures
    assert [panel.name for panel in overview.maps] == ["layer-0-mean"]  # type: ignore[union-attr]
    with pytest.raises(InvalidSelection, match=r"the mean over heads is not a head. heatmap and render draw it"):
        attnviz.attention("the acting", head="mean")
