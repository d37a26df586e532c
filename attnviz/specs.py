"""The groups of options that commands share: which texts, which model, which figures, what is printed.

Each command's own spec is a class in its folder that holds some of these groups.
"""

from dataclasses import dataclass
from typing import Literal

from attnviz.errors import refuse_several
from attnviz.options import ARGUMENT, FIGURE, FROM_1, FROM_2, MODEL, OUTPUT, TEXT, Limits, Option, common, option
from attnviz.words import Language

TokenizerKind = Literal["word", "bpe"]
KeepKind = Literal["head", "head-tail"]
NormKind = Literal["pre", "post"]
PoolKind = Literal["mean", "cls"]
StorageKind = Literal["float32", "float16", "int8"]
AttentionKind = Literal["self", "encoder", "decoder", "cross"]
AnswerKind = Literal["answer", "full"]
TableKind = Literal["answer", "heads", "heatmap", "top", "full", "none"]
PrintKind = Literal["table", "brief", "json", "csv", "markdown", "latex", "none"]
ScaleKind = Literal["lift", "fixed", "shared", "log"]
MergeKind = Literal["words", "phrases"]
FigureKind = Literal["map", "lines", "text"]
ThemeName = Literal["paper", "slide", "dark"]
WeighKind = Literal["attention", "values"]

MODELS, MEASURES = "attnviz.models:MODELS", "attnviz.measures:MEASURES"
# Where a model knows few words of a text.
OTHER_LANGUAGES = "--model multi-zh and single-zh read Chinese; attnviz train makes models of other languages."
OF_DATA_SETS = ("dataset", "split", "text_column", "label_column", "encoding")
# Options of a model that mean the same for several models.
SHARED_BY_ALL = (
    *("d_model", "layers", "causal", "seed", "device", "vocab", "tokenizer", "max_tokens", "keep", "max_memory"),
)
# Options of every command that draws.
LOOKS = ("format", "theme", "width", "font_size", "dpi", "title", "transparent", "svg_text", "out", "open")
STYLE = (  # options of every command that draws maps
    *("format", "kind", "cmap", "scale", "annotate", "theme", "width", "columns", "font_size", "dpi"),
    *("title", "transparent", "svg_text", "out", "open"),
)
COLOUR_MAPS = ("auto", "lift", "viridis", "cividis", "magma", "inferno", "plasma", "Greys", "Blues", "rocket", "mako")
# BPE makes room for as many entries before it begins; the first three are special.
SIZE: Limits = (("at least", 4), ("at most", 10_000_000))
# Far more than any corpus holds of a word, and a number that the library can count to.
COUNT: Limits = (("at least", 1), ("at most", 10**12))
DPI: Limits = (("at least", 30), ("at most", 2400))
POINTS: Limits = (("at least", 6), ("at most", 48))  # smaller ones are not legible in print

# Options that several specs have, with defaults or types of their own.
MAX_MEMORY = Option("GiB that the process may take for one text.", MODEL, "GIB")
KEEP = Option("The first N tokens, or N/2 of the beginning and of the end.", MODEL)
WEIGH = Option(
    "values: shares of what each weight moves, weight × ‖value × output projection‖, in numbers, too.", FIGURE
)
QUERY = Option("A word of the text or its position.", TEXT, "WORD|N", is_common=True)
AGAINST = Option("Explain by how much the answer exceeds this other one.", MODEL, "LABEL|TOKEN", is_common=True)
HEADS = Option("Heads: N for multi:N, 1 for single.", MODEL, is_common=True)
WIDTH = Option("Width of the model, shared by its heads.", MODEL)
LAYERS = Option("Layers of the model.", MODEL, limits=FROM_1)
MAX_TOKENS = Option("At most N tokens of a text; --keep says which.", MODEL, limits=FROM_1, is_common=True)
SEED = Option("Seed of what is random.", MODEL, limits=(("at least", 0),))
DEVICE = Option("auto, cpu, cuda, cuda:N or mps.", MODEL, "DEVICE")
TOKENIZER = Option("Kind of vocabulary to make.", MODEL)
# A marker is one of them: of a text that is classified there is more.
MAX_TOKENS_FROM_2 = MAX_TOKENS._replace(limits=FROM_2)
LAYER = Option("Which layers: 0, 0-3,7{; repeat}. Default: all.", FIGURE, "N")
OUT = Option("Folder to write to.", OUTPUT, "DIR", short="-o", is_common=True)
MEASURE = Option(
    "Measures, with commas, or all; see `attnviz measures`.", OUTPUT, "NAME", table=MEASURES, is_common=True
)
TABLE = Option("In the terminal: answer, or full (all that was measured).", OUTPUT, "WHAT")


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """Which texts. Without a text, a file or a data set it is the packaged sample."""

    inline_text: str | None = option(None, "A text, or a file that is one or holds many.", ARGUMENT, "TEXT")
    text: tuple[str, ...] = common((), "A text{; repeat for several}.", TEXT, short="-t")
    text_file: tuple[str, ...] = option((), "A file that is one text{; - is stdin}.", TEXT, "FILE")
    dataset: str | None = common(
        None, "{names}, a name on the hub, a file or a folder.", TEXT, "NAME|PATH", table="attnviz.text:NAMES"
    )
    # None: `train` where there is one, else the only split
    split: str | None = option(None, "train, test, train[:1000], train[-5:], train[:10%], train+test.", TEXT, "SPLIT")
    text_column: str | None = option(
        None, "The column of texts, by name or number, if not found by name.", TEXT, "NAME|N"
    )
    label_column: str | None = option(None, "The column of labels, likewise; none: leave labels out.", TEXT, "NAME|N")
    encoding: str | None = option(
        None, "How the files are encoded, if not in UTF-8: for example latin-1.", TEXT, "NAME"
    )
    keep_markup: bool = option(False, "Read tags, times, <br />, \\r\\n and messages as written.", TEXT)
    # empty: every text given as such, the first of a data set
    index: tuple[str, ...] = common((), "Which texts of the split: 3, -1, 0-4,7{; repeat}.", TEXT, "N")

    @property
    def inline(self) -> bool:
        """Tell whether texts are given one by one."""
        return bool(self.text or self.text_file)

    @property
    def chosen(self) -> bool:
        """Tell whether anything says which texts."""
        return bool(self.index or self.inline or self.dataset or self.split)


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model, how it is made and what it reads."""

    model: str = common(
        "multi",
        "{names}, multi:N, random:N, a folder, or a name on the hub.",
        MODEL,
        "MODEL",
        table=MODELS,
        short="-m",
        offers=("multi:2", "multi:4", "multi:8", *(f"recall:{n}" for n in (1, 2, 4, 8))),
    )
    heads: int | None = HEADS.field(None)  # short for multi:N
    d_model: int | None = WIDTH.field(None)  # None: the shipped model's, or 64 where none is shipped
    layers: int | None = LAYERS.field(None)  # likewise, or 1
    causal: bool = option(False, "Attend only to earlier tokens and to itself.", MODEL)
    seed: int = SEED.field(0)
    device: str = DEVICE.field("auto")
    # None: the model's own, or made from the texts at hand
    vocab: str | None = option(
        None,
        "A tokenizer.json or its folder. Without it, the vocabulary is made from the texts of the split.",
        MODEL,
        "PATH",
    )
    tokenizer: TokenizerKind | None = TOKENIZER.field(None)  # likewise, or word
    max_tokens: int | None = MAX_TOKENS.field(None)
    keep: KeepKind = KEEP.field("head")
    max_memory: float = MAX_MEMORY.field(4.0)
    chat: bool = option(False, "Read a text as a message to the model, by its own template.", MODEL)
    without: tuple[str, ...] = option(
        (), "Leave these heads out of the model: 16.0,23.3. What they give is zero.", MODEL, "LAYER.HEAD"
    )

    @property
    def removal(self) -> str:
        """Return what a model is called beside its name once heads are left out of it; "" for none."""
        if not self.without:
            return ""
        heads = ", ".join(each.strip() for each in ",".join(self.without).split(","))
        return f" without {heads}"


@dataclass(frozen=True, kw_only=True)
class VocabularyOptions:
    """What a vocabulary holds."""

    tokenizer: TokenizerKind | None = TOKENIZER.field("word")
    size: int = option(20_000, "Entries of the vocabulary, special tokens included.", MODEL, limits=SIZE)
    min_frequency: int = option(2, "Rarer words do not enter the vocabulary.", MODEL, limits=COUNT)


@dataclass(frozen=True, kw_only=True)
class PretrainedOptions:
    """What only some third-party models have."""

    # None: self; of an encoder-decoder cross with a target text, else encoder
    attention: AttentionKind | None = option(None, "For an encoder-decoder: encoder, decoder or cross.", MODEL, "KIND")
    pair: str | None = option(None, "A second text, for models that read two.", TEXT, "TEXT")
    target_text: str | None = option(None, "What the decoder of an encoder-decoder has written.", TEXT, "TEXT")
    generate: int | None = common(
        None, "Let the model write up to N tokens, and draw them, too.", TEXT, "N", limits=FROM_1
    )


@dataclass(frozen=True, kw_only=True)
class PrintOptions:
    """What is printed on standard output."""

    print: PrintKind | None = common(None, "table, brief, json, csv, markdown, latex or none.", OUTPUT, "WHAT")
    json: bool = option(False, "Short for --print json: all numbers.", OUTPUT)
    quiet: bool = option(False, "Short for --print none.", OUTPUT, short="-q")

    @property
    def kind(self) -> PrintKind:
        """Choose the kind to print. Raises InvalidOption where two are given."""
        refuse_several({"--print": self.print, "--json": self.json, "--quiet": self.quiet})
        if self.quiet:
            return "none"
        return "json" if self.json else self.print or "table"


@dataclass(frozen=True, kw_only=True)
class FigureOptions:
    """What is drawn and what is printed."""

    layer: tuple[str, ...] = LAYER.field(())  # "0", "0-3,7"; empty: all
    head: tuple[str, ...] = option(
        (), "Which heads: 0, 0-3,7{; repeat}; mean: the mean over all of a layer. Default: all.", FIGURE, "N"
    )
    pick: tuple[str, ...] = common((), "Only these heads, as one figure: 0.2,1.8,1.mean.", FIGURE, "LAYER.HEAD")
    all_heads: bool = option(False, "Write a file for each head, even if there are more than 24.", FIGURE)
    query: str | None = common(None, "Only what this token attends to, a row per head; or N:M.", FIGURE, "WORD|N|N:M")
    key: str | None = option(None, "Only what these tokens get: 5:20, 'not good', 'not good … saved'.", FIGURE, "PART")
    tokens: str | None = common(None, "Draw this part only: 5:20, 'not good', 'not good … saved'.", FIGURE, "PART")
    # None: by their number and, where a width is asked for, by what leaves tokens their labels
    columns: int | None = option(None, "How many heads side by side.", FIGURE, limits=FROM_1)
    format: tuple[str, ...] = common(
        ("png",), "{names}; several with commas.", FIGURE, "NAME", table="attnviz.renderers:RENDERERS"
    )
    cmap: str = option(
        "auto",
        "A colour map of matplotlib or seaborn; auto: white to dark for lift, else viridis.",
        FIGURE,
        "NAME",
        offers=COLOUR_MAPS,
    )
    dpi: int = option(150, "Pixels per inch.", FIGURE, limits=DPI)
    scale: ScaleKind = option(
        "lift",
        "lift: multiples of an equal share, 1/n; fixed: 0 to 1; shared: 0 to the largest; log: for small weights.",
        FIGURE,
        "KIND",
    )
    annotate: bool = option(False, "Write the weights into the cells.", FIGURE)
    title: str | None = common(None, "Title of the figures; '': neither title nor subtitle.", FIGURE)
    kind: FigureKind = common("map", "map, lines to keys, or text with shades.", FIGURE, "KIND")
    width: str | None = common(None, "Width on paper: 3.3in, 84mm; text of at least 6 points.", FIGURE, "LENGTH")
    font_size: float | None = option(
        None, "Size of the names of axes; all text follows. Default: 8, on slides 14.", FIGURE, "POINTS", limits=POINTS
    )
    theme: ThemeName = common("paper", "paper, slide (larger text) or dark.", FIGURE, "NAME")
    lang: Language = option(
        "en", "Language of titles, axes and names of heads; else by LC_ALL and LANG, in a shell.", FIGURE
    )
    transparent: bool = option(False, "Leave out the background of the figure.", FIGURE)
    svg_text: bool = option(False, "Text stays text in SVG: editable, drawn in the reader's fonts.", FIGURE)
    out: str = OUT.field("attention")
    # also in the numbers
    merge: MergeKind | None = common(
        None, "words: join pieces; phrases: of Chinese, Japanese, Thai, too.", FIGURE, "KIND"
    )
    # numbers still count what is not drawn
    hide_special: bool = option(False, "Leave out markers such as [CLS], and say what share they had.", FIGURE)
    drop_first: bool = option(False, "Leave out the first token, and say what share it had.", FIGURE)
    # also in the numbers
    weigh: WeighKind = WEIGH.field("attention")
    rollout: bool = option(False, "Also draw attention through all layers (attention rollout).", FIGURE)
    # None: by layer and head
    sort: str | None = common(
        None, "Heads by this measure, largest first; -MEASURE: smallest.", OUTPUT, "MEASURE", table=MEASURES
    )
    measure: tuple[str, ...] = MEASURE.field(())  # names; empty: the headline
    table: TableKind = option(
        "answer",
        "In the terminal: answer (who looks at whom), heads (numbers), heatmap, top (keys), full (all weights, in "
        "LaTeX and CSV, too) or none.",
        OUTPUT,
        "WHAT",
    )
    top_k: int = option(3, "Keys listed for each query.", OUTPUT, limits=FROM_1)
    open: bool = common(False, "Also write the page to explore (--format html), and open it.", OUTPUT)
