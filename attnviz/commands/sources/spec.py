"""What `attnviz sources` is asked."""

from dataclasses import dataclass
from typing import Literal

from attnviz.options import MODEL, TEXT, Limits, common, group, option
from attnviz.specs import LOOKS, TABLE, AnswerKind, FigureOptions, ModelOptions, PrintOptions, TextOptions

PassageKind = Literal["auto", "paragraphs", "lines", "marked", "texts"]
TEXT_OPTIONS = ("inline_text", "text", "text_file", "encoding", "keep_markup")
MODEL_OPTIONS = ("model", "seed", "device", "max_tokens", "max_memory", "chat", "without")
DRAWS: Limits = (("at least", 2), ("at most", 1000))  # of one nothing says how far apart they are
MOST: Limits = (("at least", 1), ("at most", 1000))


@dataclass(frozen=True, kw_only=True)
class SourcesSpec:
    """Say which passages of a prompt a decoder's answer needs: question and answer may not look at one, and the answer
    loses more than without as many tokens elsewhere.

    Example: attnviz sources prompt.txt --question "Where does Anna live?" --chat
    """

    text: TextOptions = group(TextOptions(), *TEXT_OPTIONS)
    # None: the last passage
    question: str | None = common(None, "What is asked. Default: the last passage of the prompt.", TEXT, "TEXT")
    passages: PassageKind = option(
        "auto",
        "paragraphs, lines, marked (<a>…</a>) or texts (each of several is one); auto: what gives two of them.",
        TEXT,
        "KIND",
    )
    model: ModelOptions = group(ModelOptions(model="smollm2"), *MODEL_OPTIONS)
    # None: what the model writes
    answer: str | None = common(None, "An answer. Default: what the model writes.", MODEL, "TEXT")
    length: int = option(16, "At most so many tokens of what the model writes, in one line.", MODEL, "N", limits=MOST)
    draws: int = option(11, "Random knock-outs that a passage has to beat.", MODEL, "N", limits=DRAWS)
    figure: FigureOptions = group(FigureOptions(out="sources"), *LOOKS, "lang")
    table: AnswerKind = TABLE.field("answer")
    printing: PrintOptions = PrintOptions()
