"""The options of `attnviz predict`."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import FIGURE, Only, Option
from attnviz.running.cluster_options import Processes
from attnviz.specs import (
    KEEP,
    STYLE,
    WITHOUT,
    FigureOptions,
    KeepKind,
    MaxTokens,
    ModelOptions,
    PrintOptions,
    TextOptions,
)


@dataclass(frozen=True, kw_only=True)
class PredictSpec:
    """Classify each text, with a probability that built-in models calibrate; given labels, say how often that is right.

    Example: attnviz predict --text "not a good film, but the acting saves it"
    """

    text: TextOptions = TextOptions()
    model: Annotated[ModelOptions, Only("model", "heads", "device", "max_memory", *WITHOUT)] = ModelOptions()
    max_tokens: MaxTokens = None  # None: as many as the model was made for
    keep: Annotated[KeepKind | None, KEEP] = None  # likewise
    figure: Annotated[FigureOptions, Only("layer", "head", *STYLE)] = FigureOptions()
    heatmap: Annotated[bool, Option("Also draw what each text's tokens attended to.", FIGURE, is_common=True)] = False
    attribute: Annotated[
        bool, Option("Also shade each text by what its tokens did for the answer.", FIGURE, is_common=True)
    ] = False
    workers: Processes = None
    printing: PrintOptions = PrintOptions()
