"""What `predict` draws beside its answers: attention, tokens that they depend on, or one page. Brings matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from attnviz import store
from attnviz.commands.train.predict_spec import PredictSpec
from attnviz.models.attribution import Attributable
from attnviz.models.protocols import Classifies
from attnviz.records.attribution import Question
from attnviz.records.training_metrics import Prediction
from attnviz.renderers import PAGE_FORMAT
from attnviz.report import Report
from attnviz.running import Events, Result
from attnviz.running.drawing import Drawing
from attnviz.running.explaining import Explaining
from attnviz.running.pictures import Pictures
from attnviz.text import Document
from attnviz.views.answers import describe_answer

MAX_LISTED = 10  # tokens of an answer that is explained


@dataclass(frozen=True)
class AnswerPictures:
    """How to draw the answers of `predict`, checked before a text is read."""

    spec: PredictSpec
    out: Path
    drawing: Drawing | None  # of attention
    explaining: Explaining | None  # of the tokens that an answer depends on
    page: Pictures | None  # of all answers

    @classmethod
    def from_spec(cls, spec: PredictSpec, out: Path) -> AnswerPictures:
        """Check how to draw. Raises InvalidOption."""
        figure, method = spec.figure, ("relevance",)
        return cls(
            spec,
            out,
            drawing=Drawing.from_options(figure) if spec.heatmap else None,
            explaining=Explaining.from_options(method, Question(), replace(figure, kind="text"), MAX_LISTED)
            if spec.attribute
            else None,
            page=None
            if spec.heatmap or spec.attribute
            else Pictures.from_options(replace(figure, format=(PAGE_FORMAT,)), (), store.RECORD),
        )

    def draw(self, model: Classifies, documents: Sequence[Document], predictions: Sequence[Prediction]) -> Events:
        """Draw each text, while no other run writes to the folder."""
        with store.locked(self.out):
            for document, prediction in zip(documents, predictions, strict=True):
                folder = self.out if len(documents) == 1 else self.out / document.slug
                if self.drawing is not None:
                    yield from self._draw_attention(self.drawing, model, document, prediction, folder)
            for document, prediction in zip(documents, predictions, strict=True):
                if self.explaining is None or not prediction.is_judged:
                    continue
                assert isinstance(model, Attributable)
                folder = self.out if len(documents) == 1 else self.out / document.slug
                drawn = yield from self.explaining.draw(model, document, folder)
                yield Result(files=drawn.files, notices=drawn.notices)

    def write_page(self, report: Report) -> Events:
        """Write the page of all answers, if there is one."""
        if self.page is not None:
            with store.locked(self.out):
                yield replace((yield from self.page.write(report, self.out, None)), report=None)

    def _draw_attention(
        self, drawing: Drawing, model: Classifies, document: Document, prediction: Prediction, folder: Path
    ) -> Events:
        """Draw attention over just what was read of a text, under a title that says its answer."""
        answer = describe_answer(model.answers, prediction) if prediction.is_judged else "unknown"
        title = self.spec.figure.title
        own = f"{model.name} reads {document.name} as {answer}" if title is None else title
        maps = model.attention(document.text, document.name)
        drawn = yield from replace(drawing, spec=replace(drawing.spec, title=own)).draw(maps, folder)
        yield Result(files=drawn.files, notices=drawn.notices)
