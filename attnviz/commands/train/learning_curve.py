"""How a training run went, for a report: charts, a table and notes. Knows neither renderers nor models."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan, nan

from attnviz.records.training_metrics import History
from attnviz.report import Block, Column, Curve, Curves, Line, Note, Table

TRAINING, HELD_OUT = "training (with dropout)", "held out"
EPOCHS = (Column("epoch"), Column("held-out loss", "nats", 4), Column("held-out accuracy", digits=4), Column("kept"))


def show_learning(history: History) -> Iterator[Block]:
    """Show loss and accuracy over the epochs, in training and on texts held out. What was not measured is not drawn."""
    is_mixed = bool(history.points) and all(point.loss is None for point in history.points)
    if history.words:
        yield Curves("pretraining-curve", "pretraining", _word_curves(history))
    if history.heads:
        yield Curves("heads-curve", "heads, on texts held out", tuple(_head_curves(history)))
    if history.points or history.epochs:
        yield Curves("learning-curve", "loss and accuracy", _curves(history, is_mixed))
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


def _curves(history: History, is_mixed: bool) -> tuple[Curve, Curve]:
    kept = None if history.best is None else float(history.best.number)
    known = [nan if point.loss is None else point.loss for point in history.points]
    losses = _lines(history, [] if is_mixed else known, [epoch.loss for epoch in history.epochs])
    shares = _lines(history, [point.accuracy for point in history.points], [epoch.accuracy for epoch in history.epochs])
    return (
        Curve("loss", "epoch", "cross-entropy (nats)", losses, kept, "kept"),
        Curve("accuracy", "epoch", "share of texts labelled correctly", shares, kept, "kept"),
    )


def _word_curves(history: History) -> tuple[Curve, Curve]:
    at = tuple(point.epoch for point in history.words)
    masked = Line("masked words", at, tuple(point.masked_word_loss for point in history.words))
    replaced = Line("replaced words", at, tuple(point.replaced_word_loss for point in history.words))
    return (
        Curve("masked", "epoch", "cross-entropy (nats)", (masked,)),
        Curve("replaced", "epoch", "cross-entropy (nats)", (replaced,)),
    )


def _head_curves(history: History) -> Iterator[Curve]:
    """Draw both stages along one axis, pretraining first."""
    first = max((point.epoch for point in history.heads if point.pretraining), default=0.0)
    at = tuple(point.epoch + (0.0 if point.pretraining else first) for point in history.heads)
    names = dict.fromkeys(name for point in history.heads for name in point.best)
    shares = tuple(Line(name, at, tuple(point.best.get(name, nan) for point in history.heads)) for name in names)
    ends = (first, "labels from here") if first else (None, "")
    yield Curve("largest share of any head", "epoch, both stages", "share of attention", shares, *ends)
    losses = tuple(nan if point.masked_word_loss is None else point.masked_word_loss for point in history.heads)
    if not all(map(isnan, losses)):
        line = Line("masked words", at, losses)
        yield Curve("masked words", "epoch, both stages", "cross-entropy (nats)", (line,), *ends)


def _lines(history: History, training: list[float], held_out: list[float]) -> tuple[Line, ...]:
    lines = (
        Line(TRAINING, tuple(point.epoch for point in history.points)[: len(training)], tuple(training)),
        Line(HELD_OUT, tuple(float(epoch.number) for epoch in history.epochs), tuple(held_out), marked=True),
    )
    return tuple(line for line in lines if line.x)
