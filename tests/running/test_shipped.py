"""The models that ship say of themselves what their metrics say."""

import re
from pathlib import Path
from typing import Any

import pytest

from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.commands.lesson.content import describe_model
from attnviz.commands.survey.spec import SurveySpec
from attnviz.commands.train.model_card import card_report
from attnviz.commands.train.outcome import CARD
from attnviz.models.built_in import SHIPPED
from attnviz.models.loading import find_model
from attnviz.options import build
from attnviz.records.head_names import NO_NAME
from attnviz.renderers.documents.markdown import document
from attnviz.report import HeatmapGrid
from attnviz.running.metrics import load_metrics
from attnviz.specs import ModelOptions
from attnviz.store import load
from attnviz.text import Document
from tests.events import report, result
from tests.made import page_content, table
from tests.starting import heatmap, survey

MODELS = sorted(folder.name for folder in SHIPPED.iterdir() if not folder.name.startswith("recall"))


def test_six_models_ship() -> None:
    assert MODELS == ["multi-2", "multi-4", "multi-8", "multi-zh", "single", "single-zh"]


@pytest.mark.parametrize("model", ["single", "multi-2", "multi-8"])
def test_a_head_has_one_name_whoever_is_asked(model: str, tmp_path: Path) -> None:
    """The card, the record, the picture, the page, the terminal, the table, the lesson, the survey and its atlas."""
    at, text = str(SHIPPED / model), "the film was not good but the acting saved it ( and the plot )"
    names = [str(row[2]) for row in table(card_report(load_metrics(SHIPPED / model)), "heads").rows]
    shown = report(
        result(heatmap(build(HeatmapSpec, model=at, text=(text,), format=("html",), out=str(tmp_path / "a"))))
    )
    (picture,) = page_content(tmp_path / "a/attention.html")["pictures"]
    first = " ".join(note.text for note in shown.notes if note.leads)
    assert [name for name in names if name != NO_NAME and name not in first] == []
    opened: Any = find_model(ModelOptions(model=at)).open(())
    layers = describe_model(opened, Document(text, "a", "a"), range(2))["layers"]
    asked = build(SurveySpec, model=at, dataset="sample", split="train[:9]", null=("random",), out=str(tmp_path / "b"))
    surveyed = report(result(survey(asked)))
    for read in (
        load(tmp_path / "a/attention.safetensors").known_heads,
        [each.note for picture in shown.pictures if isinstance(picture, HeatmapGrid) for each in picture.maps],
        picture["names"],
        [row[-3] for row in table(shown, "heads").rows],
        [each and each[0] for layer in layers for each in layer["known"]],
        [head["label"] for head in surveyed.data["heads"]],  # type: ignore[attr-defined]
        [each["names"] and each["names"][0][0] for each in surveyed.atlas["heads"]],  # type: ignore[index]
    ):
        said = [str(each or NO_NAME).partition("; here ")[0] for each in read]  # beside it what a text shows alone
        assert [re.sub(r" ([0-9.]+( %)?|\(none\))$", "", each) for each in said] == names


@pytest.mark.parametrize("model", MODELS)
def test_their_cards_are_what_training_would_write(model: str) -> None:
    report = card_report(load_metrics(SHIPPED / model))
    pictures = {picture.name: f"{picture.name}.png" for picture in report.pictures}
    assert (SHIPPED / model / CARD).read_text(encoding="utf-8") == document(report, pictures)
