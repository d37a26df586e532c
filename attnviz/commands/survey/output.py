"""The files of a survey: its numbers, and of a whole one its pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from attnviz.commands.survey.card import find_cards
from attnviz.commands.survey.file import NAME, survey_bytes
from attnviz.commands.survey.heads import survey_rows
from attnviz.commands.survey.report import survey_report
from attnviz.commands.survey.spec import MergeSpec, SurveySpec
from attnviz.commands.survey.survey import Survey
from attnviz.errors import InvalidOption
from attnviz.report import Report
from attnviz.running import Events
from attnviz.running.pictures import Pictures

PICTURES = ("distance", "atlas", "ablations", "head-*")  # what those of a survey are called


def write_survey(whole: Survey, spec: SurveySpec | MergeSpec, folder: Path) -> Events:
    """Draw, and write the survey beside its pictures. Raises InvalidOption for a head that is not there."""
    figure = spec.figure
    if not whole.summary.n_texts:
        raise InvalidOption("no text has tokens", hint="Choose others with --split.")
    report = survey_report(whole, spec.top, figure.title, find_cards(spec.head_card, whole.info))
    drawn = yield from Pictures.from_options(figure, PICTURES, NAME).write(report, folder, {NAME: survey_bytes(whole)})
    yield replace(drawn, rows=survey_rows(whole))


def write_part(spec: SurveySpec, found: Survey, folder: Path) -> Events:
    """Only the file: nothing is drawn of a part, and pictures of an earlier survey are told of."""
    n = found.summary.n_texts
    said = f"part {spec.shard}: {n:,} of {found.n_texts or 0:,} texts; attnviz merge puts the parts together"
    undrawn = replace(Pictures.from_options(spec.figure, PICTURES, NAME), renderers=())
    written = yield from undrawn.write(Report(said, "", ()), folder, {NAME: survey_bytes(found)})
    yield replace(written, report=None, closing=(said,))
