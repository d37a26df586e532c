"""`heatmap` and `render` as functions: which files, texts and heads, and what the user is told."""

from pathlib import Path

import numpy as np
import pytest

from attnviz import store
from attnviz.bounded import GIB
from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.errors import InvalidOption, InvalidSelection, TooLarge
from attnviz.measures import measure_maps
from attnviz.measures.weighing import rollout
from attnviz.models.loading import find_model
from attnviz.models.protocols import LayersAndHeads
from attnviz.models.sizes import Work
from attnviz.options import build, replace_values
from attnviz.records import AttentionMaps
from attnviz.records.factored import FactoredMaps
from attnviz.report import HeatmapGrid, Note
from attnviz.running import Result
from attnviz.specs import ModelOptions
from tests import pretrained
from tests.events import data, report, results
from tests.made import content, known, load_encoder, page_content, table
from tests.starting import heatmap, render

pytestmark = pytest.mark.usefixtures("undrawn")
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
        pytest.approx(np.mean(each.numbers[0].values["entropy"]), rel=1e-5)
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
        render(record=f"{other.figure.out}/attention.safetensors", out=spec.figure.out)


# --- Records of some layers and heads: where all have no room, and with --factored. Numbers stay the model's own ---


LONGER = "the film was not good but the acting saved the film and the cast was fine . " * 12
SIZES: dict[str, object] = {"heads": 8, "layers": 3}
N_TOKENS = 17 * 12


def room(n_maps: int, less: int = 0) -> float:
    """GiB for the weights of so many heads, not of all 24, and so many bytes less."""
    found = load_encoder(ModelOptions(heads=8, layers=3), (LONGER,))
    sizes = N_TOKENS, N_TOKENS, found.n_heads, found.n_layers, found.d_model, found.n_parameters
    return (Work(*sizes, n_maps=n_maps).needed + 1 - less) / GIB


def drawn(out: Path, **more: object) -> tuple[Result, AttentionMaps]:
    lists: dict[str, object] = {name: (more[name],) for name in ("layer", "head", "pick", "measure") if name in more}
    (found,) = results(heatmap(text=(LONGER,), out=str(out), dpi=30, **(SIZES | more | lists)))
    return found, store.load(out / store.RECORD)


def maps_of(choice: LayersAndHeads | None = None, *, factored: bool = False) -> AttentionMaps:
    model = load_encoder(ModelOptions(heads=8, layers=3), (LONGER,))
    attend = model.attend_factored if factored else model.attention
    return attend(LONGER) if choice is None else attend(LONGER, "text", choice)


@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize(("layers", "heads"), [((1,), (5,)), ((0, 2), None), (None, (0, 7))])
def test_what_is_chosen_is_as_it_is_in_the_whole(
    layers: tuple[int, ...] | None, heads: tuple[int, ...] | None, factored: bool
) -> None:
    whole, part = maps_of(), maps_of(LayersAndHeads(layers, heads), factored=factored)
    layers, heads = layers or (0, 1, 2), heads or tuple(range(8))
    assert (part.layer_numbers, part.head_numbers) == (layers, heads)
    np.testing.assert_allclose(part.weights, whole.weights[np.ix_(layers, heads)], rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(known(part.value_norms), known(whole.value_norms)[np.ix_(layers, heads)], rtol=1e-5)
    if not factored:
        assert part.n_bytes == 4 * len(layers) * len(heads) * N_TOKENS**2


def test_layers_behind_the_last_that_is_chosen_are_not_run() -> None:
    model = load_encoder(ModelOptions(heads=8, layers=3), (LONGER,))
    run: list[str] = []
    for name, module in model.encoder.named_modules():
        if name.endswith(("attention.query", "feed_forward")):
            module.register_forward_hook(lambda *_, name=name: run.append(name))
    for attend, layers in ((model.attention, (1,)), (model.attend_factored, (0, 1))):
        attend(LONGER, "text", LayersAndHeads(layers))
        assert run == ["blocks.0.attention.query", "blocks.0.feed_forward", "blocks.1.attention.query"]
        run.clear()


@pytest.mark.parametrize(("more", "form"), [({}, AttentionMaps), ({"less": 2**22}, FactoredMaps), (None, FactoredMaps)])
def test_a_number_stands_under_its_right_name(more: dict[str, int] | None, form: type, tmp_path: Path) -> None:
    where = {"factored": True} if more is None else {"max_memory": room(1, **more)}
    found, maps = drawn(tmp_path, layer="-2", head="5", format=("png", "html"), **where)
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
    assert {tuple(row[2:4]) for row in list(found.rows or ())[1:]} == {(1, 5)}
    said = " ".join(block.text for block in report(found).blocks if isinstance(block, Note))
    assert "holds only layer 1 of 3 and head 5 of 8" in said
    assert [each["maps"] for each in page_content(tmp_path / "attention.html")["pictures"]] == [[0]]
    with pytest.raises(InvalidSelection, match=r"no head 0\. There is only head 5"):
        list(render(record=str(tmp_path / store.RECORD), out=str(tmp_path / "again"), head=("0",)))


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


@pytest.mark.parametrize("factored", [False, True])
def test_one_head_of_a_third_party_model_costs_one_head(factored: bool) -> None:
    (model,) = (find_model(ModelOptions(model=str(pretrained.minilm()), max_tokens=512)).open(()),)
    text = " ".join([LONGER] * 3)
    found = (model.attend_factored if factored else model.attention)(text, "text", LayersAndHeads((3,), (7,)))
    n_tokens, d_head = 512, 32
    assert found.n_bytes == 4 * (n_tokens * (2 * d_head + 1) if factored else n_tokens**2)
    assert (found.layer_numbers, found.head_numbers) == ((3,), (7,))
    whole = model.attention(text)
    np.testing.assert_allclose(found.weights[0, 0], whole.weights[3, 7], atol=5e-6)
    np.testing.assert_allclose(known(found.value_norms), known(whole.value_norms)[3:4, 7:8], rtol=1e-5)


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
