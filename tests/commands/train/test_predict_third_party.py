"""`predict` with third-party models: labels in any order, several labels, numbers, and what is not compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attnviz.commands.train import inputs as predict_inputs
from attnviz.commands.train.spec import PredictSpec
from attnviz.models.huggingface import answering
from attnviz.options import build
from attnviz.running import Result
from tests import events as of
from tests.made import notes, table
from tests.pretrained import NEEDS, saved
from tests.starting import predict

TEXTS = (("the acting saved the film", 1), ("a cat sat on the mat", 0), ("it was not good", 0), ("xyzzy plugh", 1))
KIND = {"auto": "AutoModelForSequenceClassification", "kind": "bert"}


@pytest.fixture(autouse=True)
def _needs_transformers() -> None:
    pytest.importorskip("transformers", reason=NEEDS)


def named(*names: str) -> dict[str, Any]:
    return {"id2label": dict(enumerate(names)), "label2id": {name: place for place, name in enumerate(names)}}


def run(folder: Path, settings: dict[str, Any], texts: Any = TEXTS, **options: Any) -> Result:
    """The folder beside holds the texts."""
    data = folder.parent / "texts.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in texts))
    saved(folder, **KIND, **settings)
    spec = build(PredictSpec, model=str(folder), dataset=str(data), device="cpu", **options)
    return of.result(predict(spec))


def test_labels_in_another_order_are_found_by_their_names(tmp_path: Path) -> None:
    found = run(tmp_path / "third", named("POS", "NEG"))
    report = of.report(found)
    data: Any = report.data
    assert [each["given"] for each in data["predictions"]] == ["POS", "NEG", "NEG", "POS"]
    judged = data["predictions"][:3]
    right = [each["label"] == each["given"] for each in judged]
    assert 0 < sum(right) < 3
    assert data["accuracy"] == pytest.approx(sum(right) / 3)
    assert data["predictions"][3]["label"] is None  # of unknown words
    assert "Given labels are read by the names of the model's own: 0 as NEG, 1 as POS." in notes(report)
    assert report.subtitle.startswith("weights sha256 ")
    assert [row[1] for row in list(found.rows)[1:]] == [*(each["label"] for each in judged), None]


def test_names_that_say_no_number_are_not_judged(tmp_path: Path) -> None:
    report = of.report(run(tmp_path / "third", named("joy", "anger")))
    data: Any = report.data
    assert "accuracy" not in data
    assert [each["given"] for each in data["predictions"]] == [1, 0, 0, 1]
    assert "Given labels are not compared: the names of the model's own (joy, anger) do not say" in notes(report)


def test_a_regressor_gives_its_number_and_no_accuracy(tmp_path: Path) -> None:
    found = run(tmp_path / "third", {"num_labels": 1})
    report = of.report(found)
    data: Any = report.data
    assert "accuracy" not in data
    numbers = [each["scores"] and each["scores"]["score"] for each in data["predictions"]]
    assert len(set(numbers)) == 4
    assert numbers[3] is None  # of unknown words
    assert report.title.startswith("third scores ")
    assert [row[1] for row in table(report, "predictions").rows] == [*numbers[:3], "-"]
    header, *rows = found.rows
    assert header == ("text", "given", "tokens", "tokens_read", "score")
    assert [row[-1] for row in rows] == [*numbers[:3], None]
    assert "the model answers with a number, not with a label" in notes(report)
    assert "probability" not in notes(report)
    many = of.report(run(tmp_path / "third", {"num_labels": 1}, TEXTS * 6))
    summary = {row[0]: row[1] for row in table(many, "predictions").rows}
    assert (summary["texts"], summary["not judged"]) == (18, 6)
    assert summary["mean"] == pytest.approx(sum(numbers[:3]) / 3)
    assert summary["largest"] == pytest.approx(max(numbers[:3]), abs=1e-6)  # in another batch the last bit may differ


def test_a_text_may_have_several_labels_or_none(tmp_path: Path) -> None:
    settings = {**named("joy", "anger", "fear"), "problem_type": "multi_label_classification"}
    found = run(tmp_path / "third", settings)
    report = of.report(found)
    data: Any = report.data
    assert "accuracy" not in data
    for each in data["predictions"][:3]:
        assert each["predicted"] == [name for name, p in each["probabilities"].items() if p >= 0.5]
    assert data["predictions"][3]["predicted"] is None
    assert list(found.rows)[1][1] == "; ".join(data["predictions"][0]["predicted"])
    assert "the model gives a text any number of labels" in notes(report)
    assert "a text has those of 0.5 or more" in notes(report)
    many = of.report(run(tmp_path / "third", settings, TEXTS * 6))
    counts = {row[0]: row[1] for row in table(many, "predictions").rows}
    assert counts["joy"] == 6 * sum("joy" in each["predicted"] for each in data["predictions"][:3])
    assert counts["not judged"] == 6


def test_processes_give_the_bits_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (answering, predict_inputs):
        monkeypatch.setattr(module, "WINDOW", 5)
    one, two = (of.report(run(tmp_path / "third", named("NEG", "POS"), TEXTS * 6, workers=n)).data for n in (1, 2))
    assert one == two
