"""What `attnviz changed` is asked."""

from dataclasses import MISSING, dataclass

from attnviz.options import ARGUMENT, MODEL, TEXT, Limits, common, group, option
from attnviz.specs import LOOKS, OF_DATA_SETS, TABLE, AnswerKind, FigureOptions, ModelOptions, PrintOptions, TextOptions

MOST: Limits = (("at least", 1), ("at most", 1000))
MODEL_OPTIONS = ("seed", "device", "max_tokens", "keep", "max_memory", "chat")
FROM_3: Limits = (("at least", 3), ("at most", 1000))


@dataclass(frozen=True, kw_only=True)
class ChangedSpec:
    """Say what tuning changed: which heads attend otherwise beyond noise, by their own weights or by what they read,
    and which of them matter for the answers.

    Example: attnviz changed smollm2 ./tuned --dataset reviews.csv
    """

    base: str = option(MISSING, "A model of transformers: a folder, a name on the hub, smollm2.", ARGUMENT, "BASE")
    tuned: str = option(MISSING, "What was tuned from it, or a folder of LoRA.", ARGUMENT, "TUNED")
    text: TextOptions = group(TextOptions(), "text", "text_file", *OF_DATA_SETS, "index")
    texts: int = common(12, "At most so many texts.", TEXT, "N", limits=MOST)
    model: ModelOptions = group(ModelOptions(max_tokens=48), *MODEL_OPTIONS)
    tested: int = option(16, "Heads to put into the other model: whose own weights change most.", MODEL, limits=MOST)
    noise: int = option(19, "Models with noise of the same size that a head has to beat.", MODEL, limits=FROM_3)
    figure: FigureOptions = group(FigureOptions(out="changed"), *LOOKS)
    table: AnswerKind = TABLE.field("answer")
    printing: PrintOptions = PrintOptions()
