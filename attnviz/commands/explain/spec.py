"""The options of `attnviz explain`."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import MODEL, TEXT, Only, Option
from attnviz.specs import LOOKS, Against, AnswerOrAll, FigureOptions, ModelOptions, PrintOptions, Query, TextOptions


@dataclass(frozen=True, kw_only=True)
class ExplainSpec:
    """Say which heads wrote a model's answer (a class, a next or masked token) and why they looked there; or, with
    --by-hand, --query or --head N, work out what one token attends to. All is held against the model's own numbers.

    Example: attnviz explain "the film was not good"
    """

    text: TextOptions = TextOptions()
    model: ModelOptions = ModelOptions()
    # None: the model's own
    answer: Annotated[str | None, Option("The class or token to explain.", MODEL, "LABEL|TOKEN", is_common=True)] = None
    # None: the most probable of the others
    against: Against = None
    by_hand: Annotated[
        bool, Option("With a built-in model: work out one query step by step.", TEXT, is_common=True)
    ] = False
    # None: by hand the first token, of a causal model and of a decoder the last
    query: Query = None
    # None: the first
    layer: Annotated[int | None, Option("By hand: which layer; -1 is the last.", MODEL, "N")] = None
    head: Annotated[
        tuple[str, ...],
        Option(
            "Explain one look of this head only, 18.6. By hand: heads shown key by key, 0, 0-3,7{; repeat}.",
            MODEL,
            "LAYER.HEAD|N",
            is_common=True,
        ),
    ] = ()
    figure: Annotated[FigureOptions, Only(*LOOKS, "lang")] = FigureOptions(out="explanation")
    table: AnswerOrAll = "answer"
    printing: PrintOptions = PrintOptions()
