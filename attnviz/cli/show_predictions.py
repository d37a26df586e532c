"""Predictions on the terminal: a bar while they are made, then tables, JSON or CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from attnviz.cli import show
from attnviz.specs.predict import PredictSpec

if TYPE_CHECKING:
    from attnviz.workflows.predict import Event, Predicted

MIN_TEXTS_ON_A_BAR = 200  # fewer texts take less than a blink


def predicted(events: Iterator[Event], spec: PredictSpec) -> None:
    """Show what comes of a run, and its answers at the end."""
    from attnviz.workflows.predict import Classifying, Drew, Predicted

    for event in events:
        show.resume_gc()
        match event:
            case Classifying():
                for notice in event.notices:
                    show.note(notice)
                if event.n_texts >= MIN_TEXTS_ON_A_BAR and sys.stderr.isatty():
                    with show.bar("texts", event.n_texts) as advance:
                        for _ in range(event.n_texts):
                            next(events)
                            advance()
            case Drew():
                for notice in event.notices:
                    show.note(notice)
                show.note(f"wrote {show.listed(event.files)}")
            case Predicted():
                _answers(event, spec)


def _answers(event: Predicted, spec: PredictSpec) -> None:
    if spec.csv:
        from attnviz.renderers.csv import lines

        sys.stdout.writelines(lines(event.rows))
    else:
        show.report(event.report, spec.json)
