"""`attnviz survey`: what the heads of one model do over many texts."""

from __future__ import annotations

from pathlib import Path

from attnviz import store
from attnviz.bounded import is_file
from attnviz.commands.survey.blocks import SurveyRun
from attnviz.commands.survey.file import NAME, load_survey
from attnviz.commands.survey.output import PICTURES, write_part, write_survey
from attnviz.commands.survey.plan import SurveyPlan, plan_survey
from attnviz.commands.survey.spec import SurveySpec
from attnviz.commands.survey.survey import Survey, empty_survey
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs
from attnviz.running import Events, Progress
from attnviz.running.executors import open_executor
from attnviz.running.pictures import Pictures


def survey(spec: SurveySpec, inputs: Inputs) -> Events:
    """Measure every text, a row per head, while no other run writes to the folder. Raises InvalidText."""
    Pictures.from_options(spec.figure, PICTURES, "")  # refused before the first text is measured
    folder = inputs.out
    with store.locked(folder):
        plan = plan_survey(spec, inputs)
        before = _before(spec, plan, folder)
        yield Progress(0, plan.n_texts, "texts", notices=plan.stream.notices)
        with open_executor(inputs.n_workers, inline=True, cluster=spec.cluster) as (executor, n_tasks):
            whole = yield from SurveyRun(plan, folder, before).run(executor, n_tasks)
        if spec.shard is None:
            yield from write_survey(whole, spec.figure, spec.top, folder)
        else:
            yield from write_part(spec, whole, folder)


def _before(spec: SurveySpec, plan: SurveyPlan, folder: Path) -> Survey:
    """What is known already. Raises InvalidOption where the folder holds another survey."""
    if not spec.resume or not is_file(folder / NAME):
        return empty_survey(plan.info, plan.slopes)
    found = load_survey(folder / NAME)
    if found.info != plan.info or found.n_texts not in (None, plan.n_texts):
        raise InvalidOption(f"{folder / NAME} is of another survey", hint="Leave out --resume, or give another --out.")
    return found
