"""A model card and its learning curve from metrics, by hand: what it says, and that its command is the one given."""

import json
import shlex
from dataclasses import asdict, replace
from typing import Any

import pytest

from attnviz.commands.train.model_card import HELD_OUT, TRAINING, card_report, draw_learning, format_command
from attnviz.commands.train.spec import TrainSpec
from attnviz.options import list_values
from attnviz.records import training_metrics
from attnviz.records.training_metrics import Epoch, HeadMetrics, HeadScore, History, Point
from attnviz.renderers.documents.json import write_alone
from attnviz.report import Charts, Report, Table
from attnviz.table.intervals import Interval
from tests.commands.train.metrics import METRICS
from tests.made import columns_by, notes

TESTED = training_metrics.TestMetrics(
    "imdb test", 25_000, (0, 1, 2), (0.875, 0.876, 0.877), Interval(0.876, 0.8735, 0.8785)
)
THE_COMMAND = (
    "attnviz train --dataset sample --split 'train[:20]' --heads 2 --d-model 16 --learning-rate 0.005 --seed 7"
)


def rows(report: Report, name: str) -> dict[str, Any]:
    (table,) = (table for table in report.tables if table.name == name)
    assert table.role == "facts"
    return {str(row[0]): row[1] for row in table.rows}


def names(report: Report) -> list[str]:
    """The blocks in their order, notes left out."""
    return [block.name for block in report.blocks if isinstance(block, Table | Charts)]


# What it says


def test_what_is_in_it_in_which_order() -> None:
    assert names(card_report(METRICS)) == ["model", "recipe", "results", "learning-curve"]
    assert rows(card_report(METRICS), "recipe")["data"] == "sample train[:20]: 1,800 texts, and 200 held out"


def test_what_it_is_and_how_often_it_is_right() -> None:
    settings = {**METRICS.settings, "norm": "post", "keep": "head", "max_tokens": 64}
    report = card_report(replace(METRICS, settings=settings, tested=TESTED))
    assert rows(report, "model") == {
        "layers": "3, each with 2 heads of width 8 (d_model 16)",
        "built and kept": "norm post, pool mean, max_distance 48, storage int8",
        "vocabulary": "12,345 entries",
        "reads": "at most 64 tokens of a text (--keep head)",
        "labels": "negative, positive",
    }
    assert rows(report, "results") == {
        "accuracy on 200 texts held out (95 % interval 0.6858 to 0.8049)": 0.75,
        "log loss, calibrated (nats)": 0.5643,
        "calibration error (ECE)": 0.0254,
        "temperature": 0.4125,
        "labels that rounding the weights changed": "3 of 200",
        "accuracy on 25,000 texts of imdb test, 3 seeds (95 % interval 0.8735 to 0.8785)": 0.876,
    }


def test_the_data_are_the_metrics() -> None:
    document = json.loads(b"".join(write_alone(card_report(replace(METRICS, tested=TESTED)))))
    assert document == {"schema": 1, **json.loads(json.dumps(asdict(replace(METRICS, tested=TESTED))))}


# The command


def test_only_what_is_not_a_default_stands_in_the_command() -> None:
    assert format_command(METRICS) == THE_COMMAND
    plain = {name: value for name, value in list_values(TrainSpec()).items() if value is not None}
    assert format_command(replace(METRICS, settings=plain, data="imdb train")) == (
        "attnviz train --dataset imdb --split train"
    )


NAMES = ("my reviews.csv", "$(touch x).csv", "a;b|c&d.csv", "it's.csv", '"q".csv', "-rf.csv", "[/].csv", "猫.csv", "*")


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_takes_the_name_of_the_data_for_a_name(name: str) -> None:
    metrics = replace(METRICS, data=f"{name} train[5:]+test")
    program, command, *words = shlex.split(format_command(metrics))
    assert (program, command) == ("attnviz", "train")
    asked = dict(zip(words[::2], words[1::2], strict=True))
    assert len(asked) == len(words) / 2
    assert all(option.startswith("--") for option in asked)
    assert (asked["--dataset"], asked["--split"]) == (name, "train[5:]+test")
    assert rows(card_report(metrics), "recipe")["command"] == format_command(metrics)


def test_heads_are_named_beyond_chance_and_only_where_the_share_is_large() -> None:
    """One head each: a large share; .29; .31 that is not as far again beyond chance; brackets like all else."""
    scores = (
        HeadScore("next token", ((0.4, 0.02, 0.02, 0.31),), 0.1),
        HeadScore("same word", ((0.01, 0.29, 0.01, 0.01),), 0.02),
        HeadScore("punctuation", ((0.1, 0.1, 0.31, 0.1),), 0.1),
        HeadScore("own bracket", ((0.01, 0.01, 0.01, 0.5),), 0.01),
    )
    chance = {"next token": 0.2, "same word": 0.02, "punctuation": 0.21, "own bracket": 0.05}
    report = card_report(replace(METRICS, heads=HeadMetrics(200, 128, scores, 20, chance)))
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
