"""`attnviz predict`: from texts to labels and probabilities, and how often they are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from attnviz import store
from attnviz.commands.train.classify import classify_on, split_windows
from attnviz.commands.train.predict_spec import PredictSpec
from attnviz.commands.train.predictions import prediction_rows, predictions_report
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.inputs import Inputs, read_inputs
from attnviz.models.attribution import Attributable
from attnviz.models.built_in import TRAINED
from attnviz.models.loading import find_model
from attnviz.models.protocols import Classifies
from attnviz.records.attribution import Question
from attnviz.records.training_metrics import Prediction
from attnviz.report import LazyRows
from attnviz.running import Events, Progress, Result
from attnviz.running.executors import check_workers
from attnviz.running.local_executor import MEASURING, process_context
from attnviz.specs import FigureOptions
from attnviz.text import Document

if TYPE_CHECKING:
    from attnviz.running.drawing import Drawing
    from attnviz.running.explaining import Explaining
    from attnviz.running.pictures import Pictures

MAX_LISTED = 10  # tokens of an answer that is explained
MAX_DRAWN = 100  # texts with --heatmap: eight pictures each


def predict(spec: PredictSpec) -> Events:
    """Classify every chosen text, in order. What can be refused without reading a model is refused first.

    Raises InvalidModel for a model that was not trained, InvalidText for a text without tokens.
    """
    return _predict(spec, predict_inputs(spec), _page(spec))


def predict_inputs(spec: PredictSpec) -> Inputs:
    """One classifier and every chosen text. Raises InvalidOption, InvalidModel, InvalidSource or InvalidSelection."""
    check_workers(spec.workers)
    reference = find_model(spec.model)
    reference.check(Classifies)
    if spec.max_tokens is not None and spec.max_tokens < 2:
        raise InvalidOption(f"--max-tokens {spec.max_tokens} is too small", hint="It is at least 2.")
    draws = spec.heatmap or spec.attribute
    inputs = read_inputs([reference], spec.text, every=True, out=spec.figure.out if draws or _page(spec) else None)
    if draws and len(inputs.documents) > MAX_DRAWN:
        raise InvalidOption(
            f"--{'heatmap' if spec.heatmap else 'attribute'} would draw {len(inputs.documents):,} texts",
            hint=f"At most {MAX_DRAWN}: choose them with --index.",
        )
    return inputs


def _predict(spec: PredictSpec, inputs: Inputs, page: Pictures | None) -> Events:
    chosen = inputs.documents
    windows = split_windows(chosen)
    n_workers = min(spec.workers or 1, len(windows))
    if n_workers > 1:
        process_context(MEASURING)  # what the others are forked from imports while this one does
    from attnviz.models.device import return_freed_memory

    return_freed_memory()
    model = inputs.model.open(inputs.corpus.texts)
    if not isinstance(model, Classifies):
        raise InvalidModel(f"{spec.model.model} was never trained and cannot classify", hint=TRAINED)
    limit = spec.max_tokens or model.max_tokens, spec.keep or model.keep
    model = model.limit_tokens(*limit)
    drawing = _drawing(spec.figure) if spec.heatmap else None
    explaining = _explaining(spec.figure) if spec.attribute else None
    yield Progress(0, len(chosen), "texts", notices=inputs.corpus.notices)
    predictions = []
    for prediction in classify_on(n_workers, inputs.model, limit, windows) if n_workers > 1 else model.classify(chosen):
        predictions.append(prediction)
        yield Progress(len(predictions), len(chosen), "texts", prediction.text_name)
    if drawing is not None:
        with store.locked(inputs.out):
            yield from _drawn(spec, drawing, model, list(zip(chosen, predictions, strict=True)))
    if explaining is not None:
        with store.locked(inputs.out):
            yield from _explained(spec, explaining, model, chosen)
    report = predictions_report(
        predictions,
        labels=model.labels,
        model=model.name,
        status=f"trained, weights sha256 {model.revision[:8]}…",
        corpus=inputs.corpus.name if len(chosen) != 1 else chosen[0].name,
    )
    if page is not None:
        with store.locked(inputs.out):
            yield replace((yield from page.write(report, inputs.out, None)), report=None)
    rows = LazyRows(lambda: prediction_rows(predictions, model.labels))
    found = {each.text_name: {"probabilities": [list(each.probabilities)]} for each in predictions}
    yield Result(report, rows=rows, numbers=found)


def _page(spec: PredictSpec) -> Pictures | None:
    """How to write all answers as a page, if one is asked for: with --heatmap or --attribute, each text has its own."""
    formats = [name.strip().lower() for item in spec.figure.format for name in item.split(",")]
    if spec.heatmap or spec.attribute or "html" not in formats:
        return None
    from attnviz.running.pictures import PAGE, Pictures  # matplotlib comes with it

    return Pictures.of(replace(spec.figure, format=(PAGE,)), (), store.RECORD)


def _drawing(figure: FigureOptions) -> Drawing:
    """How to draw. Raises InvalidOption before a text is read."""
    from attnviz.running.drawing import Drawing

    return Drawing.of(figure)


def _explaining(figure: FigureOptions) -> Explaining:
    """How to explain. Raises InvalidOption before a text is read."""
    from attnviz.running.explaining import Explaining

    return Explaining.of(("relevance",), Question(), replace(figure, kind="text"), MAX_LISTED)


def _explained(spec: PredictSpec, explaining: Explaining, model: Classifies, chosen: Sequence[Document]) -> Events:
    """Which tokens each answer hangs on."""
    assert isinstance(model, Attributable)
    out = store.output_folder(spec.figure.out)
    for document in chosen:
        drawn = yield from explaining.draw(model, document, out if len(chosen) == 1 else out / document.slug)
        yield Result(files=drawn.files, notices=drawn.notices)


def _drawn(
    spec: PredictSpec, drawing: Drawing, model: Classifies, answered: list[tuple[Document, Prediction]]
) -> Events:
    """Attention over just what was read of each text, under a title that says what came of it."""
    for document, prediction in answered:
        said = f"{model.labels[prediction.label]} ({prediction.probability:.2f})"
        own = f"{model.name} reads {document.name} as {said}" if spec.figure.title is None else spec.figure.title
        titled = replace(drawing.spec, title=own)
        out = store.output_folder(spec.figure.out)
        maps = model.attention(document.text, document.name)
        folder = out if len(answered) == 1 else out / document.slug
        drawn = yield from replace(drawing, spec=titled).draw(maps, folder)
        yield Result(files=drawn.files, notices=drawn.notices)
