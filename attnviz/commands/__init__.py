"""The commands, each a wing: a folder of its own with its options, what it does and what it shows.

A wing may use the core and no other wing. To take one out, remove its folder and its lines here.
"""

from dataclasses import replace
from typing import Any

from attnviz.registry import load
from attnviz.running import Command, Events, Progress


def _register(name: str, help: str, *, wing: str = "", module: str = "run", reads: bool = True, **more: Any) -> Command:
    """Register a command by its name: for "heatmap" its wing has run:heatmap, spec:HeatmapSpec, inputs:heatmap_inputs.

    `wing`: its folder, where it shares that of another. `module`: where it runs. `reads`: whether it has inputs.
    """
    folder = f"attnviz.commands.{wing or name}"
    inputs = f"{folder}.inputs:{name}_inputs" if reads else None
    spec = f"{folder}.spec:{name.capitalize()}Spec"
    return Command(name, f"{folder}.{module}:{name}", help, spec=spec, inputs=inputs, **more)


COMMANDS = (
    _register("heatmap", "Draw who attends to what"),
    _register("explain", "Say which heads wrote an answer, and why"),
    _register("lesson", "Make a page to learn attention from"),
    _register("render", "Draw a saved record again"),
    _register("compare", "Compare models, or the heads of one, on the same texts", rows="measures.csv"),
    _register(
        "survey",
        "Measure every head over a corpus, and what its absence costs",
        rows="heads.csv",
        preloads=("attnviz.models.classifier_model",),
        compares=("attended.parquet", "attnviz.commands.survey.diff:compare_files"),
    ),
    _register("merge", "Merge the parts of a survey", wing="survey", reads=False),
    _register("diff", "Compare two batches, records, surveys or pictures", wing="batch", module="diff", reads=False),
    _register(
        "predict",
        "Classify texts with a trained model",
        wing="train",
        module="predict",
        rows="predictions.csv",
        preloads=("attnviz.models.classifier_model", "attnviz.commands.train.predict"),
    ),
    _register("attribute", "Score which tokens a prediction depends on", rows="attribution.csv"),
    _register("sources", "Say which passages of a prompt an answer needs", rows="passages.csv"),
    _register("changed", "Say what tuning changed in the heads of a model", rows="heads.csv"),
    _register("batch", "Run the jobs of config files", reads=False),
    _register("measures", "List the measures of attention", reads=False),
    _register("train", "Train a model on labelled texts"),
    _register("vocab", "Build a vocabulary", wing="train", module="vocab"),
)


def start_command(command: Command, spec: Any) -> Events:
    """Check what the command is asked, import it and call it: the one place where commands are imported.

    torch and matplotlib take seconds to import, so a module of inputs does without them, and what is refused is refused
    at once. Raises what the command raises.
    """
    if getattr(text := getattr(spec, "text", None), "inline_text", None) is not None:
        spec = replace(spec, text=load("attnviz.text:resolve_argument")(text))
    if command.inputs is None:
        events: Events = load(command)(spec)
        return events
    inputs = load(command.inputs)(spec)
    if inputs.n_workers > 1:  # what workers are forked from imports while this process does
        load("attnviz.running.local_executor:create_process_context")(command.preloads)
    return _prepare_and_run(command, spec, inputs)


def _prepare_and_run(command: Command, spec: Any, inputs: Any) -> Events:
    """Make what the models need to be opened the first time, then do what the command does."""
    for model in inputs.models:
        for note in model.prepare():
            yield Progress(0, 1, "models", label=f"converting {model}", log=(note,))
    yield from load(command)(spec, inputs)
