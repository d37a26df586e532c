"""`attnviz survey`: what the heads of one model do over many texts."""

from __future__ import annotations

from pathlib import Path

from attnviz import store
from attnviz.bounded import is_file
from attnviz.commands.survey.blocks import SurveyRun
from attnviz.commands.survey.card import find_cards
from attnviz.commands.survey.file import NAME, PARTIAL, load_survey
from attnviz.commands.survey.output import PICTURES, write_part, write_survey
from attnviz.commands.survey.plan import SurveyPlan, plan_survey
from attnviz.commands.survey.spec import SurveySpec
from attnviz.commands.survey.survey import Survey, empty_survey, find_difference
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs
from attnviz.running import Events, Progress
from attnviz.running.executors import open_executor
from attnviz.running.pictures import Pictures

ANOTHER = "Give another --out, or remove the file."


def survey(spec: SurveySpec, inputs: Inputs) -> Events:
    """Measure every text, a row per head, while no other run writes to the folder. Raises InvalidText."""
    Pictures.from_options(spec.figure, PICTURES, "")  # refused before the first text is measured
    folder = inputs.out
    with store.locked(folder):
        plan = plan_survey(spec, inputs)
        find_cards(spec.head_card, plan.info)  # refused before the first text, too
        before, notices = _find_known(spec, plan, folder)
        yield Progress(0, plan.n_texts, "texts", notices=(*plan.stream.notices, *notices))
        with open_executor(inputs.n_workers, inline=True, cluster=spec.cluster) as (executor, n_tasks):
            whole = yield from SurveyRun(plan, folder, before).run(executor, n_tasks)
        if spec.shard is None:
            yield from write_survey(whole, spec, folder)
        else:
            yield from write_part(spec, whole, folder)
        store.remove(folder / PARTIAL)


def _find_known(spec: SurveySpec, plan: SurveyPlan, folder: Path) -> tuple[Survey, tuple[str, ...]]:
    """Return what is known already, and what to say of it.

    Raises InvalidOption where the folder holds another survey, which would be lost.
    """
    for name in (PARTIAL, NAME):
        if is_file(folder / name):
            found = load_survey(folder / name)
            if found.info != plan.info:
                held = f"{found.info.model} over {found.info.corpus}, {find_difference(found.info, plan.info)}"
                raise InvalidOption(f"{folder / name} is of another survey: {held}", hint=ANOTHER)
            if spec.shard is not None and found.is_whole:
                raise InvalidOption(f"{folder / name} is whole: part {spec.shard} would replace it", hint=ANOTHER)
            if not spec.fresh:
                n_known = found.summary.n_texts + len(found.skipped)
                held = f"{folder / name} holds {n_known:,} of {plan.n_texts:,} texts, which are not measured again"
                return found, (f"{held}; --fresh begins anew",)
    return empty_survey(plan.info, plan.slopes), ()
