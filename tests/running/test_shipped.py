"""The models that ship say of themselves what their metrics say."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.commands.train.model_card import card_report
from attnviz.commands.train.outcome import CARD
from attnviz.models.built_in import SHIPPED
from attnviz.options import build
from attnviz.records.training_metrics import name_heads
from attnviz.renderers.documents.markdown import document
from attnviz.running.metrics import load_metrics
from attnviz.store import load
from tests.events import report, result
from tests.starting import heatmap

MODELS = sorted(folder.name for folder in SHIPPED.iterdir() if not folder.name.startswith("recall"))


def test_five_models_ship() -> None:
    assert MODELS == ["multi-2", "multi-4", "multi-8", "multi-zh", "single"]


@pytest.mark.parametrize("model", MODELS)
def test_their_cards_are_what_training_would_write(model: str) -> None:
    report = card_report(load_metrics(SHIPPED / model))
    pictures = {picture.name: f"{picture.name}.png" for picture in report.pictures}
    assert (SHIPPED / model / CARD).read_text(encoding="utf-8") == document(report, pictures)


def test_what_its_card_knows_of_its_heads_comes_with_every_picture(tmp_path: Path) -> None:
    events = heatmap(build(HeatmapSpec, text=("a film",), heads=8, dpi=40, out=str(tmp_path / "out")))
    notes = report(result(events)).notes
    measured = load_metrics(SHIPPED / "multi-8").heads
    assert measured is not None
    every = [name for layer in name_heads(measured) for name in layer]
    told = [found.rpartition(" ") for found in load(tmp_path / "out/attention.safetensors").known_heads]
    assert [name for name, _, _ in told] == [name.pattern for name in every]
    assert len(every) == 16
    (said,) = (note.text for note in notes if note.leads and "no single pattern" in note.text)
    named = [name.pattern for name in every if name.pattern]
    assert all(name in said for name in named)
    assert said.endswith(f"no single pattern in {len(every) - len(named)}.")
