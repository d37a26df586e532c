"""A model card and its learning curve from metrics, by hand.

What a card says is held by the cards of the models that ship, in tests/running/test_metrics.py; that its command makes
the model again, in test_process.py.
"""

from dataclasses import replace

from attnviz.commands.train.model_card import HELD_OUT, TRAINING, card_report, draw_learning
from attnviz.models.built_in import SHIPPED
from attnviz.records.answers import Epoch, HeadMetrics, HeadScore, History, Point
from attnviz.running.metrics import load_metrics
from tests.made import columns_by, notes


def test_heads_are_named_beyond_chance_and_only_where_the_share_is_large() -> None:
    """One head each: a large share; .29; .31 that is not as far again beyond chance; brackets like all else."""
    scores = (
        HeadScore("next token", ((0.4, 0.02, 0.02, 0.31),), 0.1),
        HeadScore("same word", ((0.01, 0.29, 0.01, 0.01),), 0.02),
        HeadScore("punctuation", ((0.1, 0.1, 0.31, 0.1),), 0.1),
        HeadScore("own bracket", ((0.01, 0.01, 0.01, 0.5),), 0.01),
    )
    chance = {"next token": 0.2, "same word": 0.02, "punctuation": 0.21, "own bracket": 0.05}
    report = card_report(replace(load_metrics(SHIPPED / "single"), heads=HeadMetrics(200, 128, scores, 20, chance)))
    (table,) = (table for table in report.tables if table.name == "heads")
    assert table.rows == (
        (0, 0, "next token", 0.4),
        (0, 1, "no single pattern", "-"),
        (0, 2, "no single pattern", "-"),
        (0, 3, "own bracket", 0.5),
    )
    assert "of 20 encoders with random weights" in notes(report)


# --- How a training run went, by hand ---


POINTS = (Point(0.5, 0.69, 0.5), Point(1.0, 0.5, 0.75), Point(1.5, 0.4, 0.8))
EPOCHS = (Epoch(1, 0.45, 0.78), Epoch(2, 0.35, 0.86), Epoch(3, 0.36, 0.85))
RUN = History(POINTS, EPOCHS)


def test_training_by_points_and_held_out_by_epochs() -> None:
    loss, accuracy = draw_learning(RUN).charts
    at = (0.5, 1.0, 1.5), (1.0, 2.0, 3.0)
    for chart, *ys in (
        (loss, (0.69, 0.5, 0.4), (0.45, 0.35, 0.36)),
        (accuracy, (0.5, 0.75, 0.8), (0.78, 0.86, 0.85)),
    ):
        lines = columns_by(chart, "group", "x", "y")
        assert [*lines] == [TRAINING, HELD_OUT]
        assert [*lines.values()] == [[x, y] for x, y in zip(at, ys, strict=True)]


def test_the_epoch_of_the_highest_accuracy_is_marked_as_kept() -> None:
    assert [chart.at for chart in draw_learning(RUN).charts] == [(2.0, "kept")] * 2
    tie = History((), (Epoch(1, 0.4, 0.8), Epoch(2, 0.3, 0.8), Epoch(3, 0.2, 0.7)))
    assert [chart.at for chart in draw_learning(tie).charts] == [(2.0, "kept")] * 2
