"""What models answer, in words: labels with probabilities, numbers, and how they go with given labels."""

from collections.abc import Iterator, Sequence

from attnviz.display import escape_for_display, format_count, list_first
from attnviz.records.answers import AnswerInfo, Prediction
from attnviz.records.attribution import Target
from attnviz.records.head_names import write_share

MAX_NAMED = 5  # labels in a sentence
MAX_NAME = 24
CLEAR = 2  # times the rival's probability
NO_LABEL = "no label"


def quote_answer(name: str) -> str:
    """Quote an answer; the space that begins a word is left out."""
    return f"‘{escape_for_display(name.removeprefix(' ') or name, MAX_NAME)}’"


def describe_target(model: str, target: Target) -> str:
    """Say what a model answers and rather than what, or that it has no clear answer: less than twice the rival's."""
    verb = {"token": "goes on with", "masked token": "fills in", "score": "gives"}.get(target.form, "says")
    write = "{:.2f}".format if target.form == "score" else write_share
    found = sorted([(target.name, target.value), *filter(None, [target.rival])], key=lambda each: -each[1])
    first, *others = (f"{quote_answer(name)} ({write(share)})" for name, share in found)
    if not others:
        return f"{model} {verb} {first}"
    if is_clear(target):
        return f"{model} {verb} {first} rather than {others[0]}"
    return f"{model} has no clear answer: {first} or {others[0]}"


def is_clear(target: Target) -> bool:
    """Tell whether one of an answer and its rival is twice as probable as the other; True where there is no rival."""
    shares = sorted([target.value, target.rival[1]] if target.rival else [0.0, 0.0])
    return shares[1] >= CLEAR * shares[0]


def describe_answer(answers: AnswerInfo, prediction: Prediction) -> str:
    """Return the whole answer to one text: "positive (0.93)", or of numbers "score +0.123"."""
    labels = [escape_for_display(label, MAX_NAME) for label in answers.labels]
    if answers.kind == "score":
        return ", ".join(f"{label} {score:+.3f}" for label, score in zip(labels, prediction.scores, strict=True))
    chosen = answers.choose_labels(prediction)
    return ", ".join(f"{labels[place]} ({prediction.probabilities[place]:.2f})" for place in chosen) or NO_LABEL


def describe_reading(model: str, answers: AnswerInfo, prediction: Prediction) -> str:
    """Say how a model reads one text: of one of several labels as an explanation does, with its rival."""
    if answers.kind != "label":
        return f"{model} reads it as {describe_answer(answers, prediction)}"
    both = sorted(zip(answers.labels, prediction.probabilities, strict=True), key=lambda each: -each[1])
    (name, share), *others = both[:2]
    return describe_target(model, Target(name, probability=share, rival=next(iter(others), None), form="label"))


def describe_given_labels(answers: AnswerInfo, given: Sequence[int | None]) -> Iterator[str]:
    """Yield how the labels that come with texts are read, or why they are not; nothing of a model trained on them."""
    if all(number is None for number in given):
        return
    if lacking := answers.list_lacking(given):
        known = list_first(answers.list_numbers(), MAX_NAMED, lambda pair: f"{pair[0]} ({escape_for_display(pair[1])})")
        n = sum(number in lacking for number in given)
        texts = f"{n} of {format_count(len(given), 'texts')} ({list_first(lacking, MAX_NAMED, str)})"
        said = f"the model lacks that of {texts}, so that all may mean something else. It has {known}"
        yield f"Given labels are not compared: {said}."
        return
    if not answers.third_party:
        return
    names = list_first(answers.labels, MAX_NAMED, escape_for_display)
    if answers.numbers is not None:
        read = list_first(answers.list_numbers(), MAX_NAMED, lambda pair: f"{pair[0]} as {escape_for_display(pair[1])}")
        yield f"Given labels are read by the names of the model's own: {read}."
        return
    reasons = {
        "score": f"the model answers with {'a number' if len(answers.labels) == 1 else 'numbers'}, not with a label",
        "labels": "the model gives a text any number of labels",
        "label": f"the names of the model's own ({names}) do not say which number each has",
    }
    yield f"Given labels are not compared: {reasons[answers.kind]}."
