"""The options of `attnviz explain`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from attnviz.options import MODEL, TEXT, Only, Option
from attnviz.specs import BUILT_IN, ModelOptions, PrintOptions, Query, TextOptions, TopK

LabelKind = Literal["en", "zh"]


@dataclass(frozen=True, kw_only=True)
class ExplainSpec:
    """Work out what one token attends to, step by step: from q, k and v to the output, held against the model's own.

    Example: attnviz explain --text "the film was not good" --query good --head 1
    """

    text: TextOptions = TextOptions()
    model: Annotated[ModelOptions, Only(model=BUILT_IN)] = ModelOptions()
    # None: the first token, of a causal model the last
    query: Query = None
    layer: Annotated[int, Option("Which layer; -1 is the last.", MODEL, "N")] = 0
    head: Annotated[
        tuple[str, ...], Option("Heads shown key by key: 0, 0-3,7{; repeat}. Default: the first.", MODEL, "N")
    ] = ()
    top_k: TopK = 10
    example: Annotated[bool, Option("Instead of a text: three tokens whose numbers fit on paper.", TEXT)] = False
    lang: Annotated[LabelKind | None, Option("Labels of the example's tokens.", TEXT)] = None  # None: English
    printing: PrintOptions = PrintOptions()
