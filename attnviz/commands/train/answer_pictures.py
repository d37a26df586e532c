"""What `predict` draws beside its answers: attention, tokens that they depend on, or one page. Brings matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from attnviz import store
from attnviz.commands.train.spec import PredictSpec
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
        figure = spec.figure
        drawing = explaining = page = None
        if spec.heatmap:
            drawing = Drawing.from_options(figure)
        if spec.attribute:
            text = replace(figure, kind="text")
            explaining = Explaining.from_options(("relevance",), Question(), text, MAX_LISTED)
        if not (spec.heatmap or spec.attribute):
            page = Pictures.from_options(replace(figure, format=(PAGE_FORMAT,)), (), store.RECORD)
        return cls(spec, out, drawing, explaining, page)

    def draw(self, model: Classifies, documents: Sequence[Document], predictions: Sequence[Prediction]) -> Events:
        """Draw each text, while no other run writes to the folder."""
        title = self.spec.figure.title
        folders = [self.out if len(documents) == 1 else self.out / document.slug for document in documents]
        several = [*zip(documents, predictions, folders, strict=True)]
        with store.locked(self.out):
            for document, prediction, folder in several:
                if self.drawing is not None:  # just what was read of a text, under a title that says its answer
                    answer = describe_answer(model.answers, prediction) if prediction.is_judged else "unknown"
                    own = f"{model.name} reads {document.name} as {answer}" if title is None else title
                    maps = model.attention(document.text, document.name)
                    titled = replace(self.drawing, spec=replace(self.drawing.spec, title=own))
                    drawn = yield from titled.draw(maps, folder)
                    yield Result(files=drawn.files, notices=drawn.notices)
            for document, prediction, folder in several:
                if self.explaining is not None and prediction.is_judged:
                    assert isinstance(model, Attributable)
                    drawn = yield from self.explaining.draw(model, document, folder)
                    yield Result(files=drawn.files, notices=drawn.notices)

    def write_page(self, report: Report) -> Events:
        """Write the page of all answers, if there is one."""
        if self.page is not None:
            with store.locked(self.out):
                yield replace((yield from self.page.write(report, self.out, None)), report=None)
