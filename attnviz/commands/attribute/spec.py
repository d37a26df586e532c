"""What `attnviz attribute` is asked."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import FIGURE, FROM_1, MODEL, OUTPUT, Only, Option
from attnviz.specs import (
    KEEP,
    LOOKS,
    WITHOUT,
    Against,
    FigureOptions,
    KeepKind,
    MaxTokens,
    ModelOptions,
    PrintOptions,
    TextOptions,
)

Method = Annotated[
    str,
    Option(
        "{names}; several with commas, or all.",
        FIGURE,
        "NAME",
        table="attnviz.models.attribution:METHODS",
        is_common=True,
    ),
]

MODEL_OPTIONS = ("model", "heads", "seed", "device", "max_memory", *WITHOUT)


@dataclass(frozen=True, kw_only=True)
class AttributeSpec:
    """Say which tokens an answer hangs on, and whether that is so: methods that claim it, and a card that tests them.

    Example: attnviz attribute "not a good film, but the acting saves it"
    """

    text: TextOptions = TextOptions()
    model: Annotated[ModelOptions, Only(*MODEL_OPTIONS)] = ModelOptions()
    max_tokens: MaxTokens = None  # None: as many as the model was made for
    keep: Annotated[KeepKind | None, KEEP] = None  # likewise
    method: Method = "relevance"
    # None: what the model answers
    target: Annotated[
        str | None,
        Option("The answer to explain: a label, or a decoder's next token.", MODEL, "LABEL|TOKEN", is_common=True),
    ] = None
    # None: of two labels the other, else none
    against: Against = None
    card: Annotated[
        bool,
        Option("Test methods instead: what is lost without the tokens that they put first.", OUTPUT, is_common=True),
    ] = False
    top_k: Annotated[int, Option("Tokens listed.", OUTPUT, limits=FROM_1)] = 10
    figure: Annotated[FigureOptions, Only(*LOOKS)] = FigureOptions(kind="text", out="attribution")
    printing: PrintOptions = PrintOptions()
