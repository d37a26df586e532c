"""What `attnviz attribute` is asked."""

from dataclasses import dataclass

from attnviz.options import FIGURE, FROM_1, MODEL, OUTPUT, group, option
from attnviz.specs import (
    AGAINST,
    KEEP,
    LOOKS,
    MAX_TOKENS_FROM_2,
    FigureOptions,
    KeepKind,
    ModelOptions,
    PrintOptions,
    TextOptions,
)

MODEL_OPTIONS = ("model", "heads", "seed", "device", "max_memory", "without")


@dataclass(frozen=True, kw_only=True)
class AttributeSpec:
    """Say which tokens an answer hangs on, and whether that is so: methods that claim it, and a card that tests them.

    Example: attnviz attribute "not a good film, but the acting saves it"
    """

    text: TextOptions = TextOptions()
    model: ModelOptions = group(ModelOptions(), *MODEL_OPTIONS)
    max_tokens: int | None = MAX_TOKENS_FROM_2.field(None)  # None: as many as the model was made for
    keep: KeepKind | None = KEEP.field(None)  # likewise
    method: str = option(
        "relevance",
        "{names}; several with commas, or all.",
        FIGURE,
        "NAME",
        table="attnviz.models.attribution:METHODS",
        is_common=True,
    )
    # None: what the model answers
    target: str | None = option(
        None, "The answer to explain: a label, or a decoder's next token.", MODEL, "LABEL|TOKEN", is_common=True
    )
    # None: of two labels the other, else none
    against: str | None = AGAINST.field(None)
    card: bool = option(
        False, "Test methods instead: what is lost without the tokens that they put first.", OUTPUT, is_common=True
    )
    top_k: int = option(10, "Tokens listed.", OUTPUT, limits=FROM_1)
    figure: FigureOptions = group(FigureOptions(kind="text", out="attribution"), *LOOKS)
    printing: PrintOptions = PrintOptions()
