"""From a spec to events: one function per command, and the only place where rooms meet.

What a command gives is the same, whichever it is: how far it is, and what came of it. The command line knows no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from attnviz.registry import Plugin

if TYPE_CHECKING:  # reports bring numpy, which what is refused at once does without
    from attnviz.manifest import Numbers
    from attnviz.report import CaseResult, Report, Row


@dataclass(frozen=True)
class Command(Plugin):
    """A registration line of a command: `spec` is what it is asked, whose docstring and options are its help."""

    spec: str = field(kw_only=True)
    inputs: str | None = field(default=None, kw_only=True)  # the function from its spec to Inputs, where it reads some
    rows: str = field(default="", kw_only=True)  # the file in which a batch keeps its rows; "": it keeps none
    is_document: bool = field(default=False, kw_only=True)  # a batch also keeps its report for LaTeX and as JSON
    # Files of its own kind that `diff` can compare: their name, and the function that does.
    compares: tuple[str, str] | None = field(default=None, kw_only=True)


COMMANDS = (
    Command(
        "heatmap",
        "attnviz.workflows.heatmap:heatmap",
        "Draw who attends to what",
        spec="attnviz.specs.heatmap:HeatmapSpec",
        inputs="attnviz.workflows.heatmap:heatmap_inputs",
    ),
    Command(
        "explain",
        "attnviz.workflows.explain:explain",
        "Work out one token's attention step by step",
        spec="attnviz.specs.explain:ExplainSpec",
        inputs="attnviz.workflows.explain:explain_inputs",
        is_document=True,
    ),
    Command(
        "render",
        "attnviz.workflows.render:render",
        "Draw a saved record again",
        spec="attnviz.specs.render:RenderSpec",
        inputs="attnviz.workflows.render:render_inputs",
    ),
    Command(
        "compare",
        "attnviz.workflows.compare:compare",
        "Single against multi head, in numbers and pictures",
        spec="attnviz.specs.compare:CompareSpec",
        inputs="attnviz.workflows.compare:compare_inputs",
        rows="measures.csv",
    ),
    Command(
        "survey",
        "attnviz.workflows.survey:survey",
        "What each head does over many texts",
        spec="attnviz.specs.survey:SurveySpec",
        inputs="attnviz.workflows.survey:survey_inputs",
        rows="heads.csv",
        compares=("survey.safetensors", "attnviz.workflows.diff_surveys:compare_files"),
    ),
    Command(
        "merge",
        "attnviz.workflows.survey:merge",
        "Put the parts of a survey together",
        spec="attnviz.specs.survey:MergeSpec",
    ),
    Command(
        "diff",
        "attnviz.workflows.diff:diff",
        "What differs between two records, batches or surveys",
        spec="attnviz.specs.batch:DiffSpec",
    ),
    Command(
        "predict",
        "attnviz.workflows.predict:predict",
        "Classify texts with a trained model",
        spec="attnviz.specs.predict:PredictSpec",
        inputs="attnviz.workflows.predict:predict_inputs",
        rows="predictions.csv",
    ),
    Command(
        "attribute",
        "attnviz.workflows.attribute:attribute",
        "Say which tokens an answer hangs on, tested",
        spec="attnviz.specs.attribute:AttributeSpec",
        inputs="attnviz.workflows.attribute:attribute_inputs",
        rows="attribution.csv",
    ),
    Command(
        "batch",
        "attnviz.workflows.batch:batch",
        "Make all that configs ask for, and a manifest",
        spec="attnviz.specs.batch:BatchSpec",
    ),
    Command(
        "measures",
        "attnviz.workflows.measures:measures",
        "List the measures of attention",
        spec="attnviz.specs.batch:MeasuresSpec",
    ),
    Command(
        "train",
        "attnviz.workflows.train:train",
        "Train a model on labelled texts",
        spec="attnviz.specs.train:TrainSpec",
    ),
    Command(
        "vocab",
        "attnviz.workflows.vocab:vocab",
        "Build a vocabulary",
        spec="attnviz.specs.train:VocabSpec",
    ),
)


@dataclass(frozen=True)
class Progress:
    """How far work is: `done` of `total`, such as 3 of 8 "pictures"."""

    done: int
    total: int
    what: str  # is counted, in the plural
    latest: str = ""  # what was done last, such as a file
    line: str = ""  # for standard output, where no bar is shown
    notices: tuple[str, ...] = ()
    label: str = ""  # how it goes in a few words, beside a bar
    if_left: tuple[str, ...] = ()  # what to say where work is left here and can go on; (): it is lost
    error: str = ""  # why it failed; the others go on


@dataclass(frozen=True, eq=False)
class Result:
    """What came of a command, or of one of its texts."""

    report: Report | None = None  # to be printed as the user asks; None: nothing is
    files: tuple[Path, ...] = ()  # that were written
    notices: tuple[str, ...] = ()  # what the user has to know first
    rows: Iterable[Row] = ()  # the numbers as a spreadsheet has them, header first; (): the report's tables
    numbers: Numbers = field(default_factory=dict)  # what a manifest keeps
    layers: dict[str, list[int]] = field(default_factory=dict)  # by text, what they are of, if not simply 0, 1, 2 …
    heads: dict[str, list[int]] = field(default_factory=dict)
    lines: tuple[str, ...] = ()  # on standard output, in a few words, what the report says at length
    closing: tuple[str, ...] = ()  # what the user has to know last
    document: Report | None = None  # to be printed where a document is asked for; None: `report`
    cases: tuple[CaseResult, ...] = ()  # what was tried or compared, for servers that list it
    failure: Exception | None = None  # raised when all is shown
    is_text: bool = False  # it is about one of several texts, which one document lists


Events: TypeAlias = Iterator[Progress | Result]
