"""`attnviz predict`: from texts to labels and probabilities, and how often they are right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from attnviz import store
from attnviz.errors import BadModel, BadOption
from attnviz.models.names import ModelName, resolve
from attnviz.outcomes import Prediction
from attnviz.report import Report
from attnviz.selection import numbers
from attnviz.specs.figure import FigureOptions
from attnviz.specs.predict import PredictSpec
from attnviz.text.document import Corpus, Document
from attnviz.views.predictions import prediction_rows, predictions_report
from attnviz.workflows.keeping import checkpoint_of, corpus_of

if TYPE_CHECKING:
    from attnviz.models.checkpoint import Checkpoint
    from attnviz.workflows.drawing import Drawing, Pictures

MOST_DRAWN = 100  # texts with --heatmap: eight pictures each
TRAINED = "Choose single, multi, multi:2, multi:4 or a checkpoint folder."


@dataclass(frozen=True, eq=False)
class Classifying:
    """What is about to be classified, and what the user has to know."""

    n_texts: int
    notices: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Drew:
    """The pictures of one text, or the page of all answers."""

    files: tuple[Path, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Predicted:
    """All answers together: as a report, and as rows for a spreadsheet."""

    report: Report
    rows: Iterator[tuple[str, ...]]


Event: TypeAlias = Classifying | Prediction | Drew | Predicted


def predict(spec: PredictSpec) -> Iterator[Event]:
    """Classify every chosen text, in order. What can be refused without reading a model is refused first.

    Raises BadModel for a model that was not trained, BadText for a text without tokens.
    """
    name = resolve(spec.model)
    if name.kind == "pretrained":
        problem = f"no model or checkpoint folder {name.hub!r}" if name.hub else f"{name} is not a classifier of ours"
        raise BadModel(problem, hint=TRAINED)
    if name.folder is None:
        raise BadModel(f"{name} has random weights and cannot classify", hint=TRAINED)
    if spec.json and spec.csv:
        raise BadOption("--json and --csv exclude each other", hint="Leave one of them out.")
    if spec.max_tokens is not None and spec.max_tokens < 2:
        raise BadOption(f"--max-tokens {spec.max_tokens} is too small", hint="It is at least 2.")
    corpus = corpus_of(spec.text)
    chosen = [corpus.documents[i] for i in numbers(spec.text.index, len(corpus.documents), "text")]
    page = _page(spec)
    if spec.heatmap or page is not None:
        store.output_folder(spec.figure.out)
    if spec.heatmap and len(chosen) > MOST_DRAWN:
        raise BadOption(
            f"--heatmap would draw {len(chosen):,} texts", hint=f"At most {MOST_DRAWN}: choose them with --index."
        )
    return _predicted(spec, name, corpus, chosen, page)


def _predicted(
    spec: PredictSpec, name: ModelName, corpus: Corpus, chosen: list[Document], page: Pictures | None
) -> Iterator[Event]:
    from attnviz.models.device import pick
    from attnviz.models.opening import called
    from attnviz.models.predicting import Predictor

    device = pick(spec.model.device)
    assert name.folder is not None
    saved = checkpoint_of(name.folder)
    if not saved.trained:
        raise BadModel(f"{spec.model.model} was never trained and cannot classify", hint=TRAINED)
    spec = replace(spec, max_tokens=spec.max_tokens or saved.max_tokens, keep=spec.keep or saved.keep)
    assert spec.max_tokens is not None
    assert spec.keep is not None
    drawing = _drawing(spec.figure) if spec.heatmap else None
    yield Classifying(len(chosen), corpus.notices)
    predictor = Predictor(saved.classifier.to(device), saved.tokenizer, spec.max_tokens, spec.keep)
    predictions = []
    answers = predictor.answers((document.text for document in chosen), [document.name for document in chosen])
    for document, answer in zip(chosen, answers, strict=True):
        probabilities = tuple(answer.probabilities.tolist())
        predictions.append(Prediction(document.name, probabilities, document.label, answer.n_tokens, answer.n_read))
        yield predictions[-1]
    labels = saved.classifier.config.labels
    if drawing is not None:
        with store.locked(store.output_folder(spec.figure.out)):
            yield from _drawn(spec, drawing, saved, called(name), list(zip(chosen, predictions, strict=True)))
    report = predictions_report(
        predictions,
        labels=labels,
        model=called(name),
        status=f"trained, weights sha256 {saved.revision[:8]}…",
        corpus=corpus.name if len(chosen) != 1 else chosen[0].name,
    )
    if page is not None:
        out = store.output_folder(spec.figure.out)
        with store.locked(out):
            written = page.write(report, out, None)
        yield Drew(written.files, written.notices)
    yield Predicted(report, prediction_rows(predictions, labels))


def _page(spec: PredictSpec) -> Pictures | None:
    """How to write all answers as a page, if one is asked for: with --heatmap, each text has a page of its own."""
    formats = [name.strip().lower() for item in spec.figure.format for name in item.split(",")]
    if spec.heatmap or "html" not in formats:
        return None
    from attnviz.workflows.drawing import PAGE, Pictures  # matplotlib comes with it

    return Pictures.of(replace(spec.figure, format=(PAGE,)), (), store.RECORD)


def _drawing(figure: FigureOptions) -> Drawing:
    """How to draw. Raises BadOption before a text is read."""
    from attnviz.workflows.drawing import Drawing

    return Drawing.of(figure)


def _drawn(
    spec: PredictSpec,
    drawing: Drawing,
    saved: Checkpoint,
    name: str,
    answered: list[tuple[Document, Prediction]],
) -> Iterator[Drew]:
    """Attention over just what was read of each text, under a title that says what came of it."""
    from attnviz.models.device import pick
    from attnviz.models.opening import attending

    model = replace(spec.model, max_tokens=spec.max_tokens, keep=spec.keep or saved.keep)
    attender = attending(saved, name, model, pick(spec.model.device))
    labels = saved.classifier.config.labels
    for document, prediction in answered:
        said = f"{labels[prediction.label]} ({prediction.probability:.2f})"
        own = f"{name} reads {document.name} as {said}" if spec.figure.title is None else spec.figure.title
        titled = replace(drawing.spec, title=own)
        out = store.output_folder(spec.figure.out)
        maps = attender.attention(document.text, document.name)
        drawn = replace(drawing, spec=titled).draw(maps, out if len(answered) == 1 else out / document.slug)
        yield Drew(drawn.files, drawn.notices)
