"""A model card from metrics, by hand: what it says, and that its command is the one that was given."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from attnviz.commands.train.model_card import card_report, format_command
from attnviz.commands.train.spec import TrainSpec
from attnviz.numbers.intervals import Interval
from attnviz.options import list_values
from attnviz.records import training_metrics
from attnviz.records.training_metrics import AttentionCost, HeadMetrics, HeadScore, History
from attnviz.renderers.documents.json import write_alone
from attnviz.report import Charts, Report, Table
from tests.commands.train.metrics import METRICS
from tests.made import HISTORY, notes

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


def asked(words: list[str]) -> dict[str, str]:
    """Options and their values."""
    assert words[:2] == ["attnviz", "train"]
    assert all(option.startswith("--") for option in words[2::2])
    assert len(set(words[2::2])) == len(words[2::2])
    return dict(zip(words[2::2], words[3::2], strict=True))


# What it says


def test_title_and_subtitle() -> None:
    report = card_report(METRICS)
    assert report.title == "Transformer encoder with 2 heads, trained on sample train[:20]"
    assert report.subtitle == "weights sha256 feedfeed… · 208,258 parameters"
    assert dict(report.facts) == {
        "weights sha256": "feed" * 16,
        "data": "sample train[:20]",
        "command": THE_COMMAND,
    }


def test_what_is_in_it_in_which_order() -> None:
    everything = replace(METRICS, tested=TESTED)
    assert names(card_report(everything)) == ["model", "recipe", "held-out", "tested", "learning-curve", "epochs"]
    assert names(card_report(METRICS)) == ["model", "recipe", "held-out", "learning-curve", "epochs"]
    bare = replace(METRICS, held_out=None, history=History(HISTORY.points))
    assert names(card_report(bare)) == ["model", "recipe", "learning-curve"]
    assert names(card_report(replace(bare, history=History()))) == ["model", "recipe"]


def test_the_model() -> None:
    assert rows(card_report(METRICS), "model") == {
        "layers": "3, each with 2 heads of width 8 (d_model 16)",
        "feed-forward width": "64",
        "layer norm": "before each sublayer",
        "classified from": "the mean over the tokens",
        "positions": "a bias per head on each score, by the distance of a key up to 48 either way",
        "vocabulary": "12,345 entries",
        "parameters": "208,258",
        "reads": "at most 512 tokens of a text, half from the beginning and half from the end",
        "labels": "negative, positive",
        "stored as": "int8 embeddings, all else float32",
    }


@pytest.mark.parametrize(
    ("setting", "value", "row", "said"),
    [
        ("norm", "post", "layer norm", "after each sublayer"),
        ("pool", "cls", "classified from", "the state of [CLS]"),
        ("pool", "attention", "classified from", "a learned weighted mean"),
        ("keep", "head", "reads", "at most the first 512 tokens of a text"),
        ("max_tokens", 64, "reads", "at most 64 tokens of a text, half from the beginning and half from the end"),
        ("storage", "float16", "stored as", "float16 embeddings, all else float32"),
    ],
)
def test_the_model_in_other_forms(setting: str, value: str | int, row: str, said: str) -> None:
    assert rows(card_report(replace(METRICS, settings={**METRICS.settings, setting: value})), "model")[row] == said


def test_how_it_was_made() -> None:
    assert rows(card_report(METRICS), "recipe") == {
        "data": "sample train[:20]: 1,800 texts, and 200 held out",
        "sha256 of the data": "da" * 32,
        "command": THE_COMMAND,
        "seed": "7",
        "versions": "attnviz 0.1.0, torch 2.13.0",
        "computed on": "cpu, 1 thread",
    }
    unmeasured = card_report(replace(METRICS, held_out=None))
    assert rows(unmeasured, "recipe")["data"] == "sample train[:20]: 1,800 texts, and 0 held out"


def test_accuracy_stands_beside_its_interval() -> None:
    assert rows(card_report(METRICS), "held-out") == {
        "texts": "200",
        "accuracy (95 % interval over texts 0.6858 to 0.8049)": 0.75,
        "log loss, calibrated (nats)": 0.5643,
        "calibration error (ECE)": 0.0254,
        "temperature": 0.4125,
        "labels that rounding the weights changed": "3 of 200",
    }


def test_every_seed_that_was_tested_is_told() -> None:
    assert rows(card_report(replace(METRICS, tested=TESTED)), "tested") == {
        "texts": "imdb test: 25,000",
        "accuracy with seed 0 (95 % interval over texts 0.8708 to 0.8790)": 0.875,
        "accuracy with seed 1 (95 % interval over texts 0.8719 to 0.8800)": 0.876,
        "accuracy with seed 2 (95 % interval over texts 0.8729 to 0.8810)": 0.877,
        "mean on these texts (95 % interval over seeds of training 0.8735 to 0.8785, Student's t)": 0.876,
    }


def test_limits() -> None:
    """What weights are not, what the model has seen, and which numbers were chosen on the same texts."""
    said = notes(card_report(METRICS))
    assert "not why the model decided" in said
    assert "learned from sample train[:20] and from nothing else" in said
    assert "Epoch and temperature were chosen on them." in said
    assert "with as many threads (OMP_NUM_THREADS)" in said

    said = notes(card_report(replace(METRICS, held_out=None)))
    assert "chosen on them" not in said


def test_what_attention_is_worth_stands_on_the_card() -> None:
    costs = (
        AttentionCost("every key alike", Interval(0.09, 0.07, 0.11), Interval(0.085, 0.06, 0.11), 1e-9),
        AttentionCost("layer 0, head 3: every key alike", Interval(0.004, -0.001, 0.009), None, 0.4),
    )
    tested = replace(TESTED, costs=costs, n_cost_texts=3000)
    report = card_report(replace(METRICS, tested=tested))
    (table,) = (table for table in report.tables if table.name == "costs")
    assert table.rows == (
        ("every key alike", 0.09, "0.0700", "0.1100", "1e-09", "0.0850 (0.0600 to 0.1100)"),
        ("layer 0, head 3: every key alike", 0.004, "-0.0010", "0.0090", "0.4", "-"),
    )
    assert any("on 3,000 texts that were not learned from" in note for note in notes(report).splitlines())
    assert "costs" not in names(card_report(METRICS))


@pytest.mark.parametrize(("device", "bits"), [("cpu, 2 threads", True), ("cuda:0, NVIDIA T4", False), ("mps", False)])
def test_bits_are_promised_of_a_processor_only(device: str, bits: bool) -> None:
    said = notes(card_report(replace(METRICS, computed_on=device)))
    assert ("repeats the weights bit by bit with" in said) is bits
    assert ("adds gradients in no fixed order" in said) is not bits


def test_the_data_are_the_metrics() -> None:
    document = json.loads(b"".join(write_alone(card_report(replace(METRICS, tested=TESTED)))))
    assert document == {"schema": 1, **json.loads(json.dumps(replace(METRICS, tested=TESTED).to_dict()))}


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
    words = asked(shlex.split(format_command(metrics)))
    assert (words["--dataset"], words["--split"]) == (name, "train[5:]+test")
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
