"""What `attnviz train`, `attnviz vocab` and `attnviz predict` read and write."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from attnviz import store
from attnviz.bounded import exists
from attnviz.commands.train.spec import PredictSpec, TrainSpec, VocabSpec
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs, read_inputs
from attnviz.models.loading import find_model
from attnviz.models.protocols import WINDOW, Classifies
from attnviz.models.sizes import head_size
from attnviz.renderers import PAGE_FORMAT, choose_renderers
from attnviz.running.metrics import NAME as METRICS
from attnviz.text import Document

WEIGHTS, STATE = "model.safetensors", "training.safetensors"


def train_inputs(spec: TrainSpec) -> Inputs:
    """Check the options and the folder, then read the texts. Raises InvalidOption or InvalidSource."""
    head_size(spec.d_model, spec.heads)
    folder = store.check_output_folder(spec.out)
    refuse_to_overwrite(folder, spec)
    return replace(read_inputs((), spec.text, every=True), folder=folder)


def vocab_inputs(spec: VocabSpec) -> Inputs:
    """Read the texts. Raises InvalidOption or InvalidSource."""
    return read_inputs((), spec.text, every=True, out=spec.out)


def predict_inputs(spec: PredictSpec) -> Inputs:
    """Find one classifier and every chosen text.

    Raises InvalidOption, InvalidModel, InvalidSource or InvalidSelection.
    """
    reference = find_model(spec.model).answering(Classifies)
    reference.check(Classifies)
    formats = [plugin.name for plugin in choose_renderers(spec.figure.format, spec.figure.open)]
    if drawn := [name for name in formats if name != PAGE_FORMAT]:
        raise InvalidOption(f"predict draws no {drawn[0]}", hint="--format html is a page; heatmap and attribute draw.")
    inputs = read_inputs([reference], spec.text, every=True, out=spec.figure.out if formats else None)
    return replace(inputs, n_workers=min(spec.workers or 1, len(split_windows(inputs.documents))))


def split_windows(documents: Sequence[Document]) -> list[Sequence[Document]]:
    """Split the texts into what one process reads at a time, in order."""
    return [documents[start : start + WINDOW] for start in range(0, len(documents), WINDOW)]


def name_option(name: str) -> str:
    """Return the option as it is typed, of the name of its field."""
    return "--" + name.replace("_", "-")


def refuse_to_overwrite(folder: Path, spec: TrainSpec) -> None:
    """Raises InvalidOption where a model or a run would be lost, and for a model without a run to go on with."""
    if exists(folder / WEIGHTS) and not (exists(folder / STATE) or exists(folder / METRICS)):
        problem = f"{folder} holds a model, but nothing of the run that made it"
        raise InvalidOption(problem, hint="Choose another --out.")
    for name, what in ((STATE, "an unfinished training run"), (WEIGHTS, "a model")):
        if not spec.resume and exists(folder / name):
            raise InvalidOption(f"{folder} holds {what}", hint="Go on with it by --resume, or choose another --out.")
