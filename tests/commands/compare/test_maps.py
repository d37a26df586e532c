"""What the pictures of a comparison hold."""

from itertools import combinations

import numpy as np
import pytest

from attnviz.commands.compare.maps import distributions_picture, highest, map_pictures, similarity_picture
from attnviz.errors import InvalidSelection
from attnviz.records import AttentionMaps
from attnviz.renderers.figure.files import plan_picture
from attnviz.renderers.figure.layout import FigurePlan
from attnviz.report import Charts, FigureStyle, Heatmap, HeatmapGrid, Picture, Report, Scale
from attnviz.specs import FigureKind, ScaleKind
from tests.commands.compare.comparisons import comparison, model
from tests.made import columns_by, random_maps, record
from tests.renderers.figure.reports import drawn

ONE, TWO = random_maps(n_heads=1, seed=1), random_maps(n_heads=2, seed=2)


def pictures(*several: AttentionMaps, query: int = 3, scale: ScaleKind = "lift") -> dict[str, Picture]:
    """Of the only layer."""
    names, slugs = ("single", "multi:2"), ("single", "multi-2")
    return {each.name: each for each in map_pictures(several, names, slugs, range(1), query, scale)}


def panels(of: Picture) -> tuple[Heatmap, ...]:
    assert isinstance(of, HeatmapGrid)
    return of.maps


def heatmap(of: Picture) -> Heatmap:
    assert isinstance(of, Heatmap)
    return of


def test_one_head_the_mean_of_several_and_each_of_them() -> None:
    found = pictures(ONE, TWO)
    assert list(found) == ["maps", "difference-multi-2-single", "query-3"]
    shown = panels(found["maps"])
    assert [each.title for each in shown] == [
        "single, its one head",
        "multi:2, mean of 2 heads",
        "multi:2, head 0",
        "multi:2, head 1",
    ]
    assert np.array_equal(shown[0].values, ONE.weights[0, 0])
    assert np.allclose(shown[1].values, (TWO.weights[0, 0] + TWO.weights[0, 1]) / 2)
    assert np.array_equal(shown[3].values, TWO.weights[0, 1])
    assert all(each.scale is None for each in shown)


def test_the_difference_is_how_often_one_mean_doubles_into_the_other() -> None:
    shares = np.array([[[[1 / 4, 1 / 4, 1 / 4, 1 / 4], [1, 0, 0, 0], [0.5, 0.5, 0, 0], [1, 0, 0, 0]]]])
    uniform = record(np.full((1, 1, 4, 4), 1 / 4))
    shown = heatmap(pictures(uniform, record(shares), query=0)["difference-multi-2-single"])
    doublings = [[0, 0, 0, 0], [2, 0, 0, 0], [1, 1, 0, 0], [2, 0, 0, 0]]  # less than an equal share is as white as one
    assert shown.values.tolist() == doublings
    back = heatmap(pictures(record(shares), uniform, query=0)["difference-multi-2-single"])
    assert (back.values == -shown.values).all()
    assert shown.scale is not None
    assert (shown.scale.kind, shown.scale.low, shown.scale.high) == ("diverging", -4.0, 4.0)
    assert shown.scale.label.startswith("log₂ of the ratio of multiples, multi:2 over single")
    assert shown.scale.doublings


def test_on_another_scale_the_difference_is_of_weights() -> None:
    shown = heatmap(pictures(ONE, TWO, scale="fixed")["difference-multi-2-single"])
    expected = TWO.weights[0].mean(axis=0) - ONE.weights[0, 0]
    assert np.allclose(shown.values, expected)
    assert shown.scale is not None
    assert shown.scale.kind == "diverging"
    assert shown.scale.high == -shown.scale.low == pytest.approx(np.abs(expected).max())
    assert shown.scale.label == "difference of weight, multi:2 minus single"


def test_one_query_in_every_head() -> None:
    shown = heatmap(pictures(ONE, TWO, query=3)["query-3"])
    assert shown.rows == ("single · 0", "multi:2 · mean", "multi:2 · 0", "multi:2 · 1")
    assert np.array_equal(shown.values[0], ONE.weights[0, 0, 3])
    assert np.allclose(shown.values[1], TWO.weights[0, :, 3].mean(axis=0))
    assert np.array_equal(shown.values[3], TWO.weights[0, 1, 3])
    assert "query 3 “thin”" in shown.title
    assert shown.row_axis == "head"


def test_a_causal_query_sees_what_stands_before_it() -> None:
    causal = random_maps(causal=True), random_maps(causal=True, seed=1)
    shown = heatmap(pictures(*causal, query=2)["query-2"])
    assert shown.allowed.tolist() == [[True] * 3 + [False] * 11] * 6
    difference = heatmap(pictures(*causal)["difference-multi-2-single"])
    assert np.array_equal(difference.allowed, np.tri(14, dtype=bool))


def test_a_query_that_is_not_there() -> None:
    with pytest.raises(InvalidSelection, match="no query 14"):
        pictures(ONE, TWO, query=14)


def test_the_shared_scale_ends_at_the_largest_weight_that_lies_on_it() -> None:
    found = pictures(ONE, TWO)
    assert highest(list(found.values())) == max(float(ONE.weights.max()), float(TWO.weights.max()))


def test_like_heads_stand_together() -> None:
    apart = np.log(2) * np.array([[0, 1, 0.2], [1, 0, 1], [0.2, 1, 0]])
    whole = comparison(model(), model("multi:2", 2), divergences=apart)
    shown = similarity_picture(apart, whole.head_names)
    assert (shown.columns, shown.rows) == (("single · 0", "multi:2 · 1"), ("multi:2 · 1", "multi:2 · 0"))
    assert np.allclose(shown.values, np.array([[0.8, 0], [0, 0]]))
    assert shown.scale == Scale("shared", 0.0, 0.8, "similarity: 1 - mean JSD in bits")
    assert "like ones stand together" in shown.footnote


def test_each_pair_of_heads_has_one_cell_and_no_number() -> None:
    """The other half is blank and does not stretch the scale."""
    apart = np.log(2) * (1 - np.array([[1, 0.25, 0.4], [0.25, 1, 0.3], [0.4, 0.3, 1]]))
    shown = similarity_picture(apart, ("0.0", "0.1", "1.0"))
    pairs = [(shown.rows[row], shown.columns[column]) for row, column in np.argwhere(shown.allowed)]
    assert {frozenset(pair) for pair in pairs} == {frozenset(pair) for pair in combinations(("0.0", "0.1", "1.0"), 2)}
    assert len(pairs) == 3
    assert shown.values[shown.allowed].tolist() == pytest.approx([0.4, 0.25, 0.3])
    assert shown.scale == Scale("shared", 0.0, 0.4, "similarity: 1 - mean JSD in bits")
    with drawn(Report("", "", (shown,), Scale("fixed", 0.0, 1.0, ""))) as made:
        assert not any(text.get_text().startswith(".") for text in made.maps[0].texts)
        assert not made.maps[0].patches  # which the ground of hatched cells is
        assert not any("hatched" in text for text in made.texts)


@pytest.mark.parametrize("kind", ["text", "lines"])
def test_how_alike_heads_are_is_a_map_whatever_kind_is_asked_for(kind: FigureKind) -> None:
    """A text of names would be shaded as if a head were nothing like itself."""
    shown = similarity_picture(np.log(2) * (1 - np.eye(3)) / 2, ("0.0", "0.1", "1.0"))
    made = plan_picture(shown, Report("", "", (shown,)), FigureStyle(kind=kind))
    assert isinstance(made, FigurePlan)
    assert (made.kind, len(made.places)) == ("map", 1)
    attends = heatmap(pictures(ONE, TWO)["difference-multi-2-single"])
    made = plan_picture(attends, Report("", "", (attends,)), FigureStyle(kind=kind))
    assert isinstance(made, FigurePlan)
    assert made.kind == kind


def test_how_heads_are_spread_over_texts() -> None:
    shown = distributions_picture(comparison(model(keys=[9.0, 8.0]), model("multi:2", 2, keys=[5.0, 4.0])))
    assert isinstance(shown, Charts)
    assert [chart.title for chart in shown.charts] == ["effective keys", "entropy"]
    (chart, *_) = shown.charts
    assert chart.names == ("0", "0", "1")
    of_two = ("multi:2",) * 2
    assert columns_by(chart, "x", "group", "y") == {
        0: [("single",) * 2, (9.0, 8.0)],
        1: [of_two, (5.0, 4.0)],
        2: [of_two, (5.0, 4.0)],
    }


def test_more_heads_than_can_be_told_apart_are_not_drawn() -> None:
    assert (
        distributions_picture(comparison(model(keys=[1.0, 2.0]), model("multi:64", 64, keys=[1.0, 2.0], d_model=64)))
        is None
    )
