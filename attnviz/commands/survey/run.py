"""`attnviz survey`: what the heads of one model do over many texts."""

from attnviz import store
from attnviz.commands.survey.spec import SurveySpec
from attnviz.inputs import Inputs
from attnviz.running import Events, Progress
from attnviz.running.executors import open_executor


def survey(spec: SurveySpec, inputs: Inputs) -> Events:
    """Measure every text, a row per head, while no other run writes to the folder. Raises InvalidText."""
    # Arrow comes with these, and with Arrow a thread, which a process that others are forked from may not have.
    from attnviz.commands.survey.blocks import SurveyRun
    from attnviz.commands.survey.files import find_known
    from attnviz.commands.survey.plan import plan_survey
    from attnviz.commands.survey.report import PICTURES, write_survey
    from attnviz.running.pictures import Pictures

    Pictures.from_options(spec.figure, PICTURES, "")  # refused before the first text is measured
    folder = inputs.out
    with store.locked(folder):
        plan = plan_survey(spec, inputs)
        before = find_known(folder, plan.info, spec.fresh)
        held = f"{folder} holds {len(before.read):,} of {plan.info.n_texts:,} texts, which are not measured again"
        notices = (f"{held}; --fresh begins anew",) if before.blocks else ()
        yield Progress(0, plan.info.n_texts, "texts", notices=(*plan.stream.notices, *notices))
        with open_executor(inputs.n_workers, inline=True, cluster=spec.cluster) as (executor, n_tasks):
            found = yield from SurveyRun(plan, before).run(executor, n_tasks)
        yield from write_survey(found, spec)
