"""The blocks of a survey, shared out and merged as they come; what is done stays, however the run ends."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

from attnviz import store
from attnviz.commands.survey.facts import N_RANDOM, model_facts
from attnviz.commands.survey.file import PARTIAL, survey_bytes
from attnviz.commands.survey.plan import SurveyPlan
from attnviz.commands.survey.survey import ModelFacts, Survey, SurveyInfo, merge_surveys
from attnviz.commands.survey.texts import survey_block
from attnviz.models.loading import ModelReference
from attnviz.running import Progress
from attnviz.running.executors import get_result, report_worker_death, wait_briefly
from attnviz.running.open_model import open_model
from attnviz.text import Document

SAVE_EVERY = 30.0  # seconds
MERGED_AT_ONCE = 16  # results
PART = "{} holds {:,} of {:,} texts; the same command goes on"

Found = TypeVar("Found")
Opening: TypeAlias = tuple[ModelReference, tuple[str, ...]]  # what `open_model` takes


def measure_block(
    opening: Opening,
    info: SurveyInfo,
    block: int,
    documents: Sequence[Document],
    slopes: np.ndarray,
    means: np.ndarray | None,
) -> Survey:
    """What a worker does: one block. Raises what reading the model and its texts raises."""
    return survey_block(open_model(*opening), info, block, documents, slopes, means)


def measure_facts(
    opening: Opening, info: SurveyInfo, documents: Sequence[Document], on_few_texts: Sequence[str]
) -> ModelFacts:
    """What one worker does once for a survey. Raises as `model_facts` does."""
    return model_facts(open_model(*opening), info, documents, on_few_texts)


@dataclass(eq=False)
class SurveyRun:
    """A survey while it is made. `survey` is what was known before, and grows."""

    plan: SurveyPlan
    folder: Path
    survey: Survey
    results: list[Survey] = field(default_factory=list)  # not merged yet
    begun: float = field(default_factory=time.monotonic)
    saved: float = field(default_factory=time.monotonic)
    n_before: int = 0

    def run(self, executor: Executor, n_tasks: int) -> Generator[Progress, None, Survey]:
        """Measure every block that is not known. Where the iteration is left, the partial file holds what was done.

        Raises ExecutionError where a worker dies again and again, and what a worker raises.
        """
        self.n_before = self._n_done
        try:
            yield self._progress()
            yield from self._measure(executor, n_tasks)
            self._merge()
            self.survey = replace(self.survey, n_texts=self.plan.n_texts)
        finally:
            self._merge()
            if self._n_done:
                self._save()
        return self.survey

    def _measure(self, executor: Executor, n_tasks: int) -> Generator[Progress]:
        plan, pending = self.plan, set[Future[Survey]]()
        opening = (plan.reference, plan.vocabulary)
        facts: Future[ModelFacts] | None = None
        if plan.shard[0] == 0 and self.survey.facts is None:
            facts = executor.submit(measure_facts, opening, plan.info, plan.few, plan.on_few_texts)
        blocks = (each for each in plan.blocks() if not self.survey.has_block(each[0]))
        while True:
            for block, documents in islice(blocks, n_tasks - len(pending)):
                given = (opening, plan.info, block, documents, plan.slopes, plan.means)
                pending.add(executor.submit(measure_block, *given))
            if not pending:
                break
            ended, pending = wait_briefly(executor, pending)
            self.results += map(_result, ended)
            if len(self.results) >= MERGED_AT_ONCE:
                self._merge()
            if time.monotonic() - self.saved > SAVE_EVERY:
                self._save()
            yield self._progress()
        if facts is not None:
            while not facts.done():
                wait_briefly(executor, {facts})
                yield self._progress()
            self.survey = replace(self.survey, facts=_result(facts))

    @property
    def _n_done(self) -> int:
        return sum(each.summary.n_texts + len(each.skipped) for each in (self.survey, *self.results))

    @property
    def _awaits_chance(self) -> bool:
        return self.plan.shard[0] == 0 and self.survey.facts is None and "random" in self.plan.on_few_texts

    def _merge(self) -> None:
        if self.results:
            self.survey, self.results = merge_surveys([self.survey, *self.results]), []

    def _save(self) -> None:
        self._merge()
        store.write(self.folder / PARTIAL, survey_bytes(self.survey))
        self.saved = time.monotonic()

    def _progress(self) -> Progress:
        done, total = self._n_done, -(-self.plan.n_texts // self.plan.shard[1])
        rate = (done - self.n_before) / max(1e-9, time.monotonic() - self.begun)
        label = f"{rate:,.0f} texts/s" if done > self.n_before else "texts"
        if self._awaits_chance and done in (self.n_before, total):
            label = f"what chance gives, by {N_RANDOM} untrained models"
        if done > self.n_before and done < total:
            label += f", {_duration((total - done) / rate)} left"
        left = PART.format(self.folder / PARTIAL, done, total)
        return Progress(min(done, total), total, "texts", latest=label, label=label, if_left=(left,))


def _result(future: Future[Found]) -> Found:
    with report_worker_death("texts", hint="Fewer --max-tokens take less memory."):
        return get_result(future)


def _duration(seconds: float) -> str:
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes:.0f} min" if minutes < 90 else f"{hours:.1f} h"
