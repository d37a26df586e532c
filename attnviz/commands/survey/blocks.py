"""The blocks of a survey, shared out and written as they come; what is done stays, however the run ends."""

import time
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

from attnviz.commands.survey.facts import model_facts
from attnviz.commands.survey.files import Survey
from attnviz.commands.survey.knockouts import leave_out_heads
from attnviz.commands.survey.measure import Measured, measure_block
from attnviz.commands.survey.plan import SurveyPlan
from attnviz.commands.survey.survey import ModelFacts
from attnviz.models.loading import ModelReference
from attnviz.running import Progress
from attnviz.running.executors import get_result, open_model, wait_briefly

SAVE_EVERY = 30.0  # seconds
WRITTEN_AT_ONCE = 16  # blocks
ONCE = "what is measured once, on a few texts"

Found = TypeVar("Found")


def call_with_model(
    opening: tuple[ModelReference, tuple[str, ...]], function: Callable[..., Found], *given: Any
) -> Found:
    """Open the model, by what `open_model` takes, and measure: the work of a worker. Raises what `function` raises."""
    return function(open_model(*opening), *given)


@dataclass(eq=False)
class SurveyRun:
    """A survey while it is made: `survey` is what is written, and grows."""

    plan: SurveyPlan
    survey: Survey
    facts: ModelFacts | None = None
    measured: list[Measured] = field(default_factory=list)  # not written yet
    saved: float = field(default_factory=time.monotonic)

    def run(self, executor: Executor, n_tasks: int) -> Generator[Progress, None, Survey]:
        """Measure every block that is not known. Where the iteration is left, the files hold what was done.

        Raises ExecutionError where a worker dies again and again, and what a worker raises.
        """
        self.facts = self.survey.facts
        try:
            yield from self._measure(executor, n_tasks)
        finally:
            self._save()
        if self.plan.knocks_out and self.facts is not None and not self.facts.costs:
            yield from self._knock_out(executor, self.facts)
        if not self.survey.blocks:  # of more parts than there are blocks: a part without texts is one, too
            self.survey = self.survey.add([], None)
        return self.survey

    def _measure(self, executor: Executor, n_tasks: int) -> Generator[Progress]:
        plan, pending = self.plan, set[Future[Measured]]()
        opening = (plan.reference, plan.vocabulary)
        facts: Future[ModelFacts] | None = None
        if plan.shard[0] == 0 and self.facts is None:
            yield self._progress(ONCE)
            facts = executor.submit(call_with_model, opening, model_facts, plan.info, plan.few, plan.on_few_texts)
        blocks = (each for each in plan.blocks() if each[0] not in self.survey.blocks)
        yield self._progress()
        while True:
            for block, documents in islice(blocks, n_tasks - len(pending)):
                task = executor.submit(call_with_model, opening, measure_block, plan.info, block, documents, plan.means)
                pending.add(task)
            if not pending:
                break
            ended, pending = wait_briefly(executor, pending)
            self.measured += map(get_result, ended)
            if len(self.measured) >= WRITTEN_AT_ONCE or time.monotonic() - self.saved > SAVE_EVERY:
                self._save()
            yield self._progress()
        if facts is not None:
            self.facts = yield from self._wait(executor, facts, ONCE)

    def _knock_out(self, executor: Executor, facts: ModelFacts) -> Generator[Progress]:
        """Leave out the heads that the whole survey names, and write what that costs."""
        plan, named = self.plan, sorted(self.survey.tables.names.group("pattern"), key=itemgetter(0))
        kinds = {str(kind): tuple((row["layer"], row["head"]) for row in of.rows()) for (kind,), of in named}
        opening = plan.reference.answering(), ()
        task = executor.submit(call_with_model, opening, leave_out_heads, plan.info, plan.few, kinds)
        costs, feeds = yield from self._wait(executor, task, "without the heads that have a name")
        self.survey = self.survey.add([], replace(facts, costs=costs, feeds=feeds))

    def _wait(self, executor: Executor, task: Future[Found], label: str) -> Generator[Progress, None, Found]:
        """Wait for the result of a task of the whole survey. Raises what it raised."""
        while not task.done():
            wait_briefly(executor, {task})
            yield self._progress(label)
        return get_result(task)

    def _save(self) -> None:
        if self.measured or self.facts != self.survey.facts:
            self.survey = self.survey.add(self.measured, self.facts)
            self.measured, self.saved = [], time.monotonic()

    def _progress(self, label: str = "") -> Progress:
        done = len(self.survey.read) + sum(len(each.read) for each in self.measured)
        total = -(-self.plan.info.n_texts // self.plan.shard[1])
        folder = str(self.survey.folder)
        left = (f"{folder} holds {done:,} of {total:,} texts; the same command goes on",)
        return Progress(min(done, total), total, "texts", latest=label or folder, label=label, if_left=left)
