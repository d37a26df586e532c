"""Surveys of models that a test made, and of numbers that it changed."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from attnviz.commands.survey import measure
from attnviz.commands.survey.files import Survey, begin_survey
from attnviz.commands.survey.survey import ModelFacts, SurveyInfo
from attnviz.models.loading import find_model
from attnviz.running import Result
from attnviz.specs import ModelOptions
from attnviz.text import Document
from tests.events import result
from tests.starting import survey

FAST: dict[str, Any] = {"dataset": "sample", "split": "train[:12]", "null": ("none",), "model": "multi:2"}


def run(out: Path, **options: Any) -> Result:
    """Survey twelve texts of the sample, or what the options say."""
    return result(survey(out=str(out), **{**FAST, **options}))


def open_model() -> Any:
    """Open the model of `FAST`, with which plain loops make the same numbers."""
    return find_model(ModelOptions(model="multi:2", max_tokens=512, keep="head-tail")).open(())


def survey_of(
    folder: Path, model: Any, info: SurveyInfo, documents: Sequence[Document], facts: ModelFacts | None
) -> Survey:
    """Measure texts with a model, and write and open what was found."""
    folder.mkdir()
    info = replace(info, n_texts=len(documents))
    size = measure.BLOCK
    blocks = (documents[start : start + size] for start in range(0, len(documents), size))
    found = [measure.measure_block(model, info, block, texts) for block, texts in enumerate(blocks)]
    return begin_survey(folder, info).add(found, facts)


def rewrite(path: Path, change: Callable[[Any, dict[str, Any]], Any]) -> None:
    """Change the table of a file, and what it says of itself."""
    table = pq.read_table(path, partitioning=None)
    about = json.loads(table.schema.metadata[b"attnviz"])
    table = change(table, about)
    pq.write_table(table.replace_schema_metadata({"attnviz": json.dumps(about)}), path)


def change_info(folder: Path, **changes: Any) -> None:
    """Have all files of a survey say something else of what was asked."""
    for path in folder.glob("*.parquet"):
        rewrite(path, lambda table, about: about["info"].update(changes) or table)
