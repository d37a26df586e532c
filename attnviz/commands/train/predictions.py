"""What a classifier says about texts, and how often it is right: as a report and as rows. Knows no models and no files.

Labels are distinct names, in the order of the probabilities.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from jaxtyping import Int

from attnviz.display import CUT, escape_for_display, escape_for_spreadsheet, pluralize
from attnviz.measures import classification
from attnviz.measures.classification import N_BINS
from attnviz.numbers.intervals import Interval
from attnviz.records.answers import AnswerInfo
from attnviz.records.training_metrics import Prediction
from attnviz.report import Block, Column, Note, Report, Row, Table
from attnviz.specs import OTHER_LANGUAGES
from attnviz.views.answers import NO_LABEL, describe_answer, describe_given_labels, describe_kind

MAX_TITLE_LENGTH = 200
MAX_NAMES_LENGTH = (43, 32)  # of a text, without and with a column of given labels: a row then fits 80 columns
MAX_LABELS = 10  # whose confusion is a table that can be read


@dataclass(frozen=True, eq=False)
class _Scores:
    """The numbers of all texts whose given label is one of the model's."""

    n_texts: int
    accuracy: Interval
    macro_f1: float
    f1: tuple[float, ...]
    calibration_error: float
    calibrated_error: tuple[float, float]  # of a model that is calibrated, by chance: its mean, and the 95 % bound
    log_loss: float
    mean_confidence: float
    confusion: Int[np.ndarray, "gold predicted"]

    @property
    def n_absent(self) -> int:
        """Labels that are neither given nor predicted."""
        return int((~classification.find_occurring_labels(self.confusion)).sum())


def predictions_report(  # noqa: PLR0913 - a report says where its answers come from
    predictions: Sequence[Prediction],
    *,
    answers: AnswerInfo,
    model: str,
    status: str,
    corpus: str,
    listed: int = 20,
    facts: tuple[tuple[str, str], ...] = (),
) -> Report:
    """Show each text with its label, or how many of each where there are more than `listed`; scores where labels came.

    The data hold every text: model, status, corpus, labels, texts (how many); where labels came scored (how many
    texts), accuracy, accuracy_interval [low, high], macro_f1, f1 {label}, calibration_error,
    calibration_error_by_chance {mean, below_95}, calibration_bins, log_loss, mean_confidence, confusion
    [given][predicted]; predictions, each with text, label, probability,
    probabilities {label}, given, tokens, tokens_read, tokens_unknown; label and probability are null where half
    of the tokens or more are unknown. A given label that the model lacks stands there as its number. Of a model of
    several labels a text there is `predicted`, a list, in the place of label and probability; of one that answers with
    numbers there is `scores` {name}; null, too, where half is unknown.
    """
    scores, labels = _score(predictions, answers), answers.labels
    few = len(predictions) <= listed
    summary = _predictions_table if few else _numbers_table if answers.kind == "score" else _counts_table
    blocks: list[Block] = [summary(predictions, answers)]
    if scores:
        blocks.append(_scores_table(scores, labels))
        blocks += [_confusion_table(scores, labels)] if len(labels) <= MAX_LABELS else []
    blocks += map(Note, _notes(predictions, answers, scores, few))
    n_texts = f"{len(predictions)} text{'' if len(predictions) == 1 else 's'}"
    return Report(
        title=f"{_shorten(model)} {'scores' if answers.kind == 'score' else 'classifies'} {_shorten(corpus)}",
        subtitle=f"{_shorten(status)} · {n_texts}",
        blocks=tuple(blocks),
        facts=tuple((_shorten(name), _shorten(value)) for name, value in facts),
        data={
            "model": model,
            "status": status,
            "corpus": corpus,
            "labels": list(labels),
            "texts": len(predictions),
            **(_describe_scores(scores, labels) if scores else {}),
            "predictions": [
                _describe_prediction(prediction, given, answers)
                for prediction, given in zip(predictions, _name_labels(predictions, answers, labels), strict=True)
            ],
        },
    )


def prediction_rows(predictions: Sequence[Prediction], answers: AnswerInfo) -> Iterator[tuple[str, ...]]:
    """Yield a header and a row per text, for CSV: every digit of the numbers, and no text that a spreadsheet would run.

    A name that begins like a formula is written behind an apostrophe (CWE-1236), and control characters are written
    out. A text without a label has an empty cell, one with a label that the model lacks that label's number. Several
    labels of a text stand in one cell, "joy; surprise"; numbers have a column each instead, and one alone is `score`.
    """
    verdict = {"label": ("label", "probability"), "labels": ("labels",), "score": ()}[answers.kind]
    before = "score_" if answers.kind == "score" else "p_"
    columns = [f"{before}{escape_for_display(label, sys.maxsize)}" for label in answers.labels]
    if answers.kind == "score" and len(columns) == 1:
        columns = ["score"]
    yield ("text", *verdict, "given", "tokens", "tokens_read", *columns)
    names = [escape_for_spreadsheet(label) for label in answers.labels]
    for p, given in zip(predictions, _name_labels(predictions, answers, names), strict=True):
        found = ["; ".join(names[place] for place in answers.choose_labels(p))]
        found += [repr(float(p.probability))] if answers.kind == "label" else []
        yield (
            escape_for_spreadsheet(p.text_name),
            *(found if p.is_judged else ("", ""))[: len(verdict)],
            "" if given is None else str(given),
            str(p.n_tokens),
            str(p.n_read),
            *(repr(float(number)) for number in p.probabilities),
            *(repr(float(number)) if p.is_judged else "" for number in p.scores),
        )


def _shorten(text: str) -> str:
    """Cut a name for a heading."""
    return escape_for_display(text, MAX_TITLE_LENGTH)


def _name_labels(
    predictions: Sequence[Prediction], answers: AnswerInfo, names: Sequence[str]
) -> list[str | int | None]:
    """Return the name of each given label; its number where it is not known which of the model's that is."""
    given = [p.gold for p in predictions]
    places = answers.find_labels(given)
    return [gold if place is None else names[place] for gold, place in zip(given, places, strict=True)]


def _score(predictions: Sequence[Prediction], answers: AnswerInfo) -> _Scores | None:
    """Score the texts with labels, where these are the model's; None where there are none."""
    n_labels = len(answers.labels)
    places = answers.find_labels([p.gold for p in predictions])
    scored = [(p, label) for p, label in zip(predictions, places, strict=True) if p.is_judged and label is not None]
    if not scored:
        return None
    gold = np.array([label for _, label in scored], dtype=np.int64)
    predicted = np.array([p.label for p, _ in scored], dtype=np.int64)
    probabilities = np.array([p.probabilities for p, _ in scored], dtype=np.float64)
    confidence = np.array([p.probability for p, _ in scored], dtype=np.float64)
    confusion = classification.confusion_matrix(gold, predicted, n_labels)
    return _Scores(
        n_texts=len(scored),
        accuracy=classification.accuracy(gold, predicted),
        macro_f1=classification.macro_f1(confusion),
        f1=tuple(classification.f1(confusion).tolist()),
        calibration_error=classification.calibration_error(confidence, gold == predicted, N_BINS),
        calibrated_error=classification.draw_calibrated_error(confidence, N_BINS),
        log_loss=classification.log_loss(probabilities, gold),
        mean_confidence=float(confidence.mean()),
        confusion=confusion,
    )


def _predictions_table(predictions: Sequence[Prediction], answers: AnswerInfo) -> Table:
    """List each text in a row, with the label that came with it where any has one."""
    labelled = any(p.gold is not None for p in predictions)
    names = [escape_for_display(label) for label in answers.labels]
    headings = {"label": ("predicted", "probability"), "labels": ("predicted",), "score": names}[answers.kind]
    columns = [Column("text"), *map(Column, headings)]
    columns += [Column("given")] if labelled else []
    columns.append(Column("tokens read"))
    rows: list[Row] = []
    for p, given in zip(predictions, _name_labels(predictions, answers, names), strict=True):
        cells = ["-" if given is None else escape_for_display(str(given))] if labelled else []
        name = _shorten_name(p.text_name, MAX_NAMES_LENGTH[labelled])
        verdict: Row = p.scores
        if answers.kind == "label":
            verdict = names[p.label], p.probability
        if answers.kind == "labels":
            verdict = (describe_answer(answers, p),)
        verdict = verdict if p.is_judged else ("-",) * len(headings)
        rows.append((name, *verdict, *cells, f"{p.n_read} of {p.n_tokens}"))
    return Table("predictions", "predictions", "facts", tuple(columns), tuple(rows))


def _shorten_name(name: str, longest: int) -> str:
    """Cut a text's name in its middle: it begins with what it is and ends with its place in a data set."""
    if len(name) <= longest:
        return escape_for_display(name, MAX_TITLE_LENGTH)
    half = (longest - len(CUT)) // 2
    head, tail = name[:half].rstrip(" "), name[-half:].lstrip(" ")  # a space that the cut laid bare is no end
    return escape_for_display(head, MAX_TITLE_LENGTH) + CUT + escape_for_display(tail, MAX_TITLE_LENGTH)


def _counts_table(predictions: Sequence[Prediction], answers: AnswerInfo) -> Table:
    """Count the texts of each predicted label."""
    chosen = [answers.choose_labels(p) for p in predictions if p.is_judged]
    counts = Counter(chain.from_iterable(chosen))
    rows = [(escape_for_display(name), counts[label]) for label, name in enumerate(answers.labels)]
    if n_without := chosen.count(()):
        rows.append((NO_LABEL, n_without))
    if n_others := len(predictions) - len(chosen):
        rows.append(("not judged", n_others))
    return Table(
        "predictions", "texts by predicted label", "facts", (Column("predicted"), Column("texts")), tuple(rows)
    )


def _numbers_table(predictions: Sequence[Prediction], answers: AnswerInfo) -> Table:
    """Say how the numbers of all texts are spread."""
    names = [escape_for_display(name) for name in answers.labels]
    judged = np.array([p.scores for p in predictions if p.is_judged], dtype=np.float64).reshape(-1, len(names))
    rows: list[Row] = [("texts", *(len(judged),) * len(names))]
    if n_others := len(predictions) - len(judged):
        rows.append(("not judged", *(n_others,) * len(names)))
    if len(judged):
        rows += [
            ("mean", *judged.mean(axis=0).tolist()),
            ("standard deviation", *judged.std(axis=0).tolist()),
            ("smallest", *judged.min(axis=0).tolist()),
            ("largest", *judged.max(axis=0).tolist()),
        ]
    columns = (Column("what"), *map(Column, names))
    return Table("predictions", "what the texts are given", "facts", columns, tuple(rows))


def _scores_table(scores: _Scores, labels: tuple[str, ...]) -> Table:
    interval = f"95 % interval over texts {scores.accuracy.low:.3f} to {scores.accuracy.high:.3f}"
    chance = "by chance {:.3f}, 95 % below {:.3f}".format(*scores.calibrated_error)
    rows = (
        ("texts with labels", scores.n_texts),
        (f"accuracy ({interval})", scores.accuracy.value),
        ("macro F1", scores.macro_f1),
        *((f"F1 of {escape_for_display(name)}", value) for name, value in zip(labels, scores.f1, strict=True)),
        (f"calibration error (ECE, {N_BINS} bins; {chance})", scores.calibration_error),
        ("log loss (nats)", scores.log_loss),
        ("mean confidence", scores.mean_confidence),
    )
    return Table("scores", "compared with the given labels", "facts", (Column("what"), Column("value", digits=3)), rows)


def _confusion_table(scores: _Scores, labels: tuple[str, ...]) -> Table:
    """Count texts, a row per given label, a column per predicted label."""
    names = [escape_for_display(name) for name in labels]
    rows = tuple((name, *counts) for name, counts in zip(names, scores.confusion.tolist(), strict=True))
    title = "texts by given (row) and predicted (column) label"
    return Table("confusion", title, "facts", (Column("given"), *map(Column, names)), rows)


def _notes(predictions: Sequence[Prediction], answers: AnswerInfo, scores: _Scores | None, few: bool) -> Iterator[str]:
    """Say what a reader of the tables would otherwise get wrong."""
    n, labels = len(predictions), answers.labels
    if not few:
        yield f"{n} texts are too many to list: --json has every one."
    if cut := [p for p in predictions if p.n_read < p.n_tokens]:
        left_out = sum(p.n_tokens - p.n_read for p in cut)
        texts = pluralize(n, "texts")
        yield f"Cut to what the model reads: {len(cut)} of {n} {texts} (tokens left out in all: {left_out})."
    if n_unknown := sum(p.n_unknown for p in predictions):
        n_read, n_texts = sum(p.n_read for p in predictions), sum(p.n_unknown > 0 for p in predictions)
        of = f", in {n_texts} of {n} texts" if n > 1 else ""
        yield f"Not in the vocabulary (read as [UNK]): {n_unknown:,} of {n_read:,} tokens{of}."
    if n_others := sum(not p.is_judged for p in predictions):
        texts = "The text is" if n == 1 else f"{n_others} of {n} texts are"
        yield f"{texts} not judged: half of the tokens or more are not in the vocabulary. {OTHER_LANGUAGES}"
    yield from describe_given_labels(answers, [p.gold for p in predictions])
    without = sum(p.gold is None or p.gold < 0 for p in predictions)
    if scores and without:
        yield f"Not scored: {without} of {n} texts, without a label."
    if scores and scores.n_absent:
        absent = f"{scores.n_absent} of {len(labels)} labels"
        yield f"Neither given nor predicted: {absent}; F1 stands at 0 there, and macro F1 leaves that out."
    if scores and len(labels) > MAX_LABELS:
        yield f"Which of {len(labels)} labels is taken for which is too wide a table: --json has it."
    if kind := describe_kind(answers):
        yield kind
    if answers.kind != "score":
        yield "A probability is the model's confidence in its answer, not the truth of it."


def _describe_scores(scores: _Scores, labels: tuple[str, ...]) -> Mapping[str, object]:
    return {
        "scored": scores.n_texts,
        "accuracy": scores.accuracy.value,
        "accuracy_interval": [scores.accuracy.low, scores.accuracy.high],
        "macro_f1": scores.macro_f1,
        "f1": dict(zip(labels, scores.f1, strict=True)),
        "calibration_error": scores.calibration_error,
        "calibration_error_by_chance": {"mean": scores.calibrated_error[0], "below_95": scores.calibrated_error[1]},
        "calibration_bins": N_BINS,
        "log_loss": scores.log_loss,
        "mean_confidence": scores.mean_confidence,
        "confusion": scores.confusion.tolist(),
    }


def _describe_prediction(p: Prediction, given: str | int | None, answers: AnswerInfo) -> Mapping[str, object]:
    """Describe one text for machines: names as they are, numbers unrounded."""
    labels, chosen, found = answers.labels, answers.choose_labels(p), dict[str, object]()
    if answers.kind == "label":
        found |= {"label": labels[p.label], "probability": p.probability}
    if answers.kind == "labels":
        found["predicted"] = [labels[place] for place in chosen]
    if answers.kind == "score":
        found["scores"] = dict(zip(labels, p.scores, strict=True))
    if not p.is_judged:
        found = dict.fromkeys(found)
    if p.probabilities:
        found["probabilities"] = dict(zip(labels, p.probabilities, strict=True))
    return {
        "text": p.text_name,
        **found,
        "given": given,
        "tokens": p.n_tokens,
        "tokens_read": p.n_read,
        "tokens_unknown": p.n_unknown,
    }
