"""What `attnviz render` is asked."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import ARGUMENT, Option
from attnviz.specs.figure import FigureOptions
from attnviz.specs.model import MAX_MEMORY


@dataclass(frozen=True, kw_only=True)
class RenderSpec:
    """`attnviz render`."""

    figure: FigureOptions = FigureOptions()
    record: Annotated[str, Option("An attention.safetensors.", ARGUMENT, "FILE")]
    max_memory: Annotated[float, MAX_MEMORY] = 4.0
