"""The options of `attnviz lesson`."""

from dataclasses import dataclass

from attnviz.options import MODEL, OUTPUT, TEXT, Option, common, group
from attnviz.specs import FigureOptions, ModelOptions, PrintOptions, TextOptions

NAME = "lesson.html"
OPEN = Option("Open the page when it is made.", OUTPUT, is_common=True)
OF_MODEL = (
    *("model", "heads", "d_model", "layers", "seed", "device", "vocab", "tokenizer"),
    *("max_tokens", "keep", "max_memory"),
)
OF_PAGE = ("out", "open", "lang")
LANG = Option("Language of the page; else by LC_ALL and LANG.", OUTPUT, is_common=True)
OUT = Option(
    f"The page: a file that ends in .html, or a folder for {NAME}.", OUTPUT, "FILE|DIR", short="-o", is_common=True
)


@dataclass(frozen=True, kw_only=True)
class LessonSpec:
    """Make one page to learn attention from, of one sentence: one query step by step as a picture, heads turned off,
    what averaging does, heads side by side, and when several heads help. It opens offline, anywhere.

    Example: attnviz lesson "the acting saved the film"
    """

    text: TextOptions = TextOptions()
    example: bool = common(False, "Three words with published numbers that fit on paper, and no sentence.", TEXT)
    model: ModelOptions = group(ModelOptions(), *OF_MODEL)
    # None: single, beside multi:N; single-zh, beside multi-zh
    beside: str | None = common(None, "Another model shown beside; default: single, single-zh.", MODEL, "MODEL")
    figure: FigureOptions = group(FigureOptions(out=NAME), *OF_PAGE, out=OUT, open=OPEN, lang=LANG)
    printing: PrintOptions = PrintOptions()
