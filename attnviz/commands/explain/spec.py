"""The options of `attnviz explain`."""

from dataclasses import dataclass

from attnviz.options import MODEL, TEXT, group, option
from attnviz.specs import (
    AGAINST,
    LOOKS,
    QUERY,
    TABLE,
    AnswerKind,
    FigureOptions,
    ModelOptions,
    PrintOptions,
    TextOptions,
)


@dataclass(frozen=True, kw_only=True)
class ExplainSpec:
    """Say which heads wrote a model's answer (a class, a next or masked token) and why they looked there; or, with
    --by-hand, work out what one token attends to. All is held against the model's own numbers.

    Example: attnviz explain "the film was not good"
    """

    text: TextOptions = TextOptions()
    model: ModelOptions = ModelOptions()
    # None: the model's own
    answer: str | None = option(None, "The class or token to explain.", MODEL, "LABEL|TOKEN", is_common=True)
    # None: the most probable of the others
    against: str | None = AGAINST.field(None)
    by_hand: bool = option(False, "With a built-in model: work out one query step by step.", TEXT, is_common=True)
    # None: by hand the first token, of a causal model and of a decoder the last
    query: str | None = QUERY.field(None)
    # None: the answer is explained; by hand the first
    head: str | None = option(
        None, "Explain one look of this head only, 18.6. By hand: the head.", MODEL, "LAYER.HEAD", is_common=True
    )
    figure: FigureOptions = group(FigureOptions(out="explanation"), *LOOKS, "lang")
    table: AnswerKind = TABLE.field("answer")
    printing: PrintOptions = PrintOptions()
