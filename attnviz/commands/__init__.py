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


def _register(name: str, help: str, *addresses: str, wing: str = "", **more: Any) -> Command:
    """Register a command by the addresses in its wing: what it does, its spec and, where it reads any, its inputs."""
    run, spec, *inputs = (f"attnviz.commands.{wing or name}.{address}" for address in addresses)
    return Command(name, run, help, spec=spec, inputs=inputs[0] if inputs else None, **more)


COMMANDS = (
    _register("heatmap", "Draw who attends to what", "run:heatmap", "spec:HeatmapSpec", "inputs:heatmap_inputs"),
    _register(
        "explain",
        "Say which heads wrote an answer, and why",
        "run:explain",
        "spec:ExplainSpec",
        "inputs:explain_inputs",
        is_document=True,
    ),
    _register("lesson", "Make a page to learn attention from", "run:lesson", "spec:LessonSpec", "inputs:lesson_inputs"),
    _register("render", "Draw a saved record again", "run:render", "spec:RenderSpec", "inputs:render_inputs"),
    _register(
        "compare",
        "Compare models, or the heads of one, on the same texts",
        "run:compare",
        "spec:CompareSpec",
        "inputs:compare_inputs",
        rows="measures.csv",
    ),
    _register(
        "survey",
        "Measure every head over a corpus, and what its absence costs",
        "run:survey",
        "spec:SurveySpec",
        "inputs:survey_inputs",
        rows="heads.csv",
        preloads=("attnviz.models.classifier_model",),
        compares=("attended.parquet", "attnviz.commands.survey.diff:compare_files"),
    ),
    _register("merge", "Merge the parts of a survey", "run:merge", "spec:MergeSpec", wing="survey"),
    _register("diff", "Compare two batches, records, surveys or pictures", "diff:diff", "spec:DiffSpec", wing="batch"),
    _register(
        "predict",
        "Classify texts with a trained model",
        "predict:predict",
        "spec:PredictSpec",
        "inputs:predict_inputs",
        wing="train",
        rows="predictions.csv",
        preloads=("attnviz.models.classifier_model", "attnviz.commands.train.predict"),
    ),
    _register(
        "attribute",
        "Score which tokens a prediction depends on",
        "run:attribute",
        "spec:AttributeSpec",
        "inputs:attribute_inputs",
        rows="attribution.csv",
    ),
    _register(
        "sources",
        "Say which passages of a prompt an answer needs",
        "run:sources",
        "spec:SourcesSpec",
        "inputs:sources_inputs",
        rows="passages.csv",
    ),
    _register(
        "changed",
        "Say what tuning changed in the heads of a model",
        "run:find_changes",
        "spec:ChangedSpec",
        "inputs:read_pair",
        rows="heads.csv",
    ),
    _register("batch", "Run the jobs of config files", "run:batch", "spec:BatchSpec"),
    _register("measures", "List the measures of attention", "run:measures", "spec:MeasuresSpec"),
    _register("train", "Train a model on labelled texts", "run:train", "spec:TrainSpec", "inputs:train_inputs"),
    _register("vocab", "Build a vocabulary", "vocab:vocab", "spec:VocabSpec", "inputs:vocab_inputs", wing="train"),
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
        for note in model.prepare():
            yield Progress(0, 1, "models", label=f"converting {model}", log=(note,))
    yield from load(command)(*given)
