"""How a training run went, by hand."""

from __future__ import annotations

from attnviz.commands.train.model_card import HELD_OUT, TRAINING, show_learning
from attnviz.records.training_metrics import Epoch, History, Point
from attnviz.report import Charts, Report
from tests.made import columns_by

POINTS = (Point(0.5, 0.69, 0.5), Point(1.0, 0.5, 0.75), Point(1.5, 0.4, 0.8))
EPOCHS = (Epoch(1, 0.45, 0.78), Epoch(2, 0.35, 0.86), Epoch(3, 0.36, 0.85))
RUN = History(POINTS, EPOCHS)
WORSE = "Training is measured with dropout and label smoothing"


def shown(history: History) -> Report:
    return Report("", "", tuple(show_learning(history)))


def curves(history: History) -> Charts:
    (picture,) = shown(history).pictures
    assert isinstance(picture, Charts)
    return picture


def notes(history: History) -> list[str]:
    return [note.text for note in shown(history).notes]


def test_training_by_points_and_held_out_by_epochs() -> None:
    loss, accuracy = curves(RUN).charts
    at = (0.5, 1.0, 1.5), (1.0, 2.0, 3.0)
    for chart, *ys in (
        (loss, (0.69, 0.5, 0.4), (0.45, 0.35, 0.36)),
        (accuracy, (0.5, 0.75, 0.8), (0.78, 0.86, 0.85)),
    ):
        lines = columns_by(chart, "group", "x", "y")
        assert [*lines] == [TRAINING, HELD_OUT]
        assert [*lines.values()] == [[x, y] for x, y in zip(at, ys, strict=True)]


def test_the_epoch_of_the_highest_accuracy_is_marked_as_kept() -> None:
    assert [chart.at for chart in curves(RUN).charts] == [(2.0, "kept")] * 2
    tie = History((), (Epoch(1, 0.4, 0.8), Epoch(2, 0.3, 0.8), Epoch(3, 0.2, 0.7)))
    assert [chart.at for chart in curves(tie).charts] == [(2.0, "kept")] * 2


def test_nothing_held_out() -> None:
    history = History(POINTS)
    for chart in curves(history).charts:
        assert {*chart.column("group")} == {TRAINING}
        assert chart.at is None
    assert [*shown(history).tables] == []
    first, second = notes(history)
    assert first == "No epoch was measured on texts held out."
    assert second.startswith(WORSE)
