"""`attnviz survey`: what the heads of one model do over many texts; and how its parts are put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz import store
from attnviz.bounded import is_file, is_folder
from attnviz.commands.survey.spec import MergeSpec, SurveySpec, parse_shard
from attnviz.errors import InvalidOption, InvalidSource
from attnviz.inputs import Inputs, stream_inputs
from attnviz.measures import chosen
from attnviz.models.loading import find_model
from attnviz.models.protocols import AttentionModel, Classifies
from attnviz.report import Report
from attnviz.running import Events, Progress
from attnviz.running.local_executor import MEASURING, process_context
from attnviz.specs import FigureOptions

if TYPE_CHECKING:  # numpy comes with them
    from attnviz.commands.survey.plan import SurveyPlan
    from attnviz.commands.survey.survey import Survey

MAX_TOP = 10
PICTURES = ("distance",)  # what those of a survey are called


def survey(spec: SurveySpec) -> Events:
    """Measure every text, a row per head. Everything that can be refused at once is refused first.

    Raises InvalidOption, InvalidModel, InvalidSource or InvalidText.
    """
    return _survey(spec, survey_inputs(spec))


def survey_inputs(spec: SurveySpec) -> Inputs:
    """One model and a stream of texts. Raises InvalidOption, InvalidModel or InvalidSource."""
    from attnviz.running.executors import check_cluster

    parse_shard(spec.shard)
    _check_top(spec.top)
    chosen(spec.measure)
    if spec.model.max_tokens is None or spec.model.max_tokens < 2:
        raise InvalidOption(f"--max-tokens {spec.model.max_tokens} is too small", hint="It is at least 2.")
    check_cluster(spec.cluster, spec.workers)
    _ = spec.on_few_texts  # refuses what is not known
    reference = find_model(spec.model)
    reference.check(Classifies if spec.ablations else AttentionModel)
    return stream_inputs([reference], spec.text, out=spec.figure.out)


def merge(spec: MergeSpec) -> Events:
    """Merge the parts of a survey, whatever their order: `attnviz merge`.

    Raises InvalidOption for none, and where they do not belong together or lack texts, InvalidSource for a folder that
    holds none, InvalidRecord for a file that is none.
    """
    from attnviz.commands.survey.file import load_survey
    from attnviz.commands.survey.survey import merge_surveys

    if not spec.parts:
        raise InvalidOption("no parts to merge", hint="Name the folders: attnviz merge part-1 part-2.")
    _check_top(spec.top)
    whole = merge_surveys([load_survey(_file(Path(part))) for part in spec.parts])
    if not whole.is_whole:
        raise InvalidOption(_missing(whole), hint="Survey the missing parts, and name all of them.")
    folder = store.output_folder(spec.figure.out)
    return store.while_locked(folder, _reported(whole, spec.figure, spec.top, folder))


def _file(path: Path) -> Path:
    """A file as it is; of a folder its survey."""
    from attnviz.commands.survey.file import NAME

    if not is_folder(path):
        return path
    if not is_file(path / NAME):
        raise InvalidSource(f"{path} holds no {NAME}", hint="attnviz survey --shard I/N writes one.")
    return path / NAME


def _check_top(top: int) -> None:
    """Raises InvalidOption for more extreme texts than are kept."""
    if not 1 <= top <= MAX_TOP:
        raise InvalidOption(f"--top {top} is out of range", hint=f"It is 1 to {MAX_TOP}.")


def _survey(spec: SurveySpec, inputs: Inputs) -> Events:
    """Survey while no other run writes to the folder."""
    if (spec.workers or 1) > 1:
        process_context(MEASURING)  # what the others are forked from imports while this one does
    from attnviz.commands.survey.blocks import SurveyRun
    from attnviz.commands.survey.plan import plan_survey
    from attnviz.running.executors import open_executor
    from attnviz.running.pictures import Pictures

    Pictures.of(spec.figure, PICTURES, "")  # what cannot be drawn is refused before the first text is measured
    folder = inputs.out
    with store.locked(folder):
        plan = plan_survey(spec, inputs)
        before = _before(spec, plan, folder)
        yield Progress(0, plan.n_texts, "texts", notices=plan.stream.notices)
        with open_executor(spec.workers or 1, inline=True, cluster=spec.cluster) as (executor, n_tasks):
            whole = yield from SurveyRun(plan, folder, before).run(executor, n_tasks)
        if spec.shard is None:
            yield from _reported(whole, spec.figure, spec.top, folder)
        else:
            yield from _part(spec, whole, folder)


def _before(spec: SurveySpec, plan: SurveyPlan, folder: Path) -> Survey:
    """What is known already. Raises InvalidOption where the folder holds another survey."""
    from attnviz.commands.survey.file import NAME, load_survey
    from attnviz.commands.survey.survey import empty_survey

    if not spec.resume or not is_file(folder / NAME):
        return empty_survey(plan.info)
    found = load_survey(folder / NAME)
    if found.info != plan.info or found.n_texts not in (None, plan.n_texts):
        raise InvalidOption(f"{folder / NAME} is of another survey", hint="Leave out --resume, or give another --out.")
    return found


def _part(spec: SurveySpec, found: Survey, folder: Path) -> Events:
    """Only the file: nothing is drawn of a part, and pictures of an earlier survey are told of."""
    from attnviz.commands.survey.file import NAME, survey_bytes
    from attnviz.running.pictures import Pictures

    n = found.summary.n_texts
    said = f"part {spec.shard}: {n:,} of {found.n_texts or 0:,} texts; attnviz merge puts the parts together"
    undrawn = replace(Pictures.of(spec.figure, PICTURES, NAME), renderers=())
    written = yield from undrawn.write(Report(said, "", ()), folder, {NAME: survey_bytes(found)})
    yield replace(written, report=None, closing=(said,))


def _reported(whole: Survey, figure: FigureOptions, top: int, folder: Path) -> Events:
    """Draw, and write the survey beside its pictures."""
    from attnviz.commands.survey.file import NAME, survey_bytes
    from attnviz.commands.survey.heads import survey_rows
    from attnviz.commands.survey.report import survey_report
    from attnviz.running.pictures import Pictures

    if not whole.summary.n_texts:
        raise InvalidOption("no text has tokens", hint="Choose others with --split.")
    report = survey_report(whole, top, figure.title)
    drawn = yield from Pictures.of(figure, PICTURES, NAME).write(report, folder, {NAME: survey_bytes(whole)})
    yield replace(drawn, rows=survey_rows(whole))


def _missing(part: Survey) -> str:
    done = part.summary.n_texts + len(part.skipped)
    if part.n_texts is None:
        return f"only {done:,} texts are there, and no part was finished"
    if done == part.n_texts:
        return "part 1, which knows what chance gives, is missing"
    return f"{part.n_texts - done:,} of {part.n_texts:,} texts are missing"
