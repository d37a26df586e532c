"""A watched run on the terminal, a line for each layer, and in the logs of others."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnviz.monitor.run import MEASURES, Alarm, HeadNumbers, summarize_layers

LINE = "layer {:<3} score {:8.1f} · entropy {:.2f} · first token {:.2f} · previous {:.2f}"  # within 80 columns
UP, CLEAR = "\x1b[{}A", "\x1b[2K"  # so many lines; this line


class LayerLines:
    """Lines of layers that stay in place on a terminal. Elsewhere, as in a file of logs, only alarms are written."""

    def __init__(self) -> None:
        self._n_lines = 0

    def show(self, step: int, look: HeadNumbers, alarms: Sequence[Alarm]) -> None:
        """Write one look over the last one. Alarms stay above."""
        lines = [f"attention alarm, {alarm}" for alarm in alarms]
        if sys.stderr.isatty():
            of_layers = [LINE.format(layer, *extremes) for layer, extremes in enumerate(summarize_layers(look))]
            lines = [
                CLEAR + line
                for line in (*lines, f"attention at step {step}, the extremes of each layer's heads", *of_layers)
            ]
            lines[0] = (UP.format(self._n_lines) if self._n_lines else "") + lines[0]
            self._n_lines = len(of_layers) + 1
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
