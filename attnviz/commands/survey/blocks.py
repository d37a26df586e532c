"""The blocks of a survey, shared out and written as they come; what is done stays, however the run ends."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias, TypeVar

import numpy as np

from attnviz.commands.survey.facts import N_RANDOM, model_facts
from attnviz.commands.survey.files import SurveyFiles
from attnviz.commands.survey.measure import Measured, measure_block
from attnviz.commands.survey.plan import SurveyPlan
from attnviz.commands.survey.survey import ModelFacts, SurveyInfo
from attnviz.models.loading import ModelReference
from attnviz.running import Progress
from attnviz.running.executors import get_result, report_worker_death, wait_briefly
from attnviz.running.open_model import open_model
from attnviz.text import Document

SAVE_EVERY = 30.0  # seconds
WRITTEN_AT_ONCE = 16  # blocks
PART = "{} holds {:,} of {:,} texts; the same command goes on"

Found = TypeVar("Found")
Opening: TypeAlias = tuple[ModelReference, tuple[str, ...]]  # what `open_model` takes


def measure_documents(
    opening: Opening, info: SurveyInfo, block: int, documents: Sequence[Document], means: np.ndarray | None
) -> Measured:
    """What a worker does: one block. Raises what reading the model and its texts raises."""
    return measure_block(open_model(*opening), info, block, documents, means)


def measure_facts(
    opening: Opening, info: SurveyInfo, documents: Sequence[Document], on_few_texts: Sequence[str]
) -> ModelFacts:
    """What one worker does once for a survey. Raises as `model_facts` does."""
    return model_facts(open_model(*opening), info, documents, on_few_texts)


@dataclass(eq=False)
class SurveyRun:
    """A survey while it is made. `files` hold what was known before, and grow."""

    plan: SurveyPlan
    files: SurveyFiles
    results: dict[int, Measured] = field(default_factory=dict)  # by block, not written yet
    facts: ModelFacts | None = None
    begun: float = field(default_factory=time.monotonic)
    saved: float = field(default_factory=time.monotonic)
    n_before: int = 0

    def run(self, executor: Executor, n_tasks: int) -> Generator[Progress, None, SurveyFiles]:
        """Measure every block that is not known. Where the iteration is left, the files hold what was done.

        Raises ExecutionError where a worker dies again and again, and what a worker raises.
        """
        self.n_before, self.facts = self._n_done, self.files.facts
        try:
            yield self._progress()
            yield from self._measure(executor, n_tasks)
        finally:
            self._save()
        return self.files

    def _measure(self, executor: Executor, n_tasks: int) -> Generator[Progress]:
        plan, pending = self.plan, dict[Future[Measured], int]()
        opening = (plan.reference, plan.vocabulary)
        facts: Future[ModelFacts] | None = None
        if plan.shard[0] == 0 and self.facts is None:
            facts = executor.submit(measure_facts, opening, plan.info, plan.few, plan.on_few_texts)
        blocks = (each for each in plan.blocks() if each[0] not in self.files.blocks)
        while True:
            for block, documents in islice(blocks, n_tasks - len(pending)):
                given = (opening, plan.info, block, documents, plan.means)
                pending[executor.submit(measure_documents, *given)] = block
            if not pending:
                break
            ended, _ = wait_briefly(executor, set(pending))
            self.results |= {pending.pop(future): _result(future) for future in ended}
            if len(self.results) >= WRITTEN_AT_ONCE or time.monotonic() - self.saved > SAVE_EVERY:
                self._save()
            yield self._progress()
        if facts is not None:
            while not facts.done():
                wait_briefly(executor, {facts})
                yield self._progress()
            self.facts = _result(facts)

    @property
    def _n_done(self) -> int:
        return self.files.n_done + sum(len(each.texts) for each in self.results.values())

    def _save(self) -> None:
        if self.results or self.facts != self.files.facts:
            self.files = self.files.add(self.results, self.facts)
            self.results, self.saved = {}, time.monotonic()

    @property
    def _awaits_chance(self) -> bool:
        return self.plan.shard[0] == 0 and self.facts is None and "random" in self.plan.on_few_texts

    def _progress(self) -> Progress:
        done, total = self._n_done, -(-self.plan.info.n_texts // self.plan.shard[1])
        rate = (done - self.n_before) / max(1e-9, time.monotonic() - self.begun)
        label = f"{rate:,.0f} texts/s" if done > self.n_before else "texts"
        if self._awaits_chance and done in (self.n_before, total):
            label = f"what chance gives, by {N_RANDOM} untrained models"
        if done > self.n_before and done < total:
            label += f", {_duration((total - done) / rate)} left"
        left = PART.format(self.files.folder, done, total)
        return Progress(min(done, total), total, "texts", latest=label, label=label, if_left=(left,))


def _result(future: Future[Found]) -> Found:
    with report_worker_death("texts", hint="Fewer --max-tokens take less memory."):
        return get_result(future)


def _duration(seconds: float) -> str:
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes:.0f} min" if minutes < 90 else f"{hours:.1f} h"
