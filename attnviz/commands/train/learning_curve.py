"""How a training run went, for a report: charts, a table and notes. Knows neither renderers nor models."""

from __future__ import annotations

from collections.abc import Iterator

from attnviz.records.training_metrics import History
from attnviz.report import Block, Chart, Charts, Column, Note, Table

TRAINING, HELD_OUT = "training (with dropout)", "held out"
EPOCHS = (Column("epoch"), Column("held-out loss", "nats", 4), Column("held-out accuracy", digits=4), Column("kept"))


def show_learning(history: History) -> Iterator[Block]:
    """Show loss and accuracy over the epochs, in training and on texts held out. What was not measured is not drawn."""
    if history.points or history.epochs:
        yield Charts("learning-curve", "loss and accuracy", _curves(history))
    if history.epochs:
        marks = ("kept" if epoch == history.best else "-" for epoch in history.epochs)
        rows = ((e.number, e.loss, e.accuracy, mark) for e, mark in zip(history.epochs, marks, strict=True))
        yield Table("epochs", "epochs", "facts", EPOCHS, tuple(rows))
    else:
        yield Note("No epoch was measured on texts held out.")
    if history.points:
        yield Note(
            "Training is measured with dropout and label smoothing, so that it may look worse than the held-out texts: "
            "a higher loss, a lower accuracy."
        )


def _curves(history: History) -> tuple[Chart, Chart]:
    kept = None if history.best is None else (float(history.best.number), "kept")
    losses = [(point.epoch, point.loss, TRAINING) for point in history.points]
    shares = [(point.epoch, point.accuracy, TRAINING) for point in history.points]
    losses += [(float(epoch.number), epoch.loss, HELD_OUT) for epoch in history.epochs]
    shares += [(float(epoch.number), epoch.accuracy, HELD_OUT) for epoch in history.epochs]
    names = ("x", "y", "group")
    return (
        Chart("line", "loss", "epoch", "cross-entropy (nats)", names, tuple(losses), at=kept),
        Chart("line", "accuracy", "epoch", "share of texts labelled correctly", names, tuple(shares), at=kept),
    )
