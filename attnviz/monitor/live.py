"""A watched run on the terminal, a line for each layer, and in the logs of others."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnviz.monitor.run import MEASURES, Alarm, HeadNumbers, summarize_layers

LINE = "layer {:<3} score {:8.1f} · entropy {:.2f} · first token {:.2f} · previous {:.2f}"  # within 80 columns
BACK = "\x1b[{}F\x1b[J"  # so many lines up, and all from there is cleared


def show_look(step: int, look: HeadNumbers, alarms: Sequence[Alarm], *, is_first: bool) -> None:
    """Write one look over the last one on a terminal; elsewhere, as in a file of logs, only alarms. These stay."""
    lines = [f"attention alarm, {alarm}" for alarm in alarms]
    if sys.stderr.isatty():
        of_layers = [LINE.format(layer, *extremes) for layer, extremes in enumerate(summarize_layers(look))]
        sys.stderr.write("" if is_first else BACK.format(len(of_layers) + 1))
        lines += [f"attention at step {step}, the extremes of each layer's heads", *of_layers]
    sys.stderr.writelines(f"{line}\n" for line in lines)


def log_scalars(writer: Any, step: int, look: HeadNumbers) -> None:
    """Hand the numbers of each head to a SummaryWriter of TensorBoard, or to wandb or one of its runs."""
    names = [f"attention/{name}/{layer}.{head}" for layer, head in np.ndindex(*look.shape[:2]) for name in MEASURES]
    scalars = dict(zip(names, look.ravel().tolist(), strict=True))
    if not hasattr(writer, "add_scalar"):
        writer.log(scalars, commit=False)  # into the row of the step that the loop itself logs
        return
    for name, value in scalars.items():
        writer.add_scalar(name, value, step)
