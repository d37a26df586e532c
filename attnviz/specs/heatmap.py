"""What `attnviz heatmap` is asked."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import ARGUMENT, Option
from attnviz.specs.figure import FigureOptions
from attnviz.specs.model import ModelOptions, PretrainedOptions
from attnviz.specs.text import TextOptions


@dataclass(frozen=True, kw_only=True)
class HeatmapSpec:
    """`attnviz heatmap`."""

    inline_text: Annotated[str | None, Option("A text, drawn before those of --text.", ARGUMENT, "TEXT")] = None
    text: TextOptions = TextOptions()
    model: ModelOptions = ModelOptions()
    pretrained: PretrainedOptions = PretrainedOptions()
    figure: FigureOptions = FigureOptions()
