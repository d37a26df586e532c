"""Training runs in small, for every test that needs one."""

import pickle
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnviz.commands.train import run
from attnviz.commands.train.spec import TrainSpec
from attnviz.commands.train.training import Training
from attnviz.options import build
from attnviz.renderers.figure.files import png
from attnviz.report import FigureStyle, Report
from attnviz.running import Progress, Result
from tests.events import result
from tests.starting import train

CHECKPOINT = ("model.safetensors", "tokenizer.json", "config.json")
FILES = (*CHECKPOINT, "metrics.json", "README.md", "learning-curve.png")
SETTINGS = {"batch_size": 8, "d_model": 16, "heads": 2, "size": 300, "pretrain": 0, "learning_rate": 0.005}
SIZES = tuple(f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items())
TINY = ("train", "--dataset", "sample", "--epochs", "2", *SIZES)  # the command of `SPEC`
SPEC = build(TrainSpec, dataset="sample", epochs=2, **SETTINGS)
N_STEPS = 10  # 36 texts in batches of 8, twice
GOING_BACK = replace(
    SPEC, epochs=8, learning_rate=0.02, patience=3, storage="float32"
)  # its best epoch is not its last

DRAWN: dict[bytes, list[tuple[str, bytes]]] = {}


def probe_little(patch: pytest.MonkeyPatch) -> None:
    """How much is measured of what heads look at is no matter of a run, and takes most of the time of one so small."""
    patch.setattr("attnviz.commands.train.run.N_RANDOM", 2)


def draw_once(patch: pytest.MonkeyPatch) -> None:
    """The same report is drawn once for all tests: that the same is drawn twice is tested where it is drawn."""

    def pictures(report: Report, look: FigureStyle) -> list[tuple[str, bytes]]:
        asked = pickle.dumps((report, look))
        return DRAWN.get(asked) or DRAWN.setdefault(asked, [*png(report, look)])

    patch.setattr(run, "png", pictures)


def after_step(patch: pytest.MonkeyPatch, step: int, act: Callable[[Training], object]) -> None:
    """Have something happen while a training is at such a step."""
    learn = Training._learn

    def learned(self: Training, batch: np.ndarray) -> tuple[float, float]:
        found = learn(self, batch)
        if self.done + 1 == step:
            act(self)
        return found

    patch.setattr(Training, "_learn", learned)


def finished(spec: TrainSpec, folder: Path) -> Result:
    """A run from beginning to end."""
    return result(train(replace(spec, out=str(folder))))


def resumed(spec: TrainSpec, folder: Path) -> tuple[Progress, ...]:
    """A run that goes on to its end: how far it was after each step, and first of all before the first."""
    *steps, last = train(replace(spec, out=str(folder), resume=True))
    assert isinstance(last, Result)
    return tuple(step for step in steps if isinstance(step, Progress))


def stopped(spec: TrainSpec, folder: Path | str, n_steps: int) -> None:
    """A run that was left after so many steps."""
    events = train(replace(spec, out=str(folder)))
    assert isinstance(events, Generator)
    for event in events:
        if isinstance(event, Progress) and event.done == n_steps:
            events.close()
