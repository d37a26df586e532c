"""What a classifier says: a row per text or a count, scores where labels came, and everything for machines."""

import json
from collections.abc import Sequence
from math import log
from typing import Any

import numpy as np
import pytest

from attnviz.commands.train.predict import prediction_rows, predictions_report
from attnviz.measures.classification import draw_calibrated_error
from attnviz.records.answers import AnswerInfo, Prediction
from attnviz.renderers.documents.json import write_alone
from attnviz.renderers.terminal.show import Screen, lines
from attnviz.report import Note, Report, Table
from tests.made import table

UNCOMPARED, HAS = (
    "Given labels are not compared:",
    "so that all may mean something else. It has 0 (negative), 1 (positive).",
)
LABELS = ("negative", "positive")
ANSWERS = AnswerInfo.from_training(LABELS)


def said(positive: float, gold: int | None = None, *, name: str = "text", n_tokens: int = 9) -> Prediction:
    """A model of two labels that reads 512 tokens."""
    return Prediction(name, (1 - positive, positive), gold, n_tokens, min(n_tokens, 512))


FEW = (
    said(0.75, name="a fine film"),
    said(0.125, name="a long one", n_tokens=834),
    said(0.5, name="undecided", n_tokens=600),
)
SCORED = (said(0.75, 1), said(0.875, 1), said(0.625, 0), said(0.25, 0))  # three of four are right
RIGHT = "75.0% of 4 labelled texts are right (95 % interval 30.1% to 95.4%); 50.0% with the commonest label alone."


def report(predictions: Sequence[Prediction], labels: tuple[str, ...] = LABELS, listed: int = 20) -> Report:
    return predictions_report(
        predictions,
        answers=AnswerInfo.from_training(labels),
        model="multi:8",
        status="trained",
        corpus="sample test",
        listed=listed,
    )


def headers(of: Table) -> list[str]:
    return [column.header for column in of.columns]


def names(of: Report) -> list[str]:
    assert {table.role for table in of.tables} <= {"answer", "facts"}
    return [table.name for table in of.tables]


def notes(of: Report) -> list[str]:
    """Without the note that is always there."""
    *others, always = (note.text for note in of.notes)
    assert always == "A probability is the model's confidence in its answer, not the truth of it."
    return others


def parsed(of: Report) -> dict[str, Any]:
    document = json.loads("".join(write_alone(of)))
    assert document.pop("schema") == 1
    return dict(document)


# Texts without labels


def test_a_row_per_text() -> None:
    listing = table(report(FEW), "predictions")
    assert headers(listing) == ["text", "predicted", "probability", "tokens read"]
    assert listing.rows == (
        ("a fine film", "positive", 0.75, "9 of 9"),
        ("a long one", "negative", 0.875, "512 of 834"),
        ("undecided", "negative", 0.5, "512 of 600"),  # of equals the first label
    )


@pytest.mark.parametrize(("n", "is_listed"), [(3, True), (4, False)])
def test_more_texts_than_listed_are_counted(n: int, is_listed: bool) -> None:
    of = report([said(0.9), said(0.8), said(0.1), said(0.7)][:n], listed=3)
    counts = table(of, "predictions")
    assert (counts.rows == (("negative", 1), ("positive", 3))) is not is_listed
    assert (headers(counts) == ["predicted", "texts"]) is not is_listed
    assert len(parsed(of)["predictions"]) == n


# Texts with labels


def test_scores_by_hand() -> None:
    of = report(SCORED)
    assert names(of) == ["predictions", "scores", "confusion"]
    scores = table(of, "scores")
    assert headers(scores) == ["what", "value"]
    chance, bound = draw_calibrated_error(np.array([0.75, 0.875, 0.625, 0.75]))
    assert [row[0] for row in scores.rows] == [
        "macro F1",
        "F1 of negative",
        "F1 of positive",
        f"calibration error (ECE, 15 bins; by chance {chance:.3f}, 95 % below {bound:.3f})",
        "log loss (nats)",
        "mean confidence",
    ]
    loss = -(log(0.75) + log(0.875) + log(0.375) + log(0.75)) / 4
    calibration = (2 * 0.25 + 0.125 + 0.625) / 4  # both at 0.75 are right, and that at 0.625 is wrong
    assert [row[1] for row in scores.rows] == pytest.approx(
        [(2 / 3 + 4 / 5) / 2, 2 / 3, 4 / 5, calibration, loss, 0.75]
    )
    assert (notes(of), of.blocks[0]) == ([RIGHT], Note(RIGHT, leads=True))  # also a document begins with it
    assert "macro F1 0.733" in [" ".join(line.split()) for line in "".join(lines(of, "top", Screen(80))).splitlines()]


def test_confusion_has_given_labels_as_rows() -> None:
    confusion = table(report([*SCORED, said(0.9, 0)]), "confusion")
    assert headers(confusion) == ["given", *LABELS]
    assert confusion.rows == (("negative", 1, 2), ("positive", 0, 2))


def test_texts_that_are_not_scored_are_counted_and_change_no_score() -> None:
    of = report([said(0.1), *SCORED, said(0.1), said(0.1, -1)])
    assert table(of, "scores") == table(report(SCORED), "scores")
    assert table(of, "confusion") == table(report(SCORED), "confusion")
    assert notes(of) == [RIGHT, "Not scored: 3 of 7 texts, without a label."]


def test_labels_that_the_model_lacks_make_no_score() -> None:
    """Of classes 0, 1 and 2 the 1 is not known to be the model's "positive", so that no text is scored by any."""
    of = report([*SCORED, said(0.1, 10**30), said(0.1, 2)])
    assert names(of) == ["predictions"]
    assert "accuracy" not in of.data
    assert [each["given"] for each in parsed(of)["predictions"]] == [*(p.gold for p in SCORED), 10**30, 2]
    assert notes(of) == [f"{UNCOMPARED} the model lacks that of 2 of 6 texts (2, {10**30}), {HAS}"]
    assert notes(report([said(0.1, 2, n_tokens=5130)])) == [
        "Cut to what the model reads: 1 of 1 text (tokens left out: 4,618).",
        f"{UNCOMPARED} the model lacks that of 1 of 1 text (2), {HAS}",
    ]


def test_an_f1_of_nothing_is_explained() -> None:
    of = report([said(0.9, 1), said(0.8, 1)])
    assert parsed(of)["f1"] == {"negative": 0, "positive": 1}
    assert parsed(of)["macro_f1"] == 1
    assert notes(of)[1:] == [
        "Neither given nor predicted: 1 of 2 labels; F1 stands at 0 there, and macro F1 leaves that out."
    ]


@pytest.mark.parametrize("n_labels", [10, 11])
def test_confusion_of_many_labels_is_only_for_machines(n_labels: int) -> None:
    labels = tuple(f"label {number}" for number in range(n_labels))
    probabilities = (1.0, *[0.0] * (n_labels - 1))
    of = report([Prediction("text", probabilities, gold, 9, 9) for gold in range(n_labels)], labels)
    assert ("confusion" in names(of)) is (n_labels == 10)
    assert ("too wide a table" in " ".join(notes(of))) is (n_labels == 11)
    assert parsed(of)["confusion"] == [[1] + [0] * (n_labels - 1)] * n_labels


# Names


def test_texts_that_begin_alike_are_told_apart() -> None:
    listing = table(
        report(
            [said(0.9, name=f"“not a{60 * 'x'}"), said(0.8, name="“good”"), said(0.1, name=f"“not a{60 * 'x'} film”")]
        ),
        "predictions",
    )
    name = f"“not a{36 * 'x'}…"
    assert [row[0] for row in listing.rows] == [f"{name}[0]", "“good”", f"{name}[2]"]


# For machines


def test_data_hold_every_answer_and_the_numbers_of_the_tables() -> None:
    of = report([*SCORED, said(0.5, -1, name="\x1b[31m", n_tokens=600), said(0.25)], listed=0)
    document = parsed(of)
    predictions = document["predictions"]
    assert predictions[0] == {
        "text": "text",
        "label": "positive",
        "probability": 0.75,
        "probabilities": {"negative": 0.25, "positive": 0.75},
        "given": "positive",
        "tokens": 9,
        "tokens_read": 9,
        "tokens_unknown": 0,
    }
    assert [each["given"] for each in predictions[4:]] == [-1, None]
    assert (predictions[4]["text"], document["texts"], document["scored"]) == ("\x1b[31m", 6, 4)
    names = ("accuracy", "macro_f1", "calibration_error", "log_loss", "mean_confidence")
    mean_f1, *f1, calibration, loss, confidence = (row[1] for row in table(of, "scores").rows)
    assert [document[name] for name in names] == [0.75, mean_f1, calibration, loss, confidence]
    assert [*document["f1"].values()] == f1
    assert document["confusion"] == [[1, 1], [0, 2]]
    assert document["accuracy_interval"] == pytest.approx([0.3006, 0.9544], abs=5e-5)


# Rows


def test_rows_by_hand() -> None:
    few = [said(0.1, 1, name="a, b", n_tokens=600), said(2 / 3), said(0.75, -1)]
    rows = list(prediction_rows(report(few), ANSWERS))
    assert rows == [
        ("text", "label", "probability", "given", "tokens", "tokens_read", "p_negative", "p_positive"),
        ("a, b", "negative", 0.9, "positive", 600, 512, 0.9, 0.1),
        ("text", "positive", 0.6666666666666666, None, 9, 9, 0.33333333333333337, 0.6666666666666666),
        ("text", "positive", 0.75, -1, 9, 9, 0.25, 0.75),
    ]
    assert list(prediction_rows(report([]), ANSWERS)) == rows[:1]
