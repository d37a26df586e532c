"""What `attnviz train`, `attnviz vocab` and `attnviz predict` read and write."""

from dataclasses import replace
from pathlib import Path

from attnviz import store
from attnviz.bounded import exists
from attnviz.commands.train.spec import PredictSpec, TrainSpec, VocabSpec
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs, read_inputs
from attnviz.models.loading import find_model
from attnviz.models.protocols import Classifies
from attnviz.models.sizes import head_size

CONFIG, WEIGHTS, STATE = "config.json", "model.safetensors", "training.safetensors"


def train_inputs(spec: TrainSpec) -> Inputs:
    """Check the options and the folder, then read the texts. Raises InvalidOption or InvalidSource."""
    head_size(spec.d_model, spec.heads)
    folder = store.check_output_folder(spec.out)
    refuse_to_overwrite(folder, spec.resume)
    return replace(read_inputs((), spec.text, every=True), folder=folder)


def vocab_inputs(spec: VocabSpec) -> Inputs:
    """Check the folder, then read the texts. Raises InvalidOption or InvalidSource."""
    refuse_to_overwrite(store.check_output_folder(spec.out))
    return read_inputs((), spec.text, every=True, out=spec.out)


def predict_inputs(spec: PredictSpec) -> Inputs:
    """Find one classifier and every chosen text.

    Raises InvalidOption, InvalidModel, InvalidSource or InvalidSelection.
    """
    reference = find_model(spec.model).answering(Classifies)
    reference.check(Classifies)
    return read_inputs([reference], spec.text, every=True)


def refuse_to_overwrite(folder: Path, resume: bool = False) -> None:
    """Refuse to overwrite a model or a run, and to resume one that has ended. Raises InvalidOption."""
    if exists(folder / STATE):
        if not resume:
            hint = "Go on with it by attnviz train --resume, or choose another --out."
            raise InvalidOption(f"{folder} holds an unfinished training run", hint=hint)
    elif exists(folder / WEIGHTS) or exists(folder / CONFIG):
        raise InvalidOption(f"{folder} holds a model, and no run that stopped", hint="Choose another --out.")
