"""`metrics.json`: what goes in comes out, in one fixed form, and what is not of ours is refused by name."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnviz.commands.lesson.content import describe_model
from attnviz.commands.train.model_card import card_report
from attnviz.commands.train.run import CARD
from attnviz.errors import InvalidModel
from attnviz.models.built_in import SHIPPED
from attnviz.models.loading import find_model
from attnviz.records.answers import History, Point
from attnviz.records.head_names import NO_NAME
from attnviz.renderers.documents.markdown import document
from attnviz.report import HeatmapGrid
from attnviz.running.metrics import NAME, encode_metrics, load_metrics
from attnviz.specs import ModelOptions
from attnviz.store import load
from attnviz.text import Document
from tests.events import report, result
from tests.made import DAMAGES, page_content, table
from tests.starting import heatmap, survey

METRICS = load_metrics(SHIPPED / "single")


def saved(folder: Path, **changed: object) -> Path:
    """A file of ours with other values."""
    found = json.loads(encode_metrics(METRICS))
    (folder / NAME).write_text(json.dumps({**found, **changed}), encoding="utf-8")
    return folder


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    """Byte for byte: whoever changes the form changes `SCHEMA`, and makes the files of the models that ship anew."""
    assert encode_metrics(METRICS) == (SHIPPED / "single" / NAME).read_bytes()
    untested = replace(METRICS, tested=None)
    (tmp_path / NAME).write_bytes(encode_metrics(untested))
    assert load_metrics(tmp_path) == untested


@pytest.mark.parametrize("astray", [float("nan"), float("inf")])
def test_what_json_does_not_have_is_not_written(astray: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_metrics(replace(METRICS, history=History((Point(1.0, astray, 0.5),))))


SCORE = {"name": "itself", "shares": [[0.5, 0.25]], "equal": 0.1}
HEADS = {"n_texts": 4, "n_tokens": 128, "scores": [SCORE], "n_random": 20, "chance": {"itself": 0.2}}
NOT_TOGETHER = "scores must be of the same heads and have an equal share above 0"
# Of what any file in JSON may hold in a wrong place, see tests/commands/batch/test_manifests.py: one reader reads both.
OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "a later schema": ({"schema": 7}, "schema 6 expected"),
    "an earlier schema": ({"schema": 5}, "schema 6 expected"),
    "a setting that is a list": ({"settings": {"seed": [0]}}, "seed is no"),
    "a truth for a number": ({"n_texts": True}, "n_texts is not of type int"),
    "no sizes": ({"sizes": {}}, "sizes lack d_feed_forward, d_model, n_heads, n_layers, n_words"),
    "a size in words": ({"sizes": {**METRICS.sizes, "n_heads": "two"}}, "sizes lack n_heads"),
    "scores of other heads": ({"heads": {**HEADS, "scores": [{**SCORE, "shares": [[0.5]]}, SCORE]}}, NOT_TOGETHER),
    "no scores": ({"heads": {**HEADS, "scores": []}}, NOT_TOGETHER),
    "no equal share": ({"heads": {**HEADS, "scores": [{**SCORE, "equal": 0.0}]}}, NOT_TOGETHER),
}


@pytest.mark.parametrize(("changed", "said"), OTHERS.values(), ids=OTHERS)
def test_a_file_of_another_form(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel) as refused:
        load_metrics(saved(tmp_path, **changed))
    assert refused.value.problem.startswith(f"{tmp_path / NAME} holds no attnviz metrics: ")
    assert said in refused.value.problem


@pytest.mark.parametrize("damage", [*DAMAGES.values(), Path.unlink])
def test_a_damaged_file(damage: Callable[[Path], object], tmp_path: Path) -> None:
    damage(saved(tmp_path) / NAME)
    with pytest.raises(InvalidModel, match=NAME):
        load_metrics(tmp_path)


# --- The models that ship say of themselves what their metrics say ---


MODELS = sorted(folder.name for folder in SHIPPED.iterdir() if not folder.name.startswith("recall"))


def test_six_models_ship() -> None:
    assert MODELS == ["multi-2", "multi-4", "multi-8", "multi-zh", "single", "single-zh"]


@pytest.mark.parametrize("model", ["single", "multi-8"])
def test_a_head_has_one_name_whoever_is_asked(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The card, the record, the picture, the page, the terminal, the table, the lesson, the survey and its atlas."""
    monkeypatch.setattr("attnviz.commands.survey.facts.N_RANDOM", 2)  # the names are of the model's own measuring
    at, text = str(SHIPPED / model), "the film was not good but the acting saved it ( and the plot )"
    names = [str(row[2]) for row in table(card_report(load_metrics(SHIPPED / model)), "heads").rows]
    shown = report(result(heatmap(model=at, text=(text,), format=("html",), out=str(tmp_path / "a"))))
    (picture,) = page_content(tmp_path / "a/attention.html")["pictures"]
    first = " ".join(note.text for note in shown.notes if note.leads)
    assert [name for name in names if name != NO_NAME and name not in first] == []
    opened: Any = find_model(ModelOptions(model=at)).open(())
    layers = describe_model(opened, Document(text, "a", "a"))["layers"]
    asked = {"model": at, "dataset": "sample", "split": "train[:9]", "null": ("random",), "out": str(tmp_path / "b")}
    surveyed = report(result(survey(**asked)))
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
