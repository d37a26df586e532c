"""`attnviz predict`: from texts to labels and probabilities, and how often they are right.

They are a report and rows. Labels are distinct names, in the order of the probabilities.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import isnan
from typing import Any, cast

import numpy as np

from attnviz.commands.train.spec import PredictSpec
from attnviz.display import escape_for_display, format_count
from attnviz.errors import InvalidModel
from attnviz.inputs import Inputs, digest_texts
from attnviz.measures import classification
from attnviz.models.built_in import TRAINED
from attnviz.models.device import return_freed_memory
from attnviz.models.loading import find_model
from attnviz.models.protocols import Classifies
from attnviz.records.answers import MIN_PROBABILITY, AnswerInfo, Prediction
from attnviz.report import Block, Cell, Column, Note, Report, Row, Table
from attnviz.running import Events, Progress, Result
from attnviz.running.metrics import load_model_metrics
from attnviz.specs import OTHER_LANGUAGES
from attnviz.store.manifest import TextNumbers
from attnviz.table.intervals import compare_pairs, summarize
from attnviz.views.answers import NO_LABEL, describe_answer, describe_given_labels, describe_reading

MAX_TITLE_LENGTH = 200
MAX_NAMES_LENGTH = (43, 32)  # of a text, without and with a column of given labels: a row then fits 80 columns
MORE = "All texts and scores: --table full."
MAX_LABELS = 10  # whose confusion is a table that can be read


def predictions_report(
    predictions: Sequence[Prediction], *, answers: AnswerInfo, model: str, status: str, corpus: str, listed: int = 20
) -> Report:
    """Show each text with its label, or how many of each where there are more than `listed`; scores where labels came.

    The data hold every text: model, status, corpus, labels, texts (how many); where labels came scored (how many
    texts), accuracy, accuracy_interval [low, high], accuracy_of_commonest (of an answer that is always the commonest
    given label), macro_f1, f1 {label}, calibration_error, calibration_error_by_chance {mean, below_95},
    calibration_bins, log_loss, mean_confidence, confusion [given][predicted]; predictions, each with text, label,
    probability, probabilities {label}, given, tokens, tokens_read, tokens_unknown; label and probability are null where
    half of the tokens or more are unknown. A given label that the model lacks stands there as its number. Of a model of
    several labels a text there is `predicted`, a list, in the place of label and probability; of one that answers with
    numbers there is `scores` {name}; null, too, where half is unknown.
    """
    rows = [*_list_answers(predictions, answers)]
    scores = _score(predictions, answers)
    if len(predictions) <= listed:
        blocks: list[Block] = [_predictions_table(predictions, rows, answers)]
    elif answers.kind == "score":
        blocks = [_numbers_table(predictions, answers)]
    else:
        blocks = [_counts_table(predictions, answers)]
    if scores:
        lead = "{accuracy:.1%} of {scored:,} labelled texts are right (95 % interval {0:.1%} to {1:.1%}); "
        lead += "{accuracy_of_commonest:.1%} with the commonest label alone."
        blocks = [Note(lead.format(*scores["accuracy_interval"], **scores), leads=True), *blocks, *_list_scores(scores)]
    blocks += map(Note, _notes(predictions, answers, scores))
    name, of_what, said = (escape_for_display(each, MAX_TITLE_LENGTH) for each in (model, corpus, status))
    title, of = f"{name} {'scores' if answers.kind == 'score' else 'classifies'} {of_what}", ""
    if len(predictions) == 1 and predictions[0].is_judged:
        title, of = describe_reading(name, answers, predictions[0]), f"{of_what} · "
    return Report(
        title=title,
        subtitle=f"{of}{said} · {format_count(len(predictions), 'texts')}",
        blocks=tuple(blocks),
        data={
            "model": model,
            "status": status,
            "corpus": corpus,
            "labels": list(answers.labels),
            "texts": len(predictions),
            **scores,
            "predictions": rows,
        },
        max_lines=15,
    )


def _list_answers(predictions: Sequence[Prediction], answers: AnswerInfo) -> Iterator[dict[str, Any]]:
    """Yield each text for machines: names as they are, numbers unrounded, and no verdict where half is unknown.

    Of a label that came with the text and that the model lacks, the number is `given`.
    """
    labels = answers.labels
    for p, place in zip(predictions, answers.find_labels([p.gold for p in predictions]), strict=True):
        numbers = p.probabilities or (p.scores if p.is_judged else ())
        named = dict(zip(labels, numbers, strict=True)) if numbers else None
        predicted = [labels[chosen] for chosen in answers.choose_labels(p)] if p.is_judged else None
        verdict: dict[str, object] = {"scores": named}
        if answers.kind == "labels":
            verdict = {"predicted": predicted, "probabilities": named}
        elif answers.kind == "label":
            label, probability = (labels[p.label], p.probability) if p.is_judged else (None, None)
            verdict = {"label": label, "probability": probability, "probabilities": named}
        given = p.gold if place is None else labels[place]
        counts = {"tokens": p.n_tokens, "tokens_read": p.n_read, "tokens_unknown": p.n_unknown}
        yield {"text": p.text_name, **verdict, "given": given, **counts}


def prediction_rows(report: Report, answers: AnswerInfo) -> Iterator[tuple[Cell | None, ...]]:
    """Yield a header and a row per text, for CSV, of what the report's data say of each.

    A text without a label has an empty cell, one with a label that the model lacks that label's number. Several
    labels of a text stand in one cell, "joy; surprise"; numbers have a column each instead, and one alone is `score`.
    """
    verdict = {"label": ("label", "probability"), "labels": ("predicted",), "score": ()}[answers.kind]
    before = "score_" if answers.kind == "score" else "p_"
    headings = [f"{before}{escape_for_display(label, sys.maxsize)}" for label in answers.labels]
    if answers.kind == "score" and len(headings) == 1:
        headings = ["score"]
    columns = ("text", *verdict, "given", "tokens", "tokens_read")
    yield (*("labels" if name == "predicted" else name for name in columns), *headings)
    for row in cast(Any, report.data["predictions"]):
        numbers = row["scores" if answers.kind == "score" else "probabilities"]
        yield (*(row[name] for name in columns), *([None] * len(headings) if numbers is None else numbers.values()))


def _list_scored(predictions: Sequence[Prediction], answers: AnswerInfo) -> list[tuple[int, Prediction]]:
    """List the texts that are judged and came with a label of the model's, with its place."""
    pairs = zip(answers.find_labels([p.gold for p in predictions]), predictions, strict=True)
    return [(place, p) for place, p in pairs if place is not None and p.is_judged and answers.kind == "label"]


def _score(predictions: Sequence[Prediction], answers: AnswerInfo) -> dict[str, Any]:
    """Score the texts that are judged and came with a label of the model's; nothing where there are none."""
    if not (scored := _list_scored(predictions, answers)):
        return {}
    gold, predicted = np.array([(place, p.label) for place, p in scored]).T
    probabilities = np.array([p.probabilities for _, p in scored])
    confidence = probabilities.max(axis=1)
    confusion = classification.confusion_matrix(gold, predicted, len(answers.labels))
    share = classification.accuracy(gold, predicted)
    mean, below = classification.draw_calibrated_error(confidence, classification.N_BINS)
    return {
        "scored": len(scored),
        "accuracy": share.value,
        "accuracy_interval": [share.low, share.high],
        "accuracy_of_commonest": int(confusion.sum(axis=1).max()) / len(scored),
        "macro_f1": classification.macro_f1(confusion),
        "f1": dict(zip(answers.labels, classification.f1(confusion).tolist(), strict=True)),
        "calibration_error": classification.calibration_error(confidence, gold == predicted, classification.N_BINS),
        "calibration_error_by_chance": {"mean": mean, "below_95": below},
        "calibration_bins": classification.N_BINS,
        "log_loss": classification.log_loss(probabilities, gold),
        "mean_confidence": float(confidence.mean()),
        "confusion": confusion.tolist(),
    }


def _predictions_table(
    predictions: Sequence[Prediction], found: Sequence[Mapping[str, Any]], answers: AnswerInfo
) -> Table:
    """List each text in a row, with the label that came with it where any has one."""
    labelled = any(p.gold is not None for p in predictions)
    names = [escape_for_display(label) for label in answers.labels]
    headings = {"label": ("predicted", "probability"), "labels": ("predicted",), "score": names}[answers.kind]
    columns = [Column("text"), *map(Column, headings), *([Column("given")] if labelled else [])]
    columns.append(Column("tokens read", minor=True))
    shown = [escape_for_display(p.text_name, MAX_NAMES_LENGTH[labelled]) for p in predictions]
    alike, rows = Counter(shown), list[Row]()  # texts that begin alike have a number, as those of data sets have
    for place, (name, p, row) in enumerate(zip(shown, predictions, found, strict=True)):
        verdict: Row = ("-",) * len(headings)
        if p.is_judged:
            verdict = p.scores if answers.kind == "score" else (describe_answer(answers, p),)
            if answers.kind == "label":
                verdict = (escape_for_display(row["label"]), row["probability"])
        given = "-" if row["given"] is None else escape_for_display(str(row["given"]))
        cells = (given,) if labelled else ()
        rows.append((name if alike[name] == 1 else f"{name}[{place}]", *verdict, *cells, f"{p.n_read} of {p.n_tokens}"))
    more = MORE if labelled or len(rows) > 1 else ""
    return Table("predictions", "", "answer", tuple(columns), tuple(rows), more=more)


def _counts_table(predictions: Sequence[Prediction], answers: AnswerInfo) -> Table:
    """Count the texts of each predicted label."""
    judged = [answers.choose_labels(p) for p in predictions if p.is_judged]
    counts = Counter(chain.from_iterable(judged))
    rows = [(escape_for_display(name), counts[place]) for place, name in enumerate(answers.labels)]
    if n_without := judged.count(()):
        rows.append((NO_LABEL, n_without))
    if n_others := len(predictions) - len(judged):
        rows.append(("not judged", n_others))
    columns = (Column("predicted"), Column("texts"))
    return Table("predictions", "texts by predicted label", "answer", columns, tuple(rows), more=MORE)


def _numbers_table(predictions: Sequence[Prediction], answers: AnswerInfo) -> Table:
    """Say how the numbers of all texts are spread, a row for each number that the model gives."""
    found = summarize(np.array([p.scores if p.is_judged else [np.nan] * len(answers.labels) for p in predictions]))
    names = map(escape_for_display, answers.labels)
    numbers = (each.tolist() for each in (found.n, found.mean, found.smallest, found.largest))
    rows = [row for row in zip(names, *numbers, strict=True) if row[1]]
    columns = tuple(map(Column, ("number", "texts", "mean", "smallest", "largest")))
    return Table("predictions", "what the texts are given", "answer", columns, tuple(rows), more=MORE)


def _list_scores(scores: Mapping[str, Any]) -> Iterator[Table]:
    """Yield tables of scores against the given labels, then of texts: a row per given label, a column per predicted."""
    chance = "by chance {mean:.3f}, 95 % below {below_95:.3f}".format(**scores["calibration_error_by_chance"])
    rows = (
        ("macro F1", scores["macro_f1"]),
        *((f"F1 of {escape_for_display(name)}", value) for name, value in scores["f1"].items()),
        (f"calibration error (ECE, {classification.N_BINS} bins; {chance})", scores["calibration_error"]),
        ("log loss (nats)", scores["log_loss"]),
        ("mean confidence", scores["mean_confidence"]),
    )
    yield Table("scores", "compared with the given labels", "facts", (Column("what"), Column("value", digits=3)), rows)
    names = [escape_for_display(name) for name in scores["f1"]]
    if len(names) <= MAX_LABELS:
        counts = tuple((name, *of) for name, of in zip(names, scores["confusion"], strict=True))
        title = "texts by given (row) and predicted (column) label"
        yield Table("confusion", title, "facts", (Column("given"), *map(Column, names)), counts)


def _notes(predictions: Sequence[Prediction], answers: AnswerInfo, scores: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader of the tables would otherwise get wrong."""
    n, labels = len(predictions), answers.labels
    if cut := [p for p in predictions if p.n_read < p.n_tokens]:
        lost = sum(p.n_tokens - p.n_read for p in cut)
        yield f"Cut to what the model reads: {len(cut):,} of {format_count(n, 'texts')} (tokens left out: {lost:,})."
    if n_unknown := sum(p.n_unknown for p in predictions):
        n_read, n_texts = sum(p.n_read for p in predictions), sum(p.n_unknown > 0 for p in predictions)
        of = f", in {n_texts:,} of {n:,} texts" if n > 1 else ""
        yield f"Not in the vocabulary (read as [UNK]): {n_unknown:,} of {n_read:,} tokens{of}."
    if n_others := sum(not p.is_judged for p in predictions):
        unknown = "half of the tokens or more are not in the vocabulary"
        yield f"Not judged: {n_others} of {format_count(n, 'texts')}, as {unknown}. {OTHER_LANGUAGES}"
    yield from describe_given_labels(answers, [p.gold for p in predictions])
    without = sum(p.gold is None or p.gold < 0 for p in predictions)
    if scores and without:
        yield f"Not scored: {without} of {n} texts, without a label."
    if scores and (n_absent := int((~classification.find_occurring_labels(np.array(scores["confusion"]))).sum())):
        absent = f"{n_absent} of {len(labels)} labels"
        yield f"Neither given nor predicted: {absent}; F1 stands at 0 there, and macro F1 leaves that out."
    if scores and len(labels) > MAX_LABELS:
        yield f"Which of {len(labels)} labels is taken for which is too wide a table: --json has it."
    if answers.kind == "labels":
        yield f"Each label has a probability of its own; a text has those of {MIN_PROBABILITY:g} or more."
    if answers.kind != "score" and n_others < n:
        yield "A probability is the model's confidence in its answer, not the truth of it."


def predict(spec: PredictSpec, inputs: Inputs) -> Events:
    """Classify or score every chosen text, in order.

    Raises InvalidModel for a model that was not trained, InvalidText for a text without tokens.
    """
    chosen = inputs.documents
    return_freed_memory()
    model = inputs.model.open(inputs.corpus.texts)
    if not isinstance(model, Classifies):
        raise InvalidModel(f"{spec.model.model} was never trained and cannot classify", hint=TRAINED)
    limit = spec.max_tokens or model.max_tokens, spec.keep or model.keep
    model, learned = model.limit_tokens(*limit), load_model_metrics(model)
    yield Progress(0, len(chosen), "texts", notices=inputs.corpus.notices)
    predictions = []
    for prediction in model.classify(chosen):
        predictions.append(prediction)
        yield Progress(len(predictions), len(chosen), "texts", prediction.text_name)
    trained = f"trained on {learned.data}, " if learned else "trained, " if model.trained else ""
    report = predictions_report(
        predictions,
        answers=model.answers,
        model=model.name,
        status=f"{trained}weights sha256 {model.revision.removeprefix('sha256:')[:8]}…",
        corpus=inputs.corpus.name if len(chosen) != 1 else chosen[0].name,
    )
    is_same = learned is not None and learned.data_sha256 == digest_texts(chosen)
    if learned and (is_same or inputs.corpus.name.startswith(learned.data)):
        of = "of these texts" if is_same else f"texts of {escape_for_display(learned.data, MAX_TITLE_LENGTH)}"
        said = f"The model was trained on {learned.n_texts:,} {of}: on others it may be right less often."
        report = replace(report, blocks=(*report.blocks, Note(said, leads=True)))
    if spec.model.without:
        whole = find_model(replace(spec.model, without=())).open(inputs.corpus.texts)
        assert isinstance(whole, Classifies)
        said = _compare_answers(model.answers, predictions, list(whole.limit_tokens(*limit).classify(chosen)))
        report = replace(report, blocks=(*report.blocks, Note(said, leads=True)))  # behind what was asked
    of_answers = "scores" if model.answers.kind == "score" else "probabilities"
    labels = list(model.answers.labels)
    found = (TextNumbers(p.text_name, {of_answers: list(getattr(p, of_answers))}, of=labels) for p in predictions)
    yield Result(report, rows=prediction_rows(report, model.answers), numbers=tuple(found))


def _compare_answers(answers: AnswerInfo, found: Sequence[Prediction], whole: Sequence[Prediction]) -> str:
    """Say what the model answers without a head taken out, and of texts with labels how much oftener it is right.

    That is paired by text: how many answers are others says nothing of whether they are better ones.
    """
    if len(whole) == 1:
        return f"{describe_reading('With all heads it', answers, whole[0]) if whole[0].is_judged else 'Not judged'}."
    several = [[(answers.choose_labels(each), each.scores) for each in of] for of in (found, whole)]
    n_changed = sum(one != other for one, other in zip(*several, strict=True))
    changed = f"{n_changed:,} of {format_count(len(whole), 'answers')} {'changes' if n_changed == 1 else 'change'}"
    right = np.array([[p.label == at for at, p in _list_scored(of, answers)] for of in (whole, found)], dtype=float)
    if not right.size:
        return f"With all heads {changed}."
    (gain,) = compare_pairs({"whole": right[0], "found": right[1]})
    interval = "" if isnan(gain.low) else f" ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"
    return f"With all heads {right[0].mean():.1%} are: {100 * gain.value:+.1f} points{interval}; {changed}."
