"""What `attnviz attribute` is asked."""

from dataclasses import dataclass

from attnviz import specs
from attnviz.options import FIGURE, FROM_1, MODEL, OUTPUT, common, group, option

MODEL_OPTIONS = ("model", "heads", "seed", "device", "max_memory", "without")


@dataclass(frozen=True, kw_only=True)
class AttributeSpec:
    """Say which tokens an answer hangs on, and whether that is so: methods that claim it, and a card that tests them.

    Example: attnviz attribute "not a good film, but the acting saves it"
    """

    text: specs.TextOptions = specs.TextOptions()
    model: specs.ModelOptions = group(specs.ModelOptions(), *MODEL_OPTIONS)
    max_tokens: int | None = specs.MAX_TOKENS_FROM_2.field(None)  # None: as many as the model was made for
    keep: specs.KeepKind | None = specs.KEEP.field(None)  # likewise
    method: str = common(
        "relevance", "{names}; several with commas, or all.", FIGURE, "NAME", table="attnviz.models.attribution:METHODS"
    )
    # None: what the model answers
    target: str | None = common(
        None, "The answer to explain: a label, or a decoder's next token.", MODEL, "LABEL|TOKEN"
    )
    # None: of two labels the other, else none
    against: str | None = specs.AGAINST.field(None)
    card: bool = common(False, "Test methods instead: what is lost without the tokens that they put first.", OUTPUT)
    top_k: int = option(10, "Tokens listed.", OUTPUT, limits=FROM_1)
    figure: specs.FigureOptions = group(specs.FigureOptions(kind="text", out="attribution"), *specs.LOOKS)
    printing: specs.PrintOptions = specs.PrintOptions()
