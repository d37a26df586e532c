"""What `attnviz compare` is asked."""

from dataclasses import MISSING, dataclass

from attnviz import specs
from attnviz.options import ARGUMENT, OUTPUT, common, group, option


@dataclass(frozen=True, kw_only=True)
class CompareSpec:
    """Measure and draw what models attend to in the same texts, or how alike the heads of one are.

    Example: attnviz compare single multi --text "not a good film, but the acting saves it"
    """

    text: specs.TextOptions = group(specs.TextOptions(), "text", "text_file", *specs.OF_DATA_SETS, "index")
    # 512 tokens, as the models that come with attnviz read, so that what is compared is what decides
    model: specs.ModelOptions = group(specs.ModelOptions(max_tokens=512, keep="head-tail"), *specs.SHARED_BY_ALL)
    # the maps are to be compared with each other, and of long texts to be seen at all
    figure: specs.FigureOptions = group(specs.FigureOptions(out="comparison"), *specs.STYLE, "lang")
    models: tuple[str, ...] = option(
        MISSING,
        "One or more of: {names}, multi:N, random:N, folders, names on the hub.",
        ARGUMENT,
        "MODELS",
        table=specs.MODELS,
    )
    layer: tuple[str, ...] = specs.LAYER.field(())
    # None: the one on which heads differ most
    query: str | None = specs.QUERY.field(None)
    measure: tuple[str, ...] = specs.MEASURE.field(())  # empty: all, of which the answer lists five
    theory: bool = common(False, "Also compare with recurrent and convolutional layers.", OUTPUT)
    kernel: int = option(
        3, "Width of the convolutions in --theory.", OUTPUT, "K", limits=(("at least", 2), ("at most", 1000))
    )
    table: specs.AnswerKind = specs.TABLE.field("answer")
    printing: specs.PrintOptions = specs.PrintOptions()
