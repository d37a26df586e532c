"""How a training run went, for a report: charts, a table and notes. Knows neither renderers nor models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isnan

from attnviz.records.training_metrics import History
from attnviz.report import Block, Chart, Charts, Column, Note, Table

TRAINING, HELD_OUT = "training (with dropout)", "held out"
STAGES = "epoch, both stages"
EPOCHS = (Column("epoch"), Column("held-out loss", "nats", 4), Column("held-out accuracy", digits=4), Column("kept"))

LineRow = tuple[float, float | None, str]  # x, y and the name of the line


def show_learning(history: History) -> Iterator[Block]:
    """Show loss and accuracy over the epochs, in training and on texts held out. What was not measured is not drawn."""
    is_mixed = bool(history.points) and all(point.loss is None for point in history.points)
    if history.words:
        yield Charts("pretraining-curve", "pretraining", _word_curves(history))
    if history.heads:
        yield Charts("heads-curve", "heads, on texts held out", tuple(_head_curves(history)))
    if history.points or history.epochs:
        yield Charts("learning-curve", "loss and accuracy", _curves(history, is_mixed))
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
    if is_mixed:
        yield Note("Of training no loss is drawn: it was noted with that of masked words, learned meanwhile.")


def _chart(title: str, y_axis: str, rows: Sequence[LineRow], at: tuple[float, str] | None = None) -> Chart:
    return Chart("line", title, "epoch", y_axis, ("x", "y", "group"), tuple(rows), at=at)


def _curves(history: History, is_mixed: bool) -> tuple[Chart, Chart]:
    kept = None if history.best is None else (float(history.best.number), "kept")
    losses = [] if is_mixed else [(p.epoch, p.loss, TRAINING) for p in history.points]
    shares = [(point.epoch, point.accuracy, TRAINING) for point in history.points]
    losses += [(float(epoch.number), epoch.loss, HELD_OUT) for epoch in history.epochs]
    shares += [(float(epoch.number), epoch.accuracy, HELD_OUT) for epoch in history.epochs]
    return (
        _chart("loss", "cross-entropy (nats)", losses, kept),
        _chart("accuracy", "share of texts labelled correctly", shares, kept),
    )


def _word_curves(history: History) -> tuple[Chart, Chart]:
    masked = [(point.epoch, point.masked_word_loss, "masked words") for point in history.words]
    replaced = [(point.epoch, point.replaced_word_loss, "replaced words") for point in history.words]
    axis = "cross-entropy (nats)"
    return _chart("masked", axis, masked), _chart("replaced", axis, replaced)


def _head_curves(history: History) -> Iterator[Chart]:
    """Draw both stages along one axis, pretraining first."""
    first = max((point.epoch for point in history.heads if point.pretraining), default=0.0)
    points = [(point.epoch + (0.0 if point.pretraining else first), point) for point in history.heads]
    names = dict.fromkeys(name for point in history.heads for name in point.best)
    shares = [(x, point.best.get(name), name) for name in names for x, point in points]
    at = (first, "labels from here") if first else None
    yield replace(_chart("largest share of any head", "share of attention", shares, at), x_axis=STAGES)
    losses = [(x, point.masked_word_loss, "masked words") for x, point in points]
    if not all(loss is None or isnan(loss) for _, loss, _ in losses):
        yield replace(_chart("masked words", "cross-entropy (nats)", losses, at), x_axis=STAGES)
