"""What the functions of `import attnviz` are asked: options of `attnviz heatmap`, with underscores."""

from dataclasses import MISSING, dataclass

from attnviz.options import TEXT, group, option
from attnviz.specs import FigureOptions, ModelOptions

FIGURE_NAMES = (
    *("pick", "layer", "head", "query", "scale", "merge", "hide_special", "drop_first", "title", "columns", "kind"),
    *("cmap", "annotate", "theme", "width", "font_size"),
)
MODEL_NAMES = (
    *("model", "heads", "d_model", "layers", "causal", "seed", "device", "max_tokens", "keep", "max_memory"),
    "without",
)


@dataclass(frozen=True, kw_only=True)
class AttentionSettings:
    """What to attend over, with which model."""

    text: str = option(MISSING, "Any text with at least one token.", TEXT)
    model: ModelOptions = group(ModelOptions(), *MODEL_NAMES)
    figure: FigureOptions = group(FigureOptions(), "layer", "head")


@dataclass(frozen=True, kw_only=True)
class FigureSettings:
    """What figures and pages show, and how."""

    figure: FigureOptions = group(FigureOptions(), *FIGURE_NAMES)
