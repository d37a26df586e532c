"""Models of others in commands: drawn, compared, made in batches and made again."""

from pathlib import Path
from typing import Any

import pytest

from attnviz import store
from attnviz.commands.batch.jobs import Job
from attnviz.commands.batch.workers import run_job
from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.errors import InvalidOption, InvalidSelection
from attnviz.options import build
from attnviz.running import Result
from attnviz.specs import FigureOptions
from attnviz.views.heatmap import make_report
from tests import pretrained as made
from tests.events import report, result
from tests.made import content, heatmaps, known
from tests.starting import compare, heatmap

TEXT = "the acting saved the film but not the cat"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {kind: made.saved(folder / kind, kind) for kind in ("bert", "gpt2", "bart")}


def compared(*names: str | Path, out: Path, **settings: Any) -> Result:
    return result(compare(models=tuple(map(str, names)), out=str(out), **settings))


def test_cross_attention_is_drawn_with_both_texts(models: dict[str, Path], tmp_path: Path) -> None:
    asked = {"model": str(models["bart"]), "text": (TEXT,), "target_text": "it was good", "out": str(tmp_path)}
    drawn = result(heatmap(**asked))
    maps = store.load(tmp_path / "attention.safetensors")
    assert not maps.self_attention
    assert maps.queries.pieces[-3:] == ("it", "was", "good")
    assert maps.keys.pieces[1:3] == ("the", "acting")
    assert report(drawn).subtitle.endswith("5 queries, 11 keys")


def test_models_with_other_markers_are_compared_on_the_text_itself(models: dict[str, Path], tmp_path: Path) -> None:
    found = compared(models["bert"], "multi:2", out=tmp_path, text=(TEXT,))
    data: Any = report(found).data
    share, none = data["left_out"]
    assert none == 0
    own = store.load(tmp_path / "bert.safetensors")
    assert own.queries.pieces == tuple(TEXT.split())
    assert share == pytest.approx(known(own.sink).mean(), abs=1e-6)
    said = " ".join(note.text for note in report(found).notes)
    assert f"to them or another sink: bert {share:.1%}, multi:2 0.0%" in said
    costs = next(table for table in report(found).tables if table.name == "costs")
    of_a_layer = 4 * (128 * 128 + 128) + 2 * (2 * 48 + 1)  # q, k, v, output and a bias by distance for each of 2 heads
    assert ("of them in attention", "-", f"{2 * of_a_layer:,}") in costs.rows


def test_models_with_the_same_markers_keep_them(models: dict[str, Path], tmp_path: Path) -> None:
    found = compared(models["bert"], models["gpt2"], out=tmp_path, text=(TEXT,))
    assert report(found).data["left_out"] == []
    assert store.load(tmp_path / "bert.safetensors").queries.pieces[0] == "[CLS]"


def test_layers_are_called_by_the_models_numbers(tmp_path: Path) -> None:
    """Jamba attends in its layers 1 and 3 of 4: in pictures, files, tables, options and records."""
    settings = {"num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False}
    folder = made.saved(tmp_path / "jamba", "jamba", **settings)
    out = tmp_path / "out"
    asked: dict[str, Any] = {"model": str(folder), "text": ("the cat sat",), "out": str(out), "rollout": True}
    drawn = result(heatmap(**asked, layer=("3",), head=("0",)))
    assert {file.name for file in drawn.files} == {"layer-3-head-0.png", "rollout.png", "attention.safetensors"}
    pictures = {picture.name: picture.title for picture in report(drawn).pictures}
    assert pictures["layer-3-head-0"] == "layer 3, head 0"
    assert pictures["rollout"] == "attention rollout through layers 1 and 3 of 4 (Abnar & Zuidema 2020)"
    _, heads, *_ = report(drawn).tables
    assert [row[:2] for row in heads.rows] == [(3, 0)]
    assert report(drawn).data["layers"] == [3]
    said = [note.text for note in report(drawn).notes]
    assert any(text.startswith("In layers 0 and 2 of the model's 4 no attention") for text in said)
    assert store.load(out / "attention.safetensors").layer_numbers == (1, 3)
    with pytest.raises(InvalidSelection, match=r"no layer 2\. There are layers 1, 3"):
        [*heatmap(**asked, layer=("2",))]
    found = compared(folder, folder, out=tmp_path / "both", text=("the cat sat",), layer=("1-3",))
    assert {"maps-layer-1", "maps-layer-3"} <= {picture.name for picture in report(found).pictures}
    costs = next(table for table in report(found).tables if table.name == "costs")
    assert ("layers L", "2 (1, 3)", "2 (1, 3)") in costs.rows
    job = Job("a", "heatmap", build(HeatmapSpec, **asked, layer=("3",), head=("1",)))
    made_of = run_job(job, tmp_path / "batch")
    assert [(of.layer, of.head) for of in made_of.numbers] == [([3], [1])]


def test_what_a_model_wrote_is_drawn_and_named(tmp_path: Path) -> None:
    """Rows by what each query chose, keys by what was read; twice the same bytes, and the record draws them again."""
    of_words = {"eos_token_id": None, "vocab_size": len(made.tokenizer())}  # it writes nothing but these
    folder = made.saved(tmp_path / "gpt2", "gpt2", auto="AutoModelForCausalLM", **of_words)
    asked = {"model": str(folder), "text": ("the cat sat",), "generate": 4, "format": ("png", "html")}
    jobs = [Job(name, "heatmap", build(HeatmapSpec, **asked)) for name in ("a", "b")]
    for job in jobs:
        run_job(job, tmp_path)
    first, second = (content(tmp_path / job.name) for job in jobs)
    with pytest.raises(InvalidOption, match="--generate needs all weights, which --factored does not keep"):
        list(heatmap(**asked, factored=True, out=str(tmp_path / "c")))
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    maps = store.read_record(first["attention.safetensors"], "record")
    assert (len(maps.queries), len(maps.chosen)) == (5 + 3, 4)
    shown = make_report(maps, FigureOptions(layer=("0",), head=("0",), query="4"))
    (picture,) = heatmaps(shown)
    assert picture.title.startswith(f"what 4 “[SEP]” attends to as it chooses “{maps.chosen[0].strip()}”, heads")
    (picture,) = heatmaps(make_report(maps, FigureOptions(layer=("0",), head=("0",))))
    assert picture.rows == ("[CLS]", "the", "cat", "sat", *(f"▸ {piece.strip()}" for piece in maps.chosen))
    assert picture.columns == (*maps.keys.pieces[:5], *(f"▸ {piece.strip()}" for piece in maps.chosen[:3]))
    said = " ".join(note.text for note in shown.notes)
    assert f"The model wrote 4 tokens: “{''.join(maps.chosen).strip()}”" in said.replace("“␣", "“")
    joined = make_report(maps, FigureOptions(merge="words"))
    assert not any("▸" in name for each in heatmaps(joined) for name in each.rows)
