"""The options of `attnviz explain`."""

from dataclasses import dataclass

from attnviz import specs
from attnviz.options import MODEL, TEXT, common, group


@dataclass(frozen=True, kw_only=True)
class ExplainSpec:
    """Say which heads wrote a model's answer (a class, a next or masked token) and why they looked there; or, with
    --by-hand, work out what one token attends to. All is held against the model's own numbers.

    Example: attnviz explain "the film was not good"
    """

    text: specs.TextOptions = specs.TextOptions()
    model: specs.ModelOptions = specs.ModelOptions()
    # None: the model's own
    answer: str | None = common(None, "The class or token to explain.", MODEL, "LABEL|TOKEN")
    # None: the most probable of the others
    against: str | None = specs.AGAINST.field(None)
    by_hand: bool = common(False, "With a built-in model: work out one query step by step.", TEXT)
    # None: by hand the first token, of a causal model and of a decoder the last
    query: str | None = specs.QUERY.field(None)
    # None: the answer is explained; by hand the first
    head: str | None = common(None, "Explain one look of this head only, 18.6. By hand: the head.", MODEL, "LAYER.HEAD")
    figure: specs.FigureOptions = group(specs.FigureOptions(out="explanation"), *specs.LOOKS, "lang")
    table: specs.AnswerKind = specs.TABLE.field("answer")
    printing: specs.PrintOptions = specs.PrintOptions()
