"""What `attnviz compare` is asked."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import ARGUMENT, OUTPUT, Only, Option
from attnviz.specs import (
    MODELS,
    OF_DATA_SETS,
    SHARED_BY_ALL,
    STYLE,
    AnswerOrAll,
    FigureOptions,
    LayerSelection,
    Measure,
    ModelOptions,
    PrintOptions,
    Query,
    TextOptions,
)

Theory = Annotated[bool, Option("Also compare with recurrent and convolutional layers.", OUTPUT, is_common=True)]


@dataclass(frozen=True, kw_only=True)
class CompareSpec:
    """Measure and draw what models attend to in the same texts, or how alike the heads of one are.

    Example: attnviz compare single multi --text "not a good film, but the acting saves it"
    """

    text: Annotated[TextOptions, Only("text", "text_file", *OF_DATA_SETS, "index")] = TextOptions()
    # 512 tokens, as the models that come with attnviz read, so that what is compared is what decides
    model: Annotated[ModelOptions, Only(*SHARED_BY_ALL)] = ModelOptions(max_tokens=512, keep="head-tail")
    # the maps are to be compared with each other, and of long texts to be seen at all
    figure: Annotated[FigureOptions, Only(*STYLE, "lang")] = FigureOptions(out="comparison")
    models: Annotated[
        tuple[str, ...],
        Option(
            "One or more of: {names}, multi:N, random:N, folders, names on the hub.",
            ARGUMENT,
            "MODELS",
            table=MODELS,
        ),
    ]
    layer: LayerSelection = ()
    # None: the one on which heads differ most
    query: Query = None
    measure: Measure = ()  # empty: all, of which the answer lists five
    theory: Theory = False
    kernel: Annotated[
        int, Option("Width of the convolutions in --theory.", OUTPUT, "K", limits=(("at least", 2), ("at most", 1000)))
    ] = 3
    table: AnswerOrAll = "answer"
    printing: PrintOptions = PrintOptions()
