"""The options of `attnviz explain`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from attnviz.options import MODEL, OUTPUT, TEXT, Only, Option
from attnviz.specs import Against, FigureOptions, ModelOptions, PrintOptions, Query, TextOptions

LabelKind = Literal["en", "zh"]
LOOKS = ("format", "theme", "width", "font_size", "dpi", "title", "transparent", "svg_text", "out")


@dataclass(frozen=True, kw_only=True)
class ExplainSpec:
    """Say which heads of a decoder wrote its next token, and why they looked where they did; of a built-in model, work
    out by hand what one token attends to, from q, k and v to the output. All of it is held against the model's own.

    Example: attnviz explain --text "the film was not good" --query good --head 1
    """

    text: TextOptions = TextOptions()
    model: ModelOptions = ModelOptions()
    # None: the model's own
    answer: Annotated[
        str | None, Option("Of a decoder: the next token to explain.", MODEL, "TOKEN", is_common=True)
    ] = None
    # None: the most probable of the others
    against: Against = None
    by_hand: Annotated[
        bool, Option("Work one query out step by step, as for built-in models.", TEXT, is_common=True)
    ] = False
    # None: the first token, of a causal model and of a decoder the last
    query: Query = None
    layer: Annotated[int, Option("By hand: which layer; -1 is the last.", MODEL, "N")] = 0
    head: Annotated[
        tuple[str, ...],
        Option(
            "Of a decoder: explain one look of this head only, 18.6. By hand: heads shown key by key, 0, 0-3,7{; "
            "repeat}; default: the first.",
            MODEL,
            "LAYER.HEAD|N",
            is_common=True,
        ),
    ] = ()
    top_k: Annotated[int, Option("By hand: keys listed for each query.", OUTPUT)] = 10
    example: Annotated[
        bool, Option("Three tokens whose numbers fit on paper, and no text; to explore: lesson.", TEXT, is_common=True)
    ] = False
    lang: Annotated[LabelKind | None, Option("Labels of the example's tokens.", TEXT)] = None  # None: English
    figure: Annotated[FigureOptions, Only(*LOOKS)] = FigureOptions(out="explanation")
    printing: PrintOptions = PrintOptions()
