"""The commands, each a wing: a folder of its own with its options, what it does and what it shows.

A wing may use the core and no other wing. To take one out, remove its folder and its lines here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attnviz.registry import load
from attnviz.running import Command, Events, Progress

if TYPE_CHECKING:
    from attnviz.models.loading import ModelReference

COMMANDS = (
    Command(
        "heatmap",
        "attnviz.commands.heatmap.run:heatmap",
        "Draw who attends to what",
        spec="attnviz.commands.heatmap.spec:HeatmapSpec",
        inputs="attnviz.commands.heatmap.inputs:heatmap_inputs",
    ),
    Command(
        "explain",
        "attnviz.commands.explain.run:explain",
        "Say which heads wrote an answer, and why",
        spec="attnviz.commands.explain.spec:ExplainSpec",
        inputs="attnviz.commands.explain.inputs:explain_inputs",
        is_document=True,
    ),
    Command(
        "lesson",
        "attnviz.commands.lesson.run:lesson",
        "Make a page to learn attention from",
        spec="attnviz.commands.lesson.spec:LessonSpec",
        inputs="attnviz.commands.lesson.inputs:lesson_inputs",
    ),
    Command(
        "render",
        "attnviz.commands.render.run:render",
        "Draw a saved record again",
        spec="attnviz.commands.render.spec:RenderSpec",
        inputs="attnviz.commands.render.inputs:render_inputs",
    ),
    Command(
        "compare",
        "attnviz.commands.compare.run:compare",
        "Compare models, or the heads of one, on the same texts",
        spec="attnviz.commands.compare.spec:CompareSpec",
        inputs="attnviz.commands.compare.inputs:compare_inputs",
        rows="measures.csv",
    ),
    Command(
        "survey",
        "attnviz.commands.survey.run:survey",
        "Measure every head over a corpus, and what its absence costs",
        spec="attnviz.commands.survey.spec:SurveySpec",
        inputs="attnviz.commands.survey.inputs:survey_inputs",
        rows="heads.csv",
        preloads=("attnviz.models.classifier_model",),
        compares=("attended.parquet", "attnviz.commands.survey.diff:compare_files"),
    ),
    Command(
        "merge",
        "attnviz.commands.survey.merge:merge",
        "Merge the parts of a survey",
        spec="attnviz.commands.survey.spec:MergeSpec",
    ),
    Command(
        "diff",
        "attnviz.commands.batch.diff:diff",
        "Compare two batches, records, surveys or pictures",
        spec="attnviz.commands.batch.spec:DiffSpec",
    ),
    Command(
        "predict",
        "attnviz.commands.train.predict:predict",
        "Classify texts with a trained model",
        spec="attnviz.commands.train.spec:PredictSpec",
        inputs="attnviz.commands.train.predict_inputs:predict_inputs",
        rows="predictions.csv",
        preloads=("attnviz.models.classifier_model", "attnviz.commands.train.predict"),
    ),
    Command(
        "attribute",
        "attnviz.commands.attribute.run:attribute",
        "Score which tokens a prediction depends on",
        spec="attnviz.commands.attribute.spec:AttributeSpec",
        inputs="attnviz.commands.attribute.inputs:attribute_inputs",
        rows="attribution.csv",
    ),
    Command(
        "batch",
        "attnviz.commands.batch.run:batch",
        "Run the jobs of config files",
        spec="attnviz.commands.batch.spec:BatchSpec",
    ),
    Command(
        "measures",
        "attnviz.commands.measures.run:measures",
        "List the measures of attention",
        spec="attnviz.commands.measures.spec:MeasuresSpec",
    ),
    Command(
        "train",
        "attnviz.commands.train.run:train",
        "Train a model on labelled texts",
        spec="attnviz.commands.train.spec:TrainSpec",
        inputs="attnviz.commands.train.inputs:train_inputs",
    ),
    Command(
        "vocab",
        "attnviz.commands.train.vocab:vocab",
        "Build a vocabulary",
        spec="attnviz.commands.train.spec:VocabSpec",
        inputs="attnviz.commands.train.inputs:vocab_inputs",
    ),
)


def start_command(command: Command, spec: Any) -> Events:
    """Check what the command is asked, import it and call it: the one place where commands are imported.

    torch and matplotlib take seconds to import, so a module of inputs does without them, and what is refused is refused
    at once. Raises what the command raises.
    """
    if getattr(text := getattr(spec, "text", None), "inline_text", None) is not None:
        spec = replace(spec, text=load("attnviz.text:resolve_argument")(text))
    given = [spec]
    models: tuple[ModelReference, ...] = ()
    if command.inputs is not None:
        inputs = load(command.inputs)(spec)
        if inputs.n_workers > 1:  # what workers are forked from imports while this process does
            load("attnviz.running.local_executor:create_process_context")(command.preloads)
        given.append(inputs)
        models = inputs.models
    if models:
        return _prepare_and_run(command, given, models)
    events: Events = load(command)(*given)
    return events


def _prepare_and_run(command: Command, given: Sequence[Any], models: Sequence[ModelReference]) -> Events:
    """Make what the models need to be opened the first time, then do what the command does."""
    for model in models:
        for step in model.prepare():
            yield Progress(step.done, step.total, "steps", label=step.label, log=(step.note,) if step.note else ())
    yield from load(command)(*given)
