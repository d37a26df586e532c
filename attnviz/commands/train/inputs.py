"""What `attnviz train`, `attnviz vocab` and `attnviz predict` read and write."""

from __future__ import annotations

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
from attnviz.running.executors import check_workers
from attnviz.running.metrics import NAME as METRICS
from attnviz.text import Document

WEIGHTS, STATE = "model.safetensors", "training.safetensors"
MAX_LAYERS = 1_000  # that a checkpoint may have, known here without torch
MAX_TOKENS = 1_000_000  # far beyond any text; neighbours still have positions of their own in float32


def train_inputs(spec: TrainSpec) -> Inputs:
    """Check the options and the folder, then read the texts. Raises InvalidOption or InvalidSource."""
    check(spec)
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
    check_workers(spec.workers)
    reference = find_model(spec.model).answering(Classifies)
    reference.check(Classifies)
    if spec.max_tokens is not None and spec.max_tokens < 2:
        raise InvalidOption(f"--max-tokens {spec.max_tokens} is too small", hint="It is at least 2.")
    formats = [plugin.name for plugin in choose_renderers(spec.figure.format, spec.figure.open)]
    if drawn := [name for name in formats if name != PAGE_FORMAT]:
        raise InvalidOption(f"predict draws no {drawn[0]}", hint="--format html is a page; heatmap and attribute draw.")
    inputs = read_inputs([reference], spec.text, every=True, out=spec.figure.out if formats else None)
    return replace(inputs, n_workers=min(spec.workers or 1, len(split_windows(inputs.documents))))


def split_windows(documents: Sequence[Document]) -> list[Sequence[Document]]:
    """Split the texts into what one process reads at a time, in order."""
    return [documents[start : start + WINDOW] for start in range(0, len(documents), WINDOW)]


def check(spec: TrainSpec) -> None:
    """Raises InvalidOption for a number that cannot be. Imports nothing heavy."""
    whole = {"epochs": 1, "batch_size": 1, "crop": 2, "max_tokens": 2, "patience": 1, "layers": 1}
    whole |= {"pretrain": 0, "max_distance": 0}
    for name, least in whole.items():
        if (value := getattr(spec, name) or 0) < least:
            raise InvalidOption(f"{name_option(name)} {value} is too small", hint=f"It is at least {least}.")
    if not 0 <= spec.seed < 2**63:
        raise InvalidOption(f"--seed {spec.seed} is out of range", hint=f"It is 0 to {2**63 - 1}.")
    for name, limit in {"dropout": 1, "word_dropout": 1, "label_smoothing": 1, "validation": 0.5}.items():
        if not 0 <= (value := getattr(spec, name)) < limit:
            hint = f"It is a share: 0 ≤ {name} < {limit}."
            raise InvalidOption(f"{name_option(name)} {value:g} is out of range", hint=hint)
    for option, rate in (("--learning-rate", spec.learning_rate), ("--pretrain-rate", spec.pretrain_rate)):
        if rate is not None and not 0 < rate <= 1:
            raise InvalidOption(f"{option} {rate:g} is out of range", hint="0 < rate ≤ 1.")
    for name, most in {"layers": MAX_LAYERS, "max_tokens": MAX_TOKENS, "max_distance": MAX_TOKENS}.items():
        if (value := getattr(spec, name) or 0) > most:
            raise InvalidOption(f"{name_option(name)} {value} is too large", hint=f"It is at most {most:,}.")
    head_size(spec.d_model or 0, spec.heads or 0)


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
