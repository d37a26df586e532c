"""`attnviz predict`: from texts to labels and probabilities, and how often they are right."""

from __future__ import annotations

from collections.abc import Iterable

from attnviz.commands.train.classify import classify_on
from attnviz.commands.train.predict_inputs import draws_pictures, split_windows
from attnviz.commands.train.predict_spec import PredictSpec
from attnviz.commands.train.predictions import prediction_rows, predictions_report
from attnviz.errors import InvalidModel
from attnviz.inputs import Inputs
from attnviz.models.built_in import TRAINED
from attnviz.models.device import return_freed_memory
from attnviz.models.protocols import Classifies
from attnviz.records.training_metrics import Prediction
from attnviz.registry import load
from attnviz.report import LazyRows
from attnviz.running import Events, Progress, Result

PICTURES = "attnviz.commands.train.answer_pictures:AnswerPictures"  # imported when asked for: it brings matplotlib


def predict(spec: PredictSpec, inputs: Inputs) -> Events:
    """Classify or score every chosen text, in order.

    Raises InvalidModel for a model that was not trained, InvalidText for a text without tokens.
    """
    pictures = load(PICTURES).from_spec(spec, inputs.out) if draws_pictures(spec) else None
    chosen = inputs.documents
    return_freed_memory()
    model = inputs.model.open(inputs.corpus.texts)
    if not isinstance(model, Classifies):
        raise InvalidModel(f"{spec.model.model} was never trained and cannot classify", hint=TRAINED)
    limit = spec.max_tokens or model.max_tokens, spec.keep or model.keep
    model = model.limit_tokens(*limit)
    yield Progress(0, len(chosen), "texts", notices=inputs.corpus.notices)
    answers: Iterable[Prediction]
    if inputs.n_workers > 1 and not spec.model.without_mean:  # a mean over the texts is worked out once
        answers = classify_on(inputs.n_workers, inputs.model, limit, split_windows(chosen))
    else:
        answers = model.classify(chosen)
    predictions = []
    for prediction in answers:
        predictions.append(prediction)
        yield Progress(len(predictions), len(chosen), "texts", prediction.text_name)
    if pictures is not None:
        yield from pictures.draw(model, chosen, predictions)
    report = predictions_report(
        predictions,
        answers=model.answers,
        model=model.name,
        status=f"{'trained, ' if model.trained else ''}weights sha256 {model.revision.removeprefix('sha256:')[:8]}…",
        corpus=inputs.corpus.name if len(chosen) != 1 else chosen[0].name,
    )
    if pictures is not None:
        yield from pictures.write_page(report)
    rows = LazyRows(lambda: prediction_rows(predictions, model.answers))
    of_answers = "scores" if model.answers.kind == "score" else "probabilities"
    found = {each.text_name: {of_answers: [list(getattr(each, of_answers))]} for each in predictions}
    yield Result(report, rows=rows, numbers=found)
