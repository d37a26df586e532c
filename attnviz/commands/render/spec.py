"""The options of `attnviz render`."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import ARGUMENT, Option
from attnviz.specs import MAX_MEMORY, FigureOptions, PrintOptions


@dataclass(frozen=True, kw_only=True)
class RenderSpec:
    """Draw a saved record again, without the model.

    Example: attnviz render attention/attention.safetensors --format svg,pdf --scale shared
    """

    figure: FigureOptions = FigureOptions()
    printing: PrintOptions = PrintOptions()
    record: Annotated[str, Option("An attention.safetensors.", ARGUMENT, "FILE")]
    max_memory: Annotated[float, MAX_MEMORY] = 4.0
