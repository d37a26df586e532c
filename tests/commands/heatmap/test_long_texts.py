"""Texts whose weights are too many: q and k, blocks of cells, exact tiles. Few tokens stand for many here."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from attnviz import store
from attnviz.bounded import GIB
from attnviz.commands.heatmap import run as heatmap_run
from attnviz.errors import InvalidOption, TooLarge
from attnviz.measures import rows, shown
from attnviz.models.sizes import Work
from attnviz.records import AttentionMaps, factored, walk
from attnviz.records.factored import FactoredMaps
from attnviz.report import Heatmap, Table
from attnviz.running import Events, Progress, Result
from attnviz.specs import FigureOptions, ModelOptions
from attnviz.views.heatmap import make_report
from tests.events import report, results
from tests.made import load_encoder, random_maps, unpack_page
from tests.starting import heatmap, render

TEXT = "the film was not good but the acting saved the film and the cast was fine . " * 3


def ask(out: Path, **more: object) -> Events:
    events: Events = heatmap(**{"text": (TEXT,), "heads": 2, "out": str(out), "dpi": 50, **more})
    return events


def drawn(events: Events) -> Result:
    (found,) = results(events)
    return found


def pictures(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.png"))}


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """51 tokens are too many: blocks of 7."""
    for module in (rows, heatmap_run):
        monkeypatch.setattr(module, "MAX_DRAWN_WEIGHTS", 1_000)
    monkeypatch.setattr(rows, "MAX_SIDE", 8)


def blocks(maps: AttentionMaps, layer: int, head: int, size: int) -> np.ndarray:
    """The mean of the allowed weights of each block, one after the other."""
    n_rows, n_columns = (-(-len(tokens) // size) for tokens in (maps.queries, maps.keys))
    mean = np.zeros((n_rows, n_columns))
    for row, column in np.ndindex(n_rows, n_columns):
        part = np.s_[row * size : (row + 1) * size, column * size : (column + 1) * size]
        weights, allowed = maps.weights[layer, head][part], maps.attendable[layer][part]
        mean[row, column] = weights.sum() / max(1, allowed.sum())
    return mean


@pytest.mark.parametrize("causal", [False, True])
def test_cells_are_the_mean_of_their_block(long: None, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "CELLS_AT_ONCE", 200)
    monkeypatch.setattr(walk, "MIN_ROWS", 5)  # no multiple of the blocks
    maps = random_maps([f"t{i}" for i in range(50)], n_heads=2, causal=causal)
    found = make_report(maps, FigureOptions())
    heads = [block for block in found.blocks if isinstance(block, Heatmap)]
    assert [head.block for head in heads] == [7, 7]
    for number, head in enumerate(heads):
        mean = blocks(maps, 0, number, 7)
        assert head.values == pytest.approx(mean, rel=1e-5)
        assert head.allowed.tolist() == (mean > 0).tolist()
        assert head.row_positions == tuple(range(0, 50, 7))
        assert all(start <= key < start + 7 for start, key in zip(range(0, 50, 7), head.column_positions, strict=True))
    assert found.data["pooled"]["size"] == 7  # type: ignore[index]
    assert "weights" not in found.data


def room_for_tokens(model: str) -> float:
    """GiB that hold the model and what each token takes, and nothing for weights."""
    found = load_encoder(ModelOptions(model=model), (TEXT,))
    n_tokens, _ = found.map_size(TEXT)
    work = Work(n_tokens, n_tokens, found.n_heads, found.n_layers, found.d_model, found.n_parameters)
    return (work.fixed + work.per_token * n_tokens + 1) / GIB


def test_where_weights_have_no_room_q_and_k_are_kept_and_the_numbers_stay(tmp_path: Path) -> None:
    dense = drawn(ask(tmp_path / "dense"))
    chosen = drawn(ask(tmp_path / "chosen", factored=True))
    by_itself = drawn(ask(tmp_path / "by-itself", max_memory=room_for_tokens("multi:2")))
    assert isinstance(store.load(tmp_path / "chosen" / store.RECORD), FactoredMaps)
    assert not any("no room" in notice for notice in chosen.notices)
    assert any("no room in --max-memory" in notice for notice in by_itself.notices)
    records = [(tmp_path / name / store.RECORD).read_bytes() for name in ("chosen", "by-itself")]
    assert records[0] == records[1]
    assert pictures(tmp_path / "chosen") == pictures(tmp_path / "by-itself")
    tables = [next(b for b in report(r).blocks if isinstance(b, Table) and b.role == "heads") for r in (dense, chosen)]
    for one, other in zip(tables[0].rows, tables[1].rows, strict=True):
        assert [each for each in other if not isinstance(each, float)] == [e for e in one if not isinstance(e, float)]
        assert [each for each in other if isinstance(each, float)] == pytest.approx(
            [each for each in one if isinstance(each, float)], abs=1e-5
        )


def test_where_weights_are_too_many_to_be_drawn_q_and_k_are_kept(long: None, tmp_path: Path) -> None:
    """Whoever wants all weights says so, or asks for what needs them."""
    by_itself, dense = drawn(ask(tmp_path / "by-itself")), drawn(ask(tmp_path / "dense", factored=False))
    told = [
        sum("--no-factored keeps all weights" in notice for notice in found.notices) for found in (by_itself, dense)
    ]
    assert told == [1, 0]
    kept = [store.load(tmp_path / name / store.RECORD) for name in ("by-itself", "dense")]
    assert [type(maps) for maps in kept] == [FactoredMaps, AttentionMaps]
    assert kept[0].weights == pytest.approx(kept[1].weights, rel=1e-5)
    (numbers,), (exactly,) = (found.numbers for found in (by_itself, dense))
    assert numbers.values["entropy"] == pytest.approx(exactly.values["entropy"], abs=1e-5)
    drawn(ask(tmp_path / "one", head=("1",)))
    assert store.load(tmp_path / "one" / store.RECORD).head_numbers == (1,)
    for asked in ({"rollout": True}, {"merge": "words"}, {"model": "dot", "heads": None}):
        found = drawn(ask(tmp_path / "whole", **asked))
        assert not any("--no-factored" in notice for notice in found.notices)
        assert not isinstance(store.load(tmp_path / "whole" / store.RECORD), FactoredMaps)


def test_a_model_without_q_and_k_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="dot has no q and k"):
        drawn(ask(tmp_path / "out", model="dot", heads=None, factored=True))
    with pytest.raises(TooLarge, match=r"allowed are .*; dot has no q and k"):
        drawn(ask(tmp_path / "out", model="dot", heads=None, max_memory=room_for_tokens("dot")))
    assert not list(tmp_path.glob("out/*.png"))


@pytest.mark.parametrize(
    ("more", "said"),
    [({"rollout": True}, "--rollout"), ({"merge": "words"}, "--merge")],
)
def test_what_needs_all_weights_is_refused(more: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=f"{said} needs all weights"):
        drawn(ask(tmp_path / "out", factored=True, max_tokens=60, **more))
    with pytest.raises(TooLarge, match="2 layers need"):
        drawn(ask(tmp_path / "out", max_tokens=60, max_memory=room_for_tokens("multi:2"), **more))


def test_an_exact_tile_is_cut_out_of_a_record_of_q_and_k(long: None, tmp_path: Path) -> None:
    drawn(ask(tmp_path / "whole", factored=True))
    record = tmp_path / "whole" / store.RECORD
    tile = drawn(render(record=str(record), query="30:40", key="2:12", out=str(tmp_path / "tile"), dpi=50))
    maps = store.load(record)
    heads = [block for block in report(tile).blocks if isinstance(block, Heatmap)]
    assert len(heads) == 4
    for number, head in enumerate(heads):
        expected = maps.weights[number // 2, number % 2, 30:40, 2:12]
        assert head.values == pytest.approx(expected, rel=1e-5)
        assert (head.row_positions, head.column_positions) == (tuple(range(30, 40)), tuple(range(2, 12)))
        assert head.equal_share == pytest.approx(1 / len(maps.keys))
    assert "41 queries, 41 keys hidden" in report(tile).subtitle


def test_one_head_is_drawn_where_all_together_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weight for weight, and a tile of it: the other's are not worked out."""
    drawn(ask(tmp_path, factored=True))
    maps = store.load(tmp_path / store.RECORD)
    expected = maps.rows(0, 1, slice(None)).copy()
    monkeypatch.setattr(factored, "MAX_CELLS", 2 * len(maps.queries) * len(maps.keys) - 1)
    for more in ({}, {"query": "10:20", "key": "5:30"}):
        one = render(record=str(tmp_path / store.RECORD), out=str(tmp_path / "one"), head=("1",), **more)
        told = report(drawn(one)).data
        assert np.array_equal(np.asarray(told["weights"])[0, 0], expected)
        assert np.asarray(told["attendable"]).all()
    with pytest.raises(TooLarge, match="weights are more than"):
        _ = store.load(tmp_path / store.RECORD).weights


def test_what_would_be_too_much_is_refused_with_what_works(long: None, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="too many to be drawn without the others") as error:
        drawn(ask(tmp_path / "out", factored=True, drop_first=True))
    assert "--tokens" in error.value.hint
    drawn(ask(tmp_path / "whole", factored=True))
    record = str(tmp_path / "whole" / store.RECORD)
    with pytest.raises(TooLarge, match="and pictures of 4 heads, need"):
        drawn(render(record=record, max_memory=0.4, out=str(tmp_path / "again")))


def test_a_long_text_is_a_page_and_says_what_its_cells_are(long: None, tmp_path: Path) -> None:
    found = drawn(ask(tmp_path / "out", factored=True, format=("html", "png", "svg")))
    assert "for 7 rows and 7 columns" in unpack_page(tmp_path / "out" / "attention.html")["content"]
    assert b"mean of 7" in b"".join((tmp_path / "out").joinpath("layer-0-head-0.svg").read_bytes().split(b"\n"))
    assert {path.name for path in found.files} >= {"overview.png", "layer-0-head-1.png", "attention.html"}
    with safe_open(tmp_path / "out" / store.RECORD, "np") as record:
        assert "weights" not in record.keys()  # noqa: SIM118


def test_each_layer_of_a_long_text_is_a_step(long: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal beside the bar; a text that is drawn at once has none."""
    walked: list[int] = []

    def noting(maps: AttentionMaps, layer: int, **how: bool) -> object:
        walked.append(layer)
        return rows.compute_statistics(maps, layer, **how)

    monkeypatch.setattr(shown, "compute_statistics", noting)
    events: Any = ask(tmp_path, layers=2)
    _, _, second, third = (next(events) for _ in range(4))
    assert (second.done, second.total, second.label, third.label) == (0, 2, "weights of layer 0", "weights of layer 1")
    assert walked == [0]
    short = ask(tmp_path / "short", text=("the film",))
    assert {(each.what, each.log) for each in short if isinstance(each, Progress)} == {
        ("pictures", ()),
        ("texts", ()),
    }
