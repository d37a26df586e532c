"""The models that ship say of themselves what their metrics say."""

from __future__ import annotations

import pytest

from attnviz.models.built_in import SHIPPED
from attnviz.renderers.markdown import document
from attnviz.views.model_card import card_report
from attnviz.workflows.metrics import load_metrics
from attnviz.workflows.train import CARD

MODELS = sorted(folder.name for folder in SHIPPED.iterdir() if folder.is_dir())


def test_four_models_ship() -> None:
    assert MODELS == ["multi-2", "multi-4", "multi-8", "single"]


@pytest.mark.parametrize("model", MODELS)
def test_their_cards_are_what_training_would_write(model: str) -> None:
    report = card_report(load_metrics(SHIPPED / model))
    pictures = {picture.name: f"{picture.name}.png" for picture in report.pictures}
    assert (SHIPPED / model / CARD).read_text(encoding="utf-8") == document(report, pictures)
