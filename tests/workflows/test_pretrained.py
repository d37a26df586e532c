"""Models of others in commands: drawn, compared, made in batches and made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attnviz import store
from attnviz.options import build
from attnviz.specs.compare import CompareSpec
from attnviz.specs.heatmap import HeatmapSpec
from attnviz.workflows.compare import Outcome, compare
from attnviz.workflows.heatmap import heatmap
from attnviz.workflows.keeping import keeping
from tests import pretrained as made

pytest.importorskip("transformers", reason=made.NEEDS)

TEXT = "the acting saved the film but not the cat"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {kind: made.saved(folder / kind, kind) for kind in ("bert", "gpt2", "bart")}


def compared(*names: str | Path, out: Path, **settings: Any) -> Outcome:
    *_, last = compare(build(CompareSpec, models=tuple(map(str, names)), out=str(out), time=False, **settings))
    assert isinstance(last, Outcome)
    return last


def test_heads_of_another_model_are_drawn(models: dict[str, Path], tmp_path: Path) -> None:
    (drawn,) = heatmap(build(HeatmapSpec, model=str(models["bert"]), text=(TEXT,), out=str(tmp_path), layer=("1",)))
    assert {file.name for file in drawn.files} == {
        "overview.png",
        "attention.safetensors",
        *(f"layer-1-head-{head}.png" for head in range(4)),
    }
    assert drawn.report.title.startswith("bert attends to")
    assert "weights sha256" in drawn.report.subtitle
    assert not any("untrained" in notice for notice in drawn.notices)
    assert store.load(tmp_path / "attention.safetensors").n_layers == 2


def test_cross_attention_is_drawn_with_both_texts(models: dict[str, Path], tmp_path: Path) -> None:
    spec = build(HeatmapSpec, model=str(models["bart"]), text=(TEXT,), target_text="it was good", out=str(tmp_path))
    (drawn,) = heatmap(spec)
    maps = store.load(tmp_path / "attention.safetensors")
    assert not maps.self_attention
    assert maps.queries.pieces[-3:] == ("it", "was", "good")
    assert maps.keys.pieces[1:3] == ("the", "acting")
    assert drawn.report.subtitle.endswith("5 queries, 11 keys")


def test_models_with_other_markers_are_compared_on_the_text_itself(models: dict[str, Path], tmp_path: Path) -> None:
    found = compared(models["bert"], "multi:2", out=tmp_path, text=(TEXT,))
    data: Any = found.report.data
    share, none = data["left_out"]
    assert none == 0
    own = store.load(tmp_path / "bert.safetensors")
    assert own.queries.pieces == tuple(TEXT.split())
    assert own.sink is not None
    assert share == pytest.approx(own.sink.mean(), abs=1e-6)
    said = " ".join(note.text for note in found.report.notes)
    assert f"markers or another sink: bert {share:.1%}, multi:2 0.0%" in said
    costs = next(table for table in found.report.tables if table.name == "costs")
    assert ("of them in attention", "-", "4,224") in costs.rows


def test_models_with_the_same_markers_keep_them(models: dict[str, Path], tmp_path: Path) -> None:
    found = compared(models["bert"], models["gpt2"], out=tmp_path, text=(TEXT,))
    assert found.report.data["left_out"] == []
    assert store.load(tmp_path / "bert.safetensors").queries.pieces[0] == "[CLS]"


def test_a_model_is_loaded_once_in_a_batch(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnviz.models import pretrained

    loaded: list[Path] = []
    load = pretrained.load_pretrained

    def counting(files: Any, *rest: Any) -> Any:
        loaded.append(files.folder)
        return load(files, *rest)

    monkeypatch.setattr(pretrained, "load_pretrained", counting)
    with keeping():
        for text in (TEXT, "a cat"):
            list(heatmap(build(HeatmapSpec, model=str(models["bert"]), text=(text,), out=str(tmp_path))))
    assert loaded == [models["bert"]]
