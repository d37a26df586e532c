"""What `attnviz compare` is asked."""

from dataclasses import MISSING, dataclass

from attnviz.options import ARGUMENT, OUTPUT, group, option
from attnviz.specs import (
    LAYER,
    MEASURE,
    MODELS,
    OF_DATA_SETS,
    QUERY,
    SHARED_BY_ALL,
    STYLE,
    TABLE,
    AnswerKind,
    FigureOptions,
    ModelOptions,
    PrintOptions,
    TextOptions,
)


@dataclass(frozen=True, kw_only=True)
class CompareSpec:
    """Measure and draw what models attend to in the same texts, or how alike the heads of one are.

    Example: attnviz compare single multi --text "not a good film, but the acting saves it"
    """

    text: TextOptions = group(TextOptions(), "text", "text_file", *OF_DATA_SETS, "index")
    # 512 tokens, as the models that come with attnviz read, so that what is compared is what decides
    model: ModelOptions = group(ModelOptions(max_tokens=512, keep="head-tail"), *SHARED_BY_ALL)
    # the maps are to be compared with each other, and of long texts to be seen at all
    figure: FigureOptions = group(FigureOptions(out="comparison"), *STYLE, "lang")
    models: tuple[str, ...] = option(
        MISSING,
        "One or more of: {names}, multi:N, random:N, folders, names on the hub.",
        ARGUMENT,
        "MODELS",
        table=MODELS,
    )
    layer: tuple[str, ...] = LAYER.field(())
    # None: the one on which heads differ most
    query: str | None = QUERY.field(None)
    measure: tuple[str, ...] = MEASURE.field(())  # empty: all, of which the answer lists five
    theory: bool = option(False, "Also compare with recurrent and convolutional layers.", OUTPUT, is_common=True)
    kernel: int = option(
        3, "Width of the convolutions in --theory.", OUTPUT, "K", limits=(("at least", 2), ("at most", 1000))
    )
    table: AnswerKind = TABLE.field("answer")
    printing: PrintOptions = PrintOptions()
