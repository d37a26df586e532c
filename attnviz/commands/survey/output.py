"""The pictures of a whole survey, beside its files."""

from __future__ import annotations

from dataclasses import replace

from attnviz.commands.survey.card import find_cards
from attnviz.commands.survey.files import SurveyFiles
from attnviz.commands.survey.heads import survey_rows
from attnviz.commands.survey.report import survey_report
from attnviz.commands.survey.spec import MergeSpec, SurveySpec
from attnviz.errors import InvalidOption
from attnviz.running import Events, Result
from attnviz.running.pictures import Pictures

PICTURES = ("distance", "atlas", "ablations", "head-*")  # what those of a survey are called


def check_pictures(spec: SurveySpec | MergeSpec) -> Pictures:
    """Return how pictures are drawn. Raises InvalidOption for what cannot be."""
    return Pictures.from_options(spec.figure, PICTURES, "")


def write_survey(found: SurveyFiles, spec: SurveySpec | MergeSpec) -> Events:
    """Draw what a survey found. Raises InvalidOption for a head that is not there, and where no text has tokens."""
    whole = found.open()
    if not whole.n_texts:
        raise InvalidOption("no text has tokens", hint="Choose others with --split.")
    report = survey_report(whole, spec.top, spec.figure.title, find_cards(spec.head_card, whole.info))
    drawn = yield from check_pictures(spec).write(report, found.folder, None)
    yield replace(drawn, files=(*drawn.files, *found.paths), rows=survey_rows(whole))


def describe_part(found: SurveyFiles, spec: SurveySpec) -> Events:
    """Say what a part holds: nothing is drawn of one."""
    said = f"part {spec.shard}: {found.n_done:,} of {found.info.n_texts:,} texts; attnviz merge puts the parts together"
    yield Result(None, found.paths, closing=(said,))
