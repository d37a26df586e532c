"""`attnviz train`, told as progress and one result: losses that are means of the last steps, a line per epoch."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING

from attnviz.specs.train import TrainSpec
from attnviz.workflows import Events, Progress, Result
from attnviz.workflows import train as training
from attnviz.workflows.train import Event, Started, Trained

if TYPE_CHECKING:
    from attnviz.models.training import TrainingStep

SMOOTHING = 0.98  # of what is said between epochs: about the last fifty steps


def train(spec: TrainSpec) -> Events:
    """Train as `workflows.train` does. Where the iteration is left between two steps, `--resume` goes on."""
    return _told(training.train(spec), spec)


def _told(events: Generator[Event], spec: TrainSpec) -> Events:
    first = next(events)
    if isinstance(first, Trained):  # the run had ended before
        yield _result(first, f"{spec.out} holds the end of this run already; nothing was trained")
        return
    assert isinstance(first, Started)
    progress = _Progress(first, spec)
    with closing(events):
        yield progress.begun()
        for event in events:
            if isinstance(event, Trained):
                yield _result(event)
            else:
                yield progress.after(event)  # type: ignore[arg-type]  # Started comes once


def _result(trained: Trained, *notices: str) -> Result:
    return Result(trained.report, trained.files, notices)


class _Progress:
    """What is said of each step."""

    def __init__(self, started: Started, spec: TrainSpec) -> None:
        self.started = started
        self.spec = spec
        kept = f"{spec.out} holds epoch {started.n_kept}"
        self.kept = kept if started.n_kept else f"no epoch had ended, so {spec.out} holds no model yet"
        self.loss, self.accuracy, self.n_texts, self.n_seen = 0.0, 0.0, 0, 0
        self.pretraining = False
        self.since = time.monotonic()

    def begun(self) -> Progress:
        """Before the first step."""
        started = self.started
        held = f", {started.n_held_out:,} held out" if started.n_held_out else ", none held out"
        what = f"training on {started.n_texts:,} texts of {started.data}{held}; {started.n_parameters:,} parameters"
        later = [f"going on after step {started.n_done:,} of {started.n_steps:,}"] if started.n_done else []
        return self._progress(started.n_done, "training", (*started.notices, what, *later))

    def after(self, step: TrainingStep) -> Progress:
        """After one step."""
        if step.pretraining is not self.pretraining:  # another loss
            self.pretraining, self.n_seen, self.n_texts, self.since = step.pretraining, 0, 0, time.monotonic()
        self.n_texts += step.n_texts
        self.n_seen += 1
        # A mean that forgets: at the beginning over all steps, later over the last ones.
        share = max(1 - SMOOTHING, 1 / self.n_seen)
        self.loss += share * (step.loss - self.loss)
        self.accuracy += share * (step.accuracy - self.accuracy)
        line = self._line(step)
        return self._progress(step.number, line, (self._epoch(step, line),) if step.ends_epoch else ())

    def _progress(self, done: int, label: str, notices: tuple[str, ...]) -> Progress:
        of = f"{done:,} of {self.started.n_steps:,}"
        left = (f"stopped after step {of}; {self.kept}", "the same command with --resume goes on")
        return Progress(done, self.started.n_steps, "steps", label=label, notices=notices, if_left=left)

    def _line(self, step: TrainingStep) -> str:
        if step.pretraining:
            epochs = f"pretraining epoch {step.epoch}/{self.spec.pretrain}"
            return f"{epochs}  loss of masked words {self.loss:.3f}  found {self.accuracy:.3f}"
        speed = self.n_texts / max(1e-9, time.monotonic() - self.since)
        epochs = f"epoch {step.epoch}/{self.spec.epochs}"
        return f"{epochs}  loss {self.loss:.3f}  accuracy {self.accuracy:.3f}  {speed:,.0f} texts/s"

    def _epoch(self, step: TrainingStep, line: str) -> str:
        held = step.held_out
        told = f"; held out: loss {held.loss:.4f}, accuracy {held.accuracy:.4f}" if held else ""
        if step.improved:
            accuracy = f", held-out accuracy {held.accuracy:.4f}" if held else ""
            self.kept = f"{self.spec.out} holds epoch {step.epoch}{accuracy}"
        best = " (best so far)" if held and step.improved else ""
        return f"{line}{told}{best}"
