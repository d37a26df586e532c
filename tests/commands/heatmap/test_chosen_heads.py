"""Records of some layers and heads: where all have no room, and with --factored. Numbers stay the model's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz import store
from attnviz.bounded import GIB
from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.commands.render.spec import RenderSpec
from attnviz.errors import InvalidOption, InvalidSelection, TooLarge
from attnviz.measures import measure_maps
from attnviz.measures.rollout import rollout
from attnviz.models.loading import find_model
from attnviz.models.protocols import Factorable, LayersAndHeads
from attnviz.models.sizes import Work
from attnviz.options import build
from attnviz.records import AttentionMaps
from attnviz.records.factored import FactoredMaps
from attnviz.report import HeatmapGrid, Note
from attnviz.running import Result
from attnviz.specs import ModelOptions
from attnviz.views.record_changes import measure_changes
from tests import pretrained
from tests.events import data, report, results
from tests.made import load_encoder, page_content, table
from tests.starting import heatmap, render

TEXT = "the film was not good but the acting saved the film and the cast was fine . " * 12
SIZES: dict[str, object] = {"heads": 8, "layers": 3}
N_TOKENS = 17 * 12


def room(n_maps: int, less: int = 0) -> float:
    """GiB for the weights of so many heads, not of all 24, and so many bytes less."""
    found = load_encoder(ModelOptions(heads=8, layers=3), (TEXT,))
    sizes = N_TOKENS, N_TOKENS, found.n_heads, found.n_layers, found.d_model, found.n_parameters
    return (Work(*sizes, n_maps=n_maps).needed + 1 - less) / GIB


def drawn(out: Path, **more: object) -> tuple[Result, AttentionMaps]:
    lists: dict[str, object] = {name: (more[name],) for name in ("layer", "head", "pick", "measure") if name in more}
    spec = build(HeatmapSpec, text=(TEXT,), out=str(out), dpi=30, **(SIZES | more | lists))
    (found,) = results(heatmap(spec))
    return found, store.load(out / store.RECORD)


def maps_of(choice: LayersAndHeads | None = None, *, factored: bool = False) -> AttentionMaps:
    model = load_encoder(ModelOptions(heads=8, layers=3), (TEXT,))
    attend = model.attend_factored if factored else model.attention
    return attend(TEXT) if choice is None else attend(TEXT, "text", choice)


@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize(("layers", "heads"), [((1,), (5,)), ((0, 2), None), (None, (0, 7))])
def test_what_is_chosen_is_as_it_is_in_the_whole(
    layers: tuple[int, ...] | None, heads: tuple[int, ...] | None, factored: bool
) -> None:
    whole, part = maps_of(), maps_of(LayersAndHeads(layers, heads), factored=factored)
    layers, heads = layers or (0, 1, 2), heads or tuple(range(8))
    assert (part.layer_numbers, part.head_numbers) == (layers, heads)
    np.testing.assert_allclose(part.weights, whole.weights[np.ix_(layers, heads)], rtol=2e-5, atol=1e-7)
    assert whole.value_norms is not None
    assert part.value_norms is not None
    np.testing.assert_allclose(part.value_norms, whole.value_norms[np.ix_(layers, heads)], rtol=1e-5)
    if not factored:
        assert part.n_bytes == 4 * len(layers) * len(heads) * N_TOKENS**2


def test_layers_behind_the_last_that_is_chosen_are_not_run() -> None:
    model = load_encoder(ModelOptions(heads=8, layers=3), (TEXT,))
    run: list[int] = []
    for layer, attention in enumerate(model.attentions):
        attention.get_submodule("query").register_forward_hook(lambda *_, layer=layer: run.append(layer))
    model.attention(TEXT, "text", LayersAndHeads((1,)))
    model.attend_factored(TEXT, "text", LayersAndHeads((0, 1)))
    assert run == [0, 1, 0, 1]


@pytest.mark.parametrize(("more", "form"), [({}, AttentionMaps), ({"less": 2**22}, FactoredMaps), (None, FactoredMaps)])
def test_a_number_stands_under_its_right_name(more: dict[str, int] | None, form: type, tmp_path: Path) -> None:
    where = {"factored": True} if more is None else {"max_memory": room(1, **more)}
    found, maps = drawn(tmp_path, layer="-2", head="5", format=("png", "html"), distance=True, **where)
    assert type(maps) is form
    assert any("no room in --max-memory" in notice for notice in found.notices) == (more is not None)
    assert (maps.layer_numbers, maps.head_numbers) == ((1,), (5,))
    assert {path.name for path in found.files} >= {"layer-1-head-5.png", store.RECORD}
    whole = maps_of()
    values = data(found)
    assert (values["layers"], values["heads"]) == ([1], [5])
    assert np.array(values["weights"])[0, 0] == pytest.approx(whole.weights[1, 5], rel=2e-5)
    assert [(of.layer, of.head) for of in found.numbers] == [([1], [5])]
    assert [row[:2] for row in table(report(found), "heads").rows] == [(1, 5)]
    assert [chart.title for block in report(found).blocks for chart in getattr(block, "charts", ())] == ["head 5"]
    assert {tuple(row[2:4]) for row in list(found.rows or ())[1:]} == {(1, 5)}
    said = " ".join(block.text for block in report(found).blocks if isinstance(block, Note))
    assert "holds only layer 1 of 3 and head 5 of 8" in said
    assert [each["maps"] for each in page_content(tmp_path / "attention.html")["pictures"]] == [[0]]
    again = build(RenderSpec, record=str(tmp_path / store.RECORD), out=str(tmp_path / "again"), head=("0",))
    with pytest.raises(InvalidSelection, match=r"no head 0\. There is only head 5"):
        list(render(again))


def test_where_all_have_room_the_record_has_all(tmp_path: Path) -> None:
    found, maps = drawn(tmp_path / "some", head="5,2")
    assert maps.n_heads == 8
    assert [of.head for of in found.numbers] == [[5, 2] * 3]
    assert store.encode_record(drawn(tmp_path / "all")[1]) == (tmp_path / "some" / store.RECORD).read_bytes()


def test_picked_heads_are_drawn_of_their_layers_and_heads(tmp_path: Path) -> None:
    found, maps = drawn(tmp_path, pick="2.7,0.1", factored=True)
    assert (maps.layer_numbers, maps.head_numbers) == ((0, 2), (1, 7))
    (grid,) = (block for block in report(found).blocks if isinstance(block, HeatmapGrid))
    assert [each.title for each in grid.maps] == ["layer 2, head 7", "layer 0, head 1"]


@pytest.mark.parametrize("measure", ["vendi_score", "all"])
def test_measures_of_all_heads_keep_all_heads(measure: str, tmp_path: Path) -> None:
    found, maps = drawn(tmp_path, layer="1", head="5", measure=measure, factored=True)
    assert (maps.layer_numbers, maps.head_numbers) == ((1,), tuple(range(8)))
    (row,) = table(report(found), "layers").rows
    of_whole = measure_maps(maps_of(), [measure], "layer")
    assert row == (1, *(pytest.approx(each.values[1], abs=1e-4) for each in of_whole))


def test_rollout_keeps_everything(tmp_path: Path) -> None:
    with pytest.raises(TooLarge, match="3 layers need"):
        drawn(tmp_path, layer="1", rollout=True, max_memory=room(8))


def test_what_is_of_all_heads_is_not_worked_out_of_some() -> None:
    part = maps_of(LayersAndHeads(None, (0, 1)))
    with pytest.raises(InvalidOption, match=r"vendi_score needs all heads of a layer, .* has 2 of 8"):
        measure_maps(part, ["vendi_score"])
    assert all(each.level == "head" for each in measure_maps(part, ["all"]))
    with pytest.raises(InvalidOption, match="rollout needs all heads"):
        rollout(part)


def test_records_are_compared_head_by_head_of_one_number() -> None:
    whole, part = maps_of(), maps_of(LayersAndHeads((1, 2), (3, 5)))
    found, others = measure_changes(whole, part), measure_changes(whole, replace(part, head_numbers=(2, 5)))
    assert [(each.layer, each.head) for each in found[::2]] == [(1, 3), (1, 5), (2, 3), (2, 5)]
    assert max(each.change for each in found) < 1e-9 < max(each.change for each in others)


@pytest.mark.parametrize("factored", [False, True])
def test_one_head_of_a_third_party_model_costs_one_head(factored: bool) -> None:
    (model,) = (find_model(ModelOptions(model=str(pretrained.minilm()), max_tokens=512)).open(()),)
    text = " ".join([TEXT] * 3)
    assert isinstance(model, Factorable)
    found = (model.attend_factored if factored else model.attention)(text, "text", LayersAndHeads((3,), (7,)))
    n_tokens, d_head = 512, 32
    assert found.n_bytes == 4 * (n_tokens * (2 * d_head + 1) if factored else n_tokens**2)
    assert (found.layer_numbers, found.head_numbers) == ((3,), (7,))
    whole = model.attention(text)
    np.testing.assert_allclose(found.weights[0, 0], whole.weights[3, 7], atol=5e-6)
    assert whole.value_norms is not None
    assert found.value_norms is not None
    np.testing.assert_allclose(found.value_norms, whole.value_norms[3:4, 7:8], rtol=1e-5)


@pytest.mark.parametrize("factored", [False, True])
def test_in_python_they_are_chosen_as_on_the_command_line(factored: bool) -> None:
    settings: dict[str, Any] = {"model": "random:8", "layers": 3, "factored": factored}
    whole = attnviz.attention(TEXT, **settings)
    part = attnviz.attention(TEXT, **settings, layer=-1, head="0-1,-1")
    assert (part.layer_numbers, part.head_numbers) == ((2,), (0, 1, 7))
    np.testing.assert_allclose(part.weights, whole.weights[2:][:, [0, 1, 7]], rtol=2e-5, atol=1e-7)
    with pytest.raises(InvalidSelection, match="no layer 3"):
        attnviz.attention(TEXT, **settings, layer=3)


def test_layers_that_share_a_module_are_still_found(tmp_path: Path) -> None:
    folder = pretrained.saved(tmp_path / "model", "albert")
    more = {"heads": None, "layers": None, "layer": "1", "head": "2", "factored": True, "max_tokens": 12}
    found, maps = drawn(tmp_path / "out", model=str(folder), **more)
    assert maps.head_numbers == (2,)
    assert {path.name for path in found.files} >= {"layer-1-head-2.png"}


def test_known_heads_are_those_that_are_here(tmp_path: Path) -> None:
    whole, part = (
        drawn(tmp_path / str(n), heads=None, layers=None, model="multi:8", factored=True, **more)[1]
        for n, more in enumerate([{}, {"head": "0,6"}])
    )
    assert part.known_heads == tuple(whole.known_heads[8 * layer + head] for layer in range(2) for head in (0, 6))
    assert any(part.known_heads)
