"""The example that ships: its facts, its numbers by hand, and what is said of the numbers that circulate for it."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnviz.commands.explain.example import FILE, load_examples
from attnviz.commands.explain.example_report import example_report
from attnviz.records.attention_trace import Example
from attnviz.renderers.documents.json import write_alone
from attnviz.report import Formula
from tests.made import notes, table

SINGLE, MULTI = load_examples("en")


def rounded(values: np.ndarray) -> list[str]:
    return [f"{value:.4f}" for value in values.tolist()]


def test_one_head_of_width_4() -> None:
    (head,) = SINGLE.trace.heads
    assert head.scores.tolist() == [3, 5, 7]
    assert head.scaled.tolist() == [1.5, 2.5, 3.5]
    assert rounded(head.weights) == ["0.0900", "0.2447", "0.6652"]
    assert rounded(SINGLE.trace.output) == ["2.0647", "0.8453", "1.5752", "0.8453"]


def test_two_heads_of_width_2() -> None:
    first, second = MULTI.trace.heads
    assert first.scores.tolist() == [2, 2, 5]
    assert second.scores.tolist() == [6, 3, 0]
    assert rounded(first.weights) == ["0.0967", "0.0967", "0.8066"]
    assert rounded(second.weights) == ["0.8816", "0.1057", "0.0127"]
    assert rounded(MULTI.trace.output) == ["1.0967", "1.0967", "1.1310", "0.2240"]


def test_the_facts_are_those_of_the_source(shared: Path) -> None:
    source = tomllib.loads((shared / "data" / "worked-example.toml").read_text(encoding="utf-8"))
    ours = tomllib.loads(FILE.read_text(encoding="utf-8"))
    words = source["tokens"]
    assert ours["tokens"]["en"] == words
    assert ours["embeddings"] == [source["embeddings"][word] for word in words]
    for theirs, our in zip((source["single"], *source["multi"]), (*ours["single"], *ours["multi"]), strict=True):
        assert our["query"] == theirs["query"][words[ours["query"]]]
        assert our["keys"] == [theirs["key"][word] for word in words]
        assert our["values"] == [theirs["value"][word] for word in words]
        assert our["scores"] == theirs["dot_products"]


def test_what_is_said_of_each_number_in_circulation() -> None:
    report = example_report((SINGLE, MULTI), 10)
    assert table(report, "circulating").rows == (
        ("0 of 1", "0.09, 0.24, 0.67", "0.09, 0.24, 0.67", "0.02, 0.12, 0.87", "yes"),
        ("0 of 2", "0.11, 0.11, 0.78", "0.10, 0.10, 0.81", "0.05, 0.05, 0.91", "neither way"),
        ("1 of 2", "0.95, 0.05, 0.00", "0.88, 0.11, 0.01", "0.95, 0.05, 0.00", "only unscaled"),
    )
    assert table(report, "circulating-outputs").rows == (
        ("0 of 1", "2.06, 0.85, 1.58, 0.85", "2.06, 0.85, 1.58, 0.85", "2.06, 0.85, 1.58, 0.85", "yes"),
        ("0 of 2", "1.11, 1.11", "1.11, 1.11", "1.10, 1.10", "no"),
        ("1 of 2", "1.05, 0.10", "1.05, 0.10", "1.13, 0.22", "no"),
    )
    said = notes(report)
    assert "0.09, 0.24, 0.67 follows from the formula, rounded to 2 digits." in said
    assert "0.11, 0.11, 0.78 does not follow from the formula, and without the division by √d_head neither." in said
    assert "0.95, 0.05, 0.00 does not follow from the formula. It is what comes out when the division" in said
    assert (
        "As softmax(3, 5, 7), the dot products not divided by √d_head, it does not: that is 0.02, 0.12, 0.87." in said
    )
    assert "The output in circulation, 2.06, 0.85, 1.58, 0.85, follows." in said
    assert "The output in circulation, 1.11, 1.11, does not follow: the formula gives 1.10, 1.10." in said
    assert "The output in circulation, 1.05, 0.10, does not follow: the formula gives 1.13, 0.22." in said
    assert (
        "The concatenation in circulation, 1.11, 1.11, 1.05, 0.10, does not follow: the formula gives 1.10, 1.10, "
        "1.13, 0.22." in said
    )
    claimed = [[f"{x:.4f}" for x in row[1:] if isinstance(x, float)] for row in table(report, "2-heads-1-claimed").rows]
    assert claimed == [
        ["0.9500", "0.8816", "0.9503"],
        ["0.0500", "0.1057", "0.0473"],
        ["0.0000", "0.0127", "0.0024"],
    ]


def test_the_verdicts_are_computed() -> None:
    """Other numbers, other verdicts."""

    def said(part: Example, **claim: object) -> str:
        return notes(example_report((replace(part, claims=(replace(part.claims[0], **claim), *part.claims[1:])),), 10))  # type: ignore[arg-type]

    assert "0.10, 0.10, 0.81 follows from the formula" in said(MULTI, weights=(0.10, 0.10, 0.81))
    assert "It is what comes out when the division" in said(MULTI, weights=(0.05, 0.05, 0.91))
    assert "0.090, 0.240, 0.670 does not follow" in said(SINGLE, decimals=3)
    assert "1.00, 0.85, 1.58, 0.85, does not follow: the formula gives 2.06, 0.85, 1.58, 0.85." in said(
        SINGLE, output=(1.0, 0.85, 1.58, 0.85)
    )
    assert "of the weights in circulation, 1.11, 1.11, does not follow" in said(MULTI, output=())
    assert "of the weights in circulation, 1.10, 1.10, follows." in said(
        MULTI, weights=(0.097, 0.097, 0.807), output=()
    )
    right = replace(MULTI, concatenation=(1.1, 1.1, 1.13, 0.22))
    assert "The concatenation in circulation, 1.10, 1.10, 1.13, 0.22, follows" in notes(example_report((right,), 10))


def test_the_given_dot_products_are_checked() -> None:
    assert "the dot products, 3, 5, 7: they are what step 3 gives." in notes(example_report((SINGLE,), 10))
    wrong = replace(SINGLE, given_scores=((3.0, 5.0, 8.0),))
    assert "the dot products, 3, 5, 8: step 3 gives others." in notes(example_report((wrong,), 10))


def test_it_ends_with_the_concatenation() -> None:
    report = example_report((SINGLE, MULTI), 10)
    assert "it has no output projection, so the concatenation is its output" in notes(report)
    assert [row[1] for row in table(report, "concatenation").rows] == ["0 to 1", "2 to 3"]
    formulas = "\n".join(block.plain for block in report.blocks if isinstance(block, Formula))
    assert "o[0] = 0.0900 × 0 + 0.2447 × 3 + 0.6652 × 2 = 2.0647" in formulas
    assert "q ⋅ k_2 = 1 × 1 + 1 × 2 + 2 × 1 + 2 × 1 = 7" in formulas
    assert "c = [o_0; o_1] = (1.0967, 1.0967, 1.1310, 0.2240)" in formulas


def test_in_chinese_only_the_labels_change() -> None:
    english, chinese = example_report(load_examples("en"), 10), example_report(load_examples("zh"), 10)
    assert chinese.title == "Attention by hand: 猫 坐 垫子"
    labels = {"0 猫": "0 cat", "1 坐": "1 sat", "2 垫子": "2 mat"}
    translated = [[[labels.get(str(cell), cell) for cell in row] for row in table.rows] for table in chinese.tables]
    assert translated == [[list(row) for row in table.rows] for table in english.tables]
    assert notes(chinese).replace("0 猫", "0 cat") == notes(english)
    assert [each for each in english.blocks if isinstance(each, Formula)] == [
        each for each in chinese.blocks if isinstance(each, Formula)
    ]


def test_the_data_hold_every_number() -> None:
    document = json.loads(b"".join(write_alone(example_report((SINGLE, MULTI), 10))))
    assert document["tokens"] == ["cat", "sat", "mat"]
    single, multi = document["parts"]
    assert single["concatenated"] == SINGLE.trace.concatenated.tolist()
    assert [head["circulating"]["follows"] for part in (single, multi) for head in part["heads"]] == [
        "yes",
        "no",
        "without scaling",
    ]
    circulating = [head["circulating"] for part in (single, multi) for head in part["heads"]]
    assert [each["output_follows"] for each in circulating] == [True, False, False]
    assert circulating[1]["output_of_weights"] == pytest.approx([1.11, 1.11])
    assert multi["concatenated"] == pytest.approx([1.097, 1.097, 1.131, 0.224], abs=5e-4)
    assert multi["heads"][1]["unscaled_weights"] == pytest.approx([0.9503, 0.0473, 0.0024], abs=5e-5)
