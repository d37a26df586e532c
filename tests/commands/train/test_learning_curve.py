"""A training run as a report, by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from attnviz.commands.train.learning_curve import learning_report
from attnviz.records.training_metrics import Epoch, History, Point
from attnviz.report import Curves, Note, Report

POINTS = (Point(0.5, 0.69, 0.5), Point(1.0, 0.5, 0.75), Point(1.5, 0.4, 0.8))
EPOCHS = (Epoch(1, 0.45, 0.78), Epoch(2, 0.35, 0.86), Epoch(3, 0.36, 0.85))
RUN = History(POINTS, EPOCHS)
WORSE = "Training is measured with dropout and label smoothing"


def shown(history: History) -> Report:
    return learning_report(history, title="learning of multi:8", subtitle="trained, seed 0", facts=(("seed", "0"),))


def curves(history: History) -> Curves:
    (picture,) = shown(history).pictures
    assert isinstance(picture, Curves)
    return picture


def notes(history: History) -> list[str]:
    return [note.text for note in shown(history).notes]


def test_training_by_points_and_held_out_by_marked_epochs() -> None:
    loss, accuracy = curves(RUN).charts
    for chart in (loss, accuracy):
        assert [(line.name, line.marked) for line in chart.lines] == [
            ("training (with dropout)", False),
            ("held out", True),
        ]
        assert [line.x for line in chart.lines] == [(0.5, 1.0, 1.5), (1.0, 2.0, 3.0)]
    assert [line.y for line in loss.lines] == [(0.69, 0.5, 0.4), (0.45, 0.35, 0.36)]
    assert [line.y for line in accuracy.lines] == [(0.5, 0.75, 0.8), (0.78, 0.86, 0.85)]


def test_the_epoch_of_the_highest_accuracy_is_marked_as_kept() -> None:
    assert [(chart.at, chart.at_label) for chart in curves(RUN).charts] == [(2.0, "kept")] * 2
    tie = History((), (Epoch(1, 0.4, 0.8), Epoch(2, 0.3, 0.8), Epoch(3, 0.2, 0.7)))
    assert [chart.at for chart in curves(tie).charts] == [2.0, 2.0]


def test_table_of_epochs() -> None:
    (table,) = shown(RUN).tables
    assert (table.name, table.role) == ("epochs", "facts")
    assert [(column.header, column.unit) for column in table.columns] == [
        ("epoch", ""),
        ("held-out loss", "nats"),
        ("held-out accuracy", ""),
        ("kept", ""),
    ]
    assert table.rows == ((1, 0.45, 0.78, "-"), (2, 0.35, 0.86, "kept"), (3, 0.36, 0.85, "-"))


def test_a_reader_is_told_that_training_looks_worse() -> None:
    (note,) = notes(RUN)
    assert note.startswith(WORSE)
    assert notes(History((), EPOCHS)) == []


def test_data_are_the_same_numbers() -> None:
    data = {
        "points": [
            {"epoch": 0.5, "loss": 0.69, "accuracy": 0.5},
            {"epoch": 1.0, "loss": 0.5, "accuracy": 0.75},
            {"epoch": 1.5, "loss": 0.4, "accuracy": 0.8},
        ],
        "epochs": [
            {"epoch": 1, "loss": 0.45, "accuracy": 0.78},
            {"epoch": 2, "loss": 0.35, "accuracy": 0.86},
            {"epoch": 3, "loss": 0.36, "accuracy": 0.85},
        ],
        "best": 2,
    }
    assert json.loads(json.dumps(shown(RUN).data, allow_nan=False)) == data


def test_a_loss_that_was_noted_with_another_is_not_drawn() -> None:
    history = replace(RUN, points=tuple(replace(point, loss=None) for point in POINTS))
    loss, accuracy = curves(history).charts
    assert [line.name for line in loss.lines] == ["held out"]
    assert [line.name for line in accuracy.lines] == ["training (with dropout)", "held out"]
    assert notes(history)[-1].startswith("Of training no loss is drawn")
    points: Any = shown(history).data["points"]
    assert [point["loss"] for point in points] == [None] * 3


def test_nothing_held_out() -> None:
    history = History(POINTS)
    for chart in curves(history).charts:
        assert [line.name for line in chart.lines] == ["training (with dropout)"]
        assert chart.at is None
    assert [*shown(history).tables] == []
    first, second = notes(history)
    assert first == "No epoch was measured on texts held out."
    assert second.startswith(WORSE)
    assert shown(history).data["epochs"] == []
    assert shown(history).data["best"] is None


def test_nothing_at_all() -> None:
    report = shown(History())
    assert [type(block) for block in report.blocks] == [Note]
    assert notes(History()) == ["No epoch was measured on texts held out."]
    assert report.data == {"points": [], "epochs": [], "best": None}


@pytest.mark.parametrize("astray", [float("nan"), float("-inf")])
def test_a_training_that_went_astray_is_drawn_as_it_is_and_is_null_in_data(astray: float) -> None:
    history = History((Point(0.5, astray, 0.5),), (Epoch(1, astray, 0.5),))
    loss, _ = curves(history).charts
    assert [str(line.y[0]) for line in loss.lines] == [str(astray)] * 2
    assert json.loads(json.dumps(shown(history).data, allow_nan=False)) == {
        "points": [{"epoch": 0.5, "loss": None, "accuracy": 0.5}],
        "epochs": [{"epoch": 1, "loss": None, "accuracy": 0.5}],
        "best": 1,
    }


def test_texts_from_outside_are_safe_to_show() -> None:
    report = learning_report(RUN, title="a\x1b[31m\u202e", subtitle="b\n", facts=(("model", "c\x07"),))
    shown_texts = report.title + report.subtitle + report.facts[0][1]
    assert shown_texts.isprintable()
    assert [shown_texts.count(letter) for letter in "\x1b\u202e\n\x07"] == [0] * 4
    assert len(learning_report(RUN, title="x" * 5000, subtitle="y" * 5000).title) == 200
