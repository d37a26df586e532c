"""What `attnviz render` is asked."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import ARGUMENT, MODEL, Option
from attnviz.specs.figure import FigureOptions


@dataclass(frozen=True, kw_only=True)
class RenderSpec:
    """`attnviz render`."""

    figure: FigureOptions = FigureOptions()
    record: Annotated[str, Option("An attention.safetensors.", ARGUMENT, "FILE")]
    max_memory: Annotated[float, Option("GiB that the process may take for one record.", MODEL)] = 4.0
