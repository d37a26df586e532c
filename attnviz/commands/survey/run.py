"""`attnviz survey`: what the heads of one model do over many texts."""

from pathlib import Path

from attnviz import store
from attnviz.commands.survey.files import check_parts, find_known, load_files
from attnviz.commands.survey.spec import MergeSpec, SurveySpec
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs
from attnviz.running import Events, Progress
from attnviz.running.executors import open_executor


def survey(spec: SurveySpec, inputs: Inputs) -> Events:
    """Measure every text, a row per head, while no other run writes to the folder. Raises InvalidText."""
    # Arrow comes with these, and with Arrow a thread, which a process that others are forked from may not have.
    from attnviz.commands.survey.blocks import SurveyRun
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


def merge(spec: MergeSpec) -> Events:
    """Put the parts of a survey into one folder, whatever their order: `attnviz merge`.

    Raises InvalidOption for none, and where they do not belong together or lack texts, InvalidRecord for a folder that
    holds none.
    """
    if not spec.parts:
        raise InvalidOption("no parts to merge", hint="Name the folders: attnviz merge part-1 part-2.")
    parts = [load_files(Path(part)) for part in spec.parts]
    folder = store.check_output_folder(spec.figure.out)
    check_parts(parts)
    if any(part.folder.resolve() == folder.resolve() for part in parts):
        raise InvalidOption(f"{folder} is one of the parts", hint="Give another --out.")
    from attnviz.commands.survey.report import write_survey  # matplotlib comes with it: parts are refused without

    with store.locked(folder):
        empty = find_known(folder, parts[0].info, is_fresh=True)
        facts = next(part.facts for part in parts if part.facts is not None)
        yield from write_survey(empty.add(parts, facts), spec)
