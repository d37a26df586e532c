"""The pictures of a whole survey, beside its files."""

from __future__ import annotations

from dataclasses import replace

from attnviz.commands.survey.atlas import find_cards
from attnviz.commands.survey.files import Survey
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


def write_survey(survey: Survey, spec: SurveySpec | MergeSpec) -> Events:
    """Draw what a survey found; nothing of a part, of which is said what it holds.

    Raises InvalidOption for a head that is not there, and where no text has tokens.
    """
    if isinstance(spec, SurveySpec) and spec.shard is not None:
        held = f"part {spec.shard}: {len(survey.read):,} of {survey.info.n_texts:,} texts"
        yield Result(None, survey.paths, closing=(f"{held}; attnviz merge puts the parts together",))
        return
    if not len(survey.texts):
        raise InvalidOption("no text has tokens", hint="Choose others with --split.")
    report = survey_report(survey, spec.top, spec.figure.title, find_cards(spec.head_card, survey.info))
    drawn = yield from check_pictures(spec).write(report, survey.folder, None)
    yield replace(drawn, files=(*drawn.files, *survey.paths), rows=survey_rows(survey))
