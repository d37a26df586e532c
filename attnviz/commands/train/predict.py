"""`attnviz predict`: from texts to labels and probabilities, and how often they are right."""

from collections.abc import Sequence
from dataclasses import replace

from attnviz.commands.train.predictions import prediction_rows, predictions_report
from attnviz.commands.train.spec import PredictSpec
from attnviz.display import format_count
from attnviz.errors import InvalidModel
from attnviz.inputs import Inputs
from attnviz.models.built_in import TRAINED
from attnviz.models.device import return_freed_memory
from attnviz.models.loading import find_model
from attnviz.models.protocols import Classifies
from attnviz.records.answers import AnswerInfo
from attnviz.records.training_metrics import Prediction
from attnviz.report import Note
from attnviz.running import Events, Progress, Result
from attnviz.store.manifest import TextNumbers
from attnviz.views.answers import describe_answer


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
    model = model.limit_tokens(*limit)
    yield Progress(0, len(chosen), "texts", notices=inputs.corpus.notices)
    predictions = []
    for prediction in model.classify(chosen):
        predictions.append(prediction)
        yield Progress(len(predictions), len(chosen), "texts", prediction.text_name)
    report = predictions_report(
        predictions,
        answers=model.answers,
        model=model.name,
        status=f"{'trained, ' if model.trained else ''}weights sha256 {model.revision.removeprefix('sha256:')[:8]}…",
        corpus=inputs.corpus.name if len(chosen) != 1 else chosen[0].name,
    )
    if spec.model.without:
        whole = find_model(replace(spec.model, without=())).open(inputs.corpus.texts)
        assert isinstance(whole, Classifies)
        said = _compare_answers(model.answers, predictions, list(whole.limit_tokens(*limit).classify(chosen)))
        report = replace(report, blocks=(Note(said, leads=True), *report.blocks))
    of_answers = "scores" if model.answers.kind == "score" else "probabilities"
    labels = list(model.answers.labels)
    found = (TextNumbers(p.text_name, {of_answers: list(getattr(p, of_answers))}, of=labels) for p in predictions)
    yield Result(report, rows=prediction_rows(report, model.answers), numbers=tuple(found))


def _compare_answers(answers: AnswerInfo, found: Sequence[Prediction], whole: Sequence[Prediction]) -> str:
    """Say what the model answers without a head taken out."""
    if len(whole) == 1:
        return f"With all heads: {describe_answer(answers, whole[0]) if whole[0].is_judged else '-'}."
    several = [[(answers.choose_labels(each), each.scores) for each in of] for of in (found, whole)]
    n_changed = sum(one != other for one, other in zip(*several, strict=True))
    return f"With all heads {n_changed:,} of {format_count(len(whole), 'texts')} get another answer."
