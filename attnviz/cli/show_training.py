"""A training run on the terminal: a bar while it lasts, a line per epoch, and its report at the end."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from attnviz.cli import show
from attnviz.cli.signals import heeded
from attnviz.specs.train import TrainSpec

if TYPE_CHECKING:
    from attnviz.models.training import TrainingStep
    from attnviz.workflows.train import Event, Started, Trained

SMOOTHING = 0.98  # of what the bar shows: about the last fifty steps


def trained(events: Generator[Event], spec: TrainSpec) -> None:
    """Show the run as it goes. Ctrl-C ends it after the step at work: the best so far and the state are kept."""
    from attnviz.workflows.train import Started, Trained

    for event in events:
        show.resume_gc()
        if isinstance(event, Started):
            _started(event)
            with _interrupts() as asked:
                event_after = _steps(events, event, spec, asked)
            _ended(event_after, spec)
        elif isinstance(event, Trained):  # the run had ended before
            show.note(f"{spec.out} holds the end of this run already; nothing was trained")
            _ended(event, spec)


def _steps(events: Generator[Event], started: Started, spec: TrainSpec, asked: list[int]) -> Trained:
    from attnviz.workflows.train import Trained

    progress = _Progress(started, spec)
    with progress.shown():
        for event in events:
            show.resume_gc()
            if isinstance(event, Trained):
                return event
            progress.step(event)  # type: ignore[arg-type]  # Started comes once
            if asked:
                events.close()  # saves the state
                break
    show.note(f"stopped after step {progress.done:,} of {started.n_steps:,}; {progress.kept}")
    show.note("the same command with --resume goes on")
    raise KeyboardInterrupt


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collects the first Ctrl-C, so that a step is never broken off; the second one does it."""
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, ask) for number in heeded()}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _started(event: Started) -> None:
    for notice in event.notices:
        show.note(notice)
    held = f", {event.n_held_out:,} held out" if event.n_held_out else ", none held out"
    show.note(f"training on {event.n_texts:,} texts of {event.data}{held}; {event.n_parameters:,} parameters")
    if event.n_done:
        show.note(f"going on after step {event.n_done:,} of {event.n_steps:,}")


def _ended(event: Trained, spec: TrainSpec) -> None:
    show.report(event.report, spec.json)
    show.note(f"wrote {show.listed(event.files)}")


class _Progress:
    """A bar on a terminal; elsewhere, as in CI, only a line per epoch."""

    def __init__(self, started: Started, spec: TrainSpec) -> None:
        self.started = started
        self.spec = spec
        self.done = started.n_done
        kept = f"{spec.out} holds epoch {started.n_kept}"
        self.kept = kept if started.n_kept else f"no epoch had ended, so {spec.out} holds no model yet"
        self.loss, self.accuracy, self.n_texts = 0.0, 0.0, 0
        self.n_seen = 0
        self.pretraining = False
        self.begun = time.monotonic()
        self.bar: Any = None
        self.task: Any = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            yield
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"))
        console = Console(stderr=True, markup=False, emoji=False, highlight=False)
        with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as self.bar:
            self.task = self.bar.add_task("training", total=self.started.n_steps, completed=self.started.n_done)
            yield

    def step(self, step: TrainingStep) -> None:
        self.done = step.number
        if step.pretraining is not self.pretraining:  # another loss
            self.pretraining, self.n_seen, self.n_texts, self.begun = step.pretraining, 0, 0, time.monotonic()
        self.n_texts += step.n_texts
        self.n_seen += 1
        # A mean that forgets: at the beginning over all steps, later over the last ones.
        share = max(1 - SMOOTHING, 1 / self.n_seen)
        self.loss += share * (step.loss - self.loss)
        self.accuracy += share * (step.accuracy - self.accuracy)
        if self.bar is not None:
            self.bar.update(self.task, completed=step.number, description=self._line(step))
        if step.ends_epoch:
            self._epoch(step)

    def _line(self, step: TrainingStep) -> str:
        if step.pretraining:
            epochs = f"pretraining epoch {step.epoch}/{self.spec.pretrain}"
            return f"{epochs}  loss of masked words {self.loss:.3f}  found {self.accuracy:.3f}"
        speed = self.n_texts / max(1e-9, time.monotonic() - self.begun)
        epochs = f"epoch {step.epoch}/{self.spec.epochs}"
        return f"{epochs}  loss {self.loss:.3f}  accuracy {self.accuracy:.3f}  {speed:,.0f} texts/s"

    def _epoch(self, step: TrainingStep) -> None:
        held = step.held_out
        told = f"; held out: loss {held.loss:.4f}, accuracy {held.accuracy:.4f}" if held else ""
        if step.improved:
            accuracy = f", held-out accuracy {held.accuracy:.4f}" if held else ""
            self.kept = f"{self.spec.out} holds epoch {step.epoch}{accuracy}"
        best = " (best so far)" if held and step.improved else ""
        line = self._line(step)
        if self.bar is not None:
            self.bar.print(f"{line}{told}{best}", soft_wrap=True)  # else a narrow terminal gets digits on several lines
        else:
            show.note(f"{line}{told}{best}")
