"""What the functions of `import attnviz` are asked: options of `attnviz heatmap`, with underscores."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import OUTPUT, TEXT, Only, Option
from attnviz.specs import WITHOUT, FigureOptions, ModelOptions

FIGURE_NAMES = (
    *("pick", "layer", "head", "query", "scale", "merge", "hide_special", "drop_first", "title", "columns", "kind"),
    *("cmap", "annotate", "theme", "width", "font_size"),
)
MODEL_NAMES = (
    *("model", "heads", "d_model", "layers", "causal", "seed", "device", "max_tokens", "keep", "max_memory"),
    *WITHOUT,
)


@dataclass(frozen=True, kw_only=True)
class AttentionSettings:
    """What to attend over, with which model."""

    text: Annotated[str, Option("Any text with at least one token.", TEXT)]
    model: Annotated[ModelOptions, Only(*MODEL_NAMES)] = ModelOptions()
    figure: Annotated[FigureOptions, Only("layer", "head")] = FigureOptions()


@dataclass(frozen=True, kw_only=True)
class FigureSettings:
    """What figures and pages show, and how."""

    figure: Annotated[FigureOptions, Only(*FIGURE_NAMES)] = FigureOptions()


@dataclass(frozen=True, kw_only=True)
class MeasureSettings:
    """What to measure."""

    name: Annotated[str, Option("`attnviz measures` lists them.", OUTPUT)]
