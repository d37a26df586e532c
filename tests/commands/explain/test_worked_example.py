"""The example that ships: its facts, its numbers by hand, and what is said of the numbers that are published for it."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnviz.commands.explain.example import FILE, PublishedNumbers, example_report, load_example
from attnviz.renderers.documents.json import write_alone
from tests.attacks.endings import RunHere, worked
from tests.made import table

ALONE, FIRST, SECOND = HEADS = load_example("en")
MAX_LINES = 20  # of what is printed


def rounded(values: np.ndarray) -> list[str]:
    return [f"{value:.4f}" for value in values.tolist()]


def test_one_head_of_width_4() -> None:
    assert ALONE.head.scores.tolist() == [3, 5, 7]
    assert ALONE.head.scaled.tolist() == [1.5, 2.5, 3.5]
    assert rounded(ALONE.weights.formula) == ["0.0900", "0.2447", "0.6652"]
    assert rounded(ALONE.output.formula) == ["2.0647", "0.8453", "1.5752", "0.8453"]
    assert rounded(ALONE.weights.unscaled) == ["0.0159", "0.1173", "0.8668"]


def test_the_facts_are_those_of_the_source(shared: Path) -> None:
    source = tomllib.loads((shared / "data" / "worked-example.toml").read_text(encoding="utf-8"))
    ours = tomllib.loads(FILE.read_text(encoding="utf-8"))
    words = source["tokens"]
    assert ours["tokens"]["en"] == words
    assert ours["embeddings"] == [source["embeddings"][word] for word in words]
    theirs = (source["single"], *source["multi"])
    for their, our, head in zip(theirs, (*ours["single"], *ours["multi"]), HEADS, strict=True):
        assert our["query"] == their["query"][words[ours["query"]]]
        assert our["keys"] == [their["key"][word] for word in words]
        assert our["values"] == [their["value"][word] for word in words]
        assert head.head.scores.tolist() == their["dot_products"]


def test_every_published_number_is_judged() -> None:
    report = example_report(HEADS)
    assert table(report, "published").rows == (
        ("weights, published", "0.09, 0.24, 0.67", "0.11, 0.11, 0.78", "0.95, 0.05, 0.00"),
        ("weights, formula", "0.09, 0.24, 0.67", "0.10, 0.10, 0.81", "0.88, 0.11, 0.01"),
        ("weights, unscaled", "0.02, 0.12, 0.87", "0.05, 0.05, 0.91", "0.95, 0.05, 0.00"),
        ("weights, follow?", "yes", "neither way", "only unscaled"),
        ("output, published", "2.06, 0.85, 1.58, 0.85", "1.11, 1.11", "1.05, 0.10"),
        ("output, formula", "2.06, 0.85, 1.58, 0.85", "1.10, 1.10", "1.13, 0.22"),
        ("output, unscaled", "2.09, 0.90, 1.85, 0.90", "1.05, 1.05", "1.05, 0.10"),
        ("output, follow?", "yes", "neither way", "only unscaled"),
    )
    said = "head 0 of 1: yes; head 0 of 2: neither way; head 1 of 2: only unscaled"
    assert report.subtitle == f"Do the published weights follow? {said}"


@pytest.mark.parametrize(
    ("published", "verdict"),
    [
        ((0.67, 0.12), "yes"),
        ((0.67, 0.13), "yes"),  # half-way is rounded in either way
        ((0.67, 0.14), "neither way"),
        ((0.89, 0.06), "only unscaled"),
        ((float("nan"), 0.12), "neither way"),
    ],
)
def test_a_verdict_follows_from_the_numbers(published: tuple[float, ...], verdict: str) -> None:
    numbers = PublishedNumbers(published, np.array([2 / 3, 0.125]), np.array([16 / 18, 1 / 18]), decimals=2)
    assert numbers.verdict == verdict
    assert replace(numbers, decimals=4).verdict == "neither way"


def test_in_chinese_only_the_labels_change() -> None:
    english, chinese = example_report(HEADS), example_report(load_example("zh"))
    assert chinese.title == "Attention by hand: 猫 坐 垫子"
    assert table(chinese, "published") == table(english, "published")


def test_the_data_hold_every_number() -> None:
    document = json.loads(b"".join(write_alone(example_report(HEADS))))
    assert document["tokens"] == ["cat", "sat", "mat"]
    assert [head["judged"]["weights"]["follows"] for head in document["heads"]] == [
        "yes",
        "neither way",
        "only unscaled",
    ]
    assert document["heads"][0]["scaled"] == [1.5, 2.5, 3.5]
    assert document["heads"][2]["judged"]["output"]["published"] == [1.05, 0.1]
    assert document["heads"][2]["judged"]["output"]["unscaled"] == pytest.approx([1.052, 0.097], abs=5e-4)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_is_one_screen_and_one_picture(language: str, run_here: RunHere, tmp_path: Path) -> None:
    run = worked(run_here("explain", "--example", "--lang", language))
    lines = run.stdout.splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= 80
    assert [path.name for path in (tmp_path / "explanation").iterdir()] == ["steps-example.png"]
