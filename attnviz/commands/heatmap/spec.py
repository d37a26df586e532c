"""The options of `attnviz heatmap`."""

from dataclasses import dataclass

from attnviz.options import ARGUMENT, MODEL, option
from attnviz.specs import FigureOptions, ModelOptions, PretrainedOptions, PrintOptions, TextOptions


@dataclass(frozen=True, kw_only=True)
class HeatmapSpec:
    """Draw who attends to what in a text or an image, head by head and in numbers.

    Example: attnviz heatmap "the cat sat on the mat" --heads 8
    """

    text: TextOptions = TextOptions()
    question: str | None = option(
        None, "What is asked about an image, of a model that reads both.", ARGUMENT, "QUESTION"
    )
    cover: bool = option(
        True,
        "Cover what heads look at most in an image, and 19 times as much elsewhere: how much the answer loses.",
        MODEL,
        flags="--cover/--no-cover",
    )
    model: ModelOptions = ModelOptions()
    pretrained: PretrainedOptions = PretrainedOptions()
    factored: bool | None = option(
        None,
        "Keep q and k instead of the weights, only for the layers and heads drawn. Default: if the weights exceed "
        "--max-memory, or the 2^26 that a picture shows one by one (8 heads of 2,896 tokens).",
        MODEL,
        flags="--factored/--no-factored",
    )
    figure: FigureOptions = FigureOptions()
    printing: PrintOptions = PrintOptions()
