"""From a text and an answer to pictures of which tokens the answer depends on: what commands that explain share."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz import store
from attnviz.errors import InvalidText
from attnviz.models.attribution import Attributable
from attnviz.records import Tokens
from attnviz.records.attribution import Attribution, Question
from attnviz.running import Progress, Result
from attnviz.specs import OTHER_LANGUAGES, FigureOptions
from attnviz.text import Document
from attnviz.views.attribution import attribution_report, attribution_rows

if TYPE_CHECKING:
    from attnviz.running.pictures import Pictures

PICTURES = ("attribution",)


@dataclass(frozen=True)
class Explaining:
    """How texts are explained and drawn, checked before any work is done."""

    methods: Sequence[str]
    question: Question
    pictures: Pictures
    title: str | None
    top_k: int

    @classmethod
    def from_options(cls, methods: Sequence[str], question: Question, figure: FigureOptions, top_k: int) -> Explaining:
        """Raises InvalidOption for what cannot be drawn."""
        from attnviz.running.pictures import Pictures  # matplotlib comes with it

        return cls(methods, question, Pictures.from_options(figure, PICTURES, store.RECORD), figure.title, top_k)

    def draw(self, model: Attributable, document: Document, folder: Path) -> Generator[Progress, None, Result]:
        """One text by each method, drawn into a folder. Raises as models and methods do."""
        from attnviz.models.attribution.subject import attribute as score  # torch comes with it

        subject = model.subject(document.text, document.name, self.question)
        check_known(subject.tokens, document.name)
        found: list[Attribution] = []
        for method in self.methods:
            yield Progress(len(found), len(self.methods), "methods", method)
            found.append(score(subject, method))
        report = attribution_report(found, self.title, self.top_k)
        drawn = yield from self.pictures.write(report, folder, None)
        return replace(drawn, rows=attribution_rows(found), is_text=True)


def check_known(tokens: Tokens, name: str) -> None:
    """Raise InvalidText where the vocabulary does not hold half of a text: there is no verdict to explain."""
    if tokens.mostly_unknown:
        found = f"{sum(tokens.unknown)} of {len(tokens) - sum(tokens.special)} tokens of {name}"
        raise InvalidText(
            f"{found} are not in the model's vocabulary, so its answer says little of the text",
            hint=OTHER_LANGUAGES,
        )
