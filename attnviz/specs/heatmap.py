"""What `attnviz heatmap` is asked."""

from dataclasses import dataclass

from attnviz.specs.figure import FigureOptions
from attnviz.specs.model import ModelOptions, PretrainedOptions
from attnviz.specs.text import TextOptions


@dataclass(frozen=True, kw_only=True)
class HeatmapSpec:
    """`attnviz heatmap`."""

    text: TextOptions = TextOptions()
    model: ModelOptions = ModelOptions()
    pretrained: PretrainedOptions = PretrainedOptions()
    figure: FigureOptions = FigureOptions()
