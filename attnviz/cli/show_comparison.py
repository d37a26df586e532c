"""A comparison on the terminal: a bar while texts are read, then tables and a verdict, or one document for machines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from attnviz.cli import show
from attnviz.specs.compare import CompareSpec

if TYPE_CHECKING:
    from attnviz.workflows.compare import Event, Outcome

MIN_TEXTS_ON_A_BAR = 20  # fewer texts take a second or two


def compared(events: Iterator[Event], spec: CompareSpec) -> None:
    """Show what comes of a comparison."""
    from attnviz.workflows.compare import Comparing, Outcome

    for event in events:
        show.resume_gc()
        match event:
            case Comparing():
                for notice in event.notices:
                    show.note(notice)
                if event.n_texts >= MIN_TEXTS_ON_A_BAR and sys.stderr.isatty():
                    with show.bar("texts", event.n_texts) as advance:
                        for _ in range(event.n_texts):
                            next(events)
                            advance()
            case Outcome():
                _outcome(event, spec)


def _outcome(event: Outcome, spec: CompareSpec) -> None:
    for notice in event.notices:
        show.note(notice)
    if spec.csv:
        from attnviz.renderers.csv import lines

        sys.stdout.writelines(lines(event.rows))
    elif spec.markdown:
        from attnviz.renderers.markdown import document

        show.line(document(event.report, {file.stem: str(file) for file in event.files if file.suffix == ".png"})[:-1])
    else:
        show.report(event.report, spec.json)
    show.note(f"wrote {show.listed(event.files)}")
