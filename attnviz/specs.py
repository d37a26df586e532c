"""The groups of options that commands share: which texts, which model, which figures, what is printed.

Each command's own spec is a class in its folder that holds some of these groups.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from attnviz.errors import InvalidOption
from attnviz.options import ARGUMENT, FIGURE, FROM_0, FROM_1, FROM_2, MODEL, OUTPUT, TEXT, Limits, Option
from attnviz.words import Language

TokenizerKind = Literal["word", "bpe"]
KeepKind = Literal["head", "head-tail"]
NormKind = Literal["pre", "post"]
PoolKind = Literal["mean", "cls", "attention"]
StorageKind = Literal["float32", "float16", "int8"]
AttentionKind = Literal["self", "encoder", "decoder", "cross"]
TableKind = Literal["answer", "heads", "heatmap", "top", "full", "none"]
PrintKind = Literal["table", "brief", "json", "csv", "markdown", "latex", "none"]
ScaleKind = Literal["lift", "fixed", "shared", "log", "auto"]
MergeKind = Literal["words", "phrases"]
FigureKind = Literal["map", "lines", "text"]
ThemeName = Literal["paper", "slide", "dark"]
WeighKind = Literal["attention", "values"]

MODELS = "attnviz.models:MODELS"
# Where a model knows few words of a text.
OTHER_LANGUAGES = "--model multi-zh and single-zh read Chinese; attnviz train makes models of other languages."
OF_DATA_SETS = ("dataset", "split", "text_column", "label_column", "encoding")
# Options of a model that mean the same for several models.
SHARED_BY_ALL = (
    *("d_model", "layers", "causal", "seed", "device", "vocab", "tokenizer", "max_tokens", "keep", "max_memory"),
)
WITHOUT = ("without", "without_mean")  # of every command that shows one model
# Options of every command that draws.
LOOKS = ("format", "theme", "width", "font_size", "dpi", "title", "transparent", "svg_text", "out", "open")
STYLE = (  # options of every command that draws maps
    *("format", "kind", "cmap", "scale", "annotate", "theme", "width", "columns", "font_size", "dpi"),
    *("title", "transparent", "svg_text", "out", "open"),
)
COLOUR_MAPS = ("auto", "lift", "viridis", "cividis", "magma", "inferno", "plasma", "Greys", "Blues", "rocket", "mako")
PRINT_SHORTCUTS: dict[str, PrintKind] = {"json": "json", "quiet": "none"}
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
Query = Annotated[str | None, Option("A word of the text or its position.", TEXT, "WORD|N", is_common=True)]
Against = Annotated[
    str | None,
    Option("Explain by how much the answer exceeds this other one.", MODEL, "LABEL|TOKEN", is_common=True),
]
HEADS = Option("Heads: N for multi:N, 1 for single.", MODEL, is_common=True)
WIDTH = Option("Width of the model, shared by its heads.", MODEL)
LAYERS = Option("Layers of the model.", MODEL, limits=FROM_1)
MAX_TOKENS = Option("At most N tokens of a text; --keep says which.", MODEL, limits=FROM_1, is_common=True)
Seed = Annotated[int, Option("Seed of what is random.", MODEL, limits=FROM_0)]
Device = Annotated[str, Option("auto, cpu, cuda, cuda:N or mps.", MODEL, "DEVICE")]
Tokenizer = Annotated[TokenizerKind | None, Option("Kind of vocabulary to make.", MODEL)]
# A marker is one of them: of a text that is classified there is more.
MaxTokens = Annotated[int | None, MAX_TOKENS._replace(limits=FROM_2)]
Keep = Annotated[KeepKind, KEEP]
LayerSelection = Annotated[tuple[str, ...], Option("Which layers: 0, 0-3,7{; repeat}. Default: all.", FIGURE, "N")]
Out = Annotated[str, Option("Folder to write to.", OUTPUT, "DIR", short="-o", is_common=True)]
Measure = Annotated[
    tuple[str, ...],
    Option(
        "Measures, with commas, or all; see `attnviz measures`.",
        OUTPUT,
        "NAME",
        table="attnviz.measures:MEASURES",
        is_common=True,
    ),
]
TopK = Annotated[int, Option("Keys listed for each query.", OUTPUT, limits=FROM_1)]


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """Which texts. Without a text, a file or a data set it is the packaged sample."""

    inline_text: Annotated[str | None, Option("A text, or a file that is one or holds many.", ARGUMENT, "TEXT")] = None
    text: Annotated[tuple[str, ...], Option("A text{; repeat for several}.", TEXT, short="-t", is_common=True)] = ()
    text_file: Annotated[tuple[str, ...], Option("A file that is one text{; - is stdin}.", TEXT, "FILE")] = ()
    dataset: Annotated[
        str | None,
        Option(
            "{names}, a name on the hub, a file or a folder.",
            TEXT,
            "NAME|PATH",
            table="attnviz.text:NAMES",
            is_common=True,
        ),
    ] = None
    # None: `train` where there is one, else the only split
    split: Annotated[
        str | None, Option("train, test, train[:1000], train[-5:], train[:10%], train+test.", TEXT, "SPLIT")
    ] = None
    text_column: Annotated[
        str | None, Option("The column of texts, by name or number, if not found by name.", TEXT, "NAME|N")
    ] = None
    label_column: Annotated[
        str | None, Option("The column of labels, likewise; none: leave labels out.", TEXT, "NAME|N")
    ] = None
    encoding: Annotated[
        str | None, Option("How the files are encoded, if not in UTF-8: for example latin-1.", TEXT, "NAME")
    ] = None
    keep_markup: Annotated[bool, Option("Read tags, times, <br /> and messages as they are written.", TEXT)] = False
    # empty: every text given as such, the first of a data set
    index: Annotated[
        tuple[str, ...], Option("Which texts of the split: 3, -1, 0-4,7{; repeat}.", TEXT, "N", is_common=True)
    ] = ()

    @property
    def inline(self) -> bool:
        """Whether texts are given one by one."""
        return bool(self.text or self.text_file)

    @property
    def chosen(self) -> bool:
        """Whether anything says which texts."""
        return bool(self.index or self.inline or self.dataset or self.split)


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model, how it is made and what it reads."""

    model: Annotated[
        str,
        Option(
            "{names}, multi:N, random:N, a folder, or a name on the hub.",
            MODEL,
            "MODEL",
            table=MODELS,
            short="-m",
            offers=("multi:2", "multi:4", "multi:8", *(f"recall:{n}" for n in (1, 2, 4, 8))),
            is_common=True,
        ),
    ] = "multi"
    heads: Annotated[int | None, HEADS] = None  # short for multi:N
    d_model: Annotated[int | None, WIDTH] = None  # None: the shipped model's, or 64 where none is shipped
    layers: Annotated[int | None, LAYERS] = None  # likewise, or 1
    causal: Annotated[bool, Option("Attend only to earlier tokens and to itself.", MODEL)] = False
    seed: Seed = 0
    device: Device = "auto"
    # None: the model's own, or made from the texts at hand
    vocab: Annotated[
        str | None,
        Option(
            "A tokenizer.json or its folder. Without it, the vocabulary is made from the texts of the split.",
            MODEL,
            "PATH",
        ),
    ] = None
    tokenizer: Tokenizer = None  # likewise, or word
    max_tokens: Annotated[int | None, MAX_TOKENS] = None
    keep: Keep = "head"
    max_memory: Annotated[float, MAX_MEMORY] = 4.0
    chat: Annotated[bool, Option("Read a text as a message to the model, by its own template.", MODEL)] = False
    show_padding: Annotated[bool, Option("Pad shorter texts to --max-tokens and show the padding.", MODEL)] = False
    without: Annotated[
        tuple[str, ...],
        Option("Leave these heads out of the model: 16.0,23.3. What they give is zero.", MODEL, "LAYER.HEAD"),
    ] = ()
    without_mean: Annotated[
        bool, Option("With --without: they give their mean over the texts' tokens, not zero.", MODEL)
    ] = False

    @property
    def removal(self) -> str:
        """What a model is called beside its name once heads are left out of it; "" for none."""
        if not self.without:
            return ""
        heads = ", ".join(each.strip() for each in ",".join(self.without).split(","))
        return f" with the mean of {heads}" if self.without_mean else f" without {heads}"


@dataclass(frozen=True, kw_only=True)
class VocabularyOptions:
    """What a vocabulary holds."""

    tokenizer: Tokenizer = "word"
    size: Annotated[int, Option("Entries of the vocabulary, special tokens included.", MODEL, limits=SIZE)] = 20_000
    min_frequency: Annotated[int, Option("Rarer words do not enter the vocabulary.", MODEL, limits=COUNT)] = 2


@dataclass(frozen=True, kw_only=True)
class PretrainedOptions:
    """What only some third-party models have."""

    # None: self; of an encoder-decoder cross with a target text, else encoder
    attention: Annotated[
        AttentionKind | None, Option("For an encoder-decoder: encoder, decoder or cross.", MODEL, "KIND")
    ] = None
    pair: Annotated[str | None, Option("A second text, for models that read two.", TEXT, "TEXT")] = None
    target_text: Annotated[str | None, Option("What the decoder of an encoder-decoder has written.", TEXT, "TEXT")] = (
        None
    )
    generate: Annotated[
        int | None,
        Option("Let the model write up to N tokens, and draw them, too.", TEXT, "N", limits=FROM_1, is_common=True),
    ] = None


AnswerOrAll = Annotated[
    Literal["answer", "full"], Option("In the terminal: answer, or full (all that was measured).", OUTPUT, "WHAT")
]


@dataclass(frozen=True, kw_only=True)
class PrintOptions:
    """What is printed on standard output."""

    print: Annotated[
        PrintKind | None,
        Option("table, brief, json, csv, markdown, latex or none.", OUTPUT, "WHAT", is_common=True),
    ] = None
    json: Annotated[bool, Option("Short for --print json: all numbers.", OUTPUT)] = False
    quiet: Annotated[bool, Option("Short for --print none.", OUTPUT, short="-q")] = False

    @property
    def kind(self) -> PrintKind:
        """The kind to print. Raises InvalidOption where two are given."""
        given: dict[str, PrintKind] = {} if self.print is None else {f"--print {self.print}": self.print}
        for name, kind in PRINT_SHORTCUTS.items():
            if getattr(self, name):
                given[f"--{name}"] = kind
        if len(given) > 1:
            one, other, *_ = given
            raise InvalidOption(f"{one} and {other} exclude each other", hint="Leave one of them out.")
        return next(iter(given.values()), "table")


@dataclass(frozen=True, kw_only=True)
class FigureOptions:
    """What is drawn and what is printed."""

    layer: LayerSelection = ()  # "0", "0-3,7"; empty: all
    head: Annotated[
        tuple[str, ...],
        Option("Which heads: 0, 0-3,7{; repeat}; mean: the mean over all of a layer. Default: all.", FIGURE, "N"),
    ] = ()
    pick: Annotated[
        tuple[str, ...],
        Option("Only these heads, as one figure: 0.2,1.8,1.mean.", FIGURE, "LAYER.HEAD", is_common=True),
    ] = ()
    all_heads: Annotated[bool, Option("Write a file for each head, even if there are more than 24.", FIGURE)] = False
    query: Annotated[
        str | None,
        Option("Only what this token attends to, a row per head; or N:M.", FIGURE, "WORD|N|N:M", is_common=True),
    ] = None
    key: Annotated[
        str | None, Option("Only what these tokens get: 5:20, 'not good', 'not good … saved'.", FIGURE, "PART")
    ] = None
    tokens: Annotated[
        str | None, Option("Draw this part only: 5:20, 'not good', 'not good … saved'.", FIGURE, "PART", is_common=True)
    ] = None
    # None: by their number and, where a width is asked for, by what leaves tokens their labels
    columns: Annotated[int | None, Option("How many heads side by side.", FIGURE, limits=FROM_1)] = None
    format: Annotated[
        tuple[str, ...],
        Option("{names}; several with commas.", FIGURE, "NAME", table="attnviz.renderers:RENDERERS", is_common=True),
    ] = ("png",)
    cmap: Annotated[
        str,
        Option(
            "A colour map of matplotlib or seaborn; auto: white to dark for lift, else viridis.",
            FIGURE,
            "NAME",
            offers=COLOUR_MAPS,
        ),
    ] = "auto"
    dpi: Annotated[int, Option("Pixels per inch.", FIGURE, limits=DPI)] = 150
    scale: Annotated[
        ScaleKind,
        Option(
            "lift: multiples of an equal share, 1/n; fixed: 0 to 1; shared: 0 to the largest; log: for small weights; "
            "auto: shared or log.",
            FIGURE,
            "KIND",
        ),
    ] = "lift"
    annotate: Annotated[bool, Option("Write the weights into the cells.", FIGURE)] = False
    title: Annotated[
        str | None, Option("Title of the figures; '': neither title nor subtitle.", FIGURE, is_common=True)
    ] = None
    kind: Annotated[FigureKind, Option("map, lines to keys, or text with shades.", FIGURE, "KIND", is_common=True)] = (
        "map"
    )
    width: Annotated[
        str | None, Option("Width on paper: 3.3in, 84mm; text of at least 6 points.", FIGURE, "LENGTH", is_common=True)
    ] = None
    font_size: Annotated[
        float | None,
        Option(
            "Size of the names of axes; all text follows. Default: 8, on slides 14.", FIGURE, "POINTS", limits=POINTS
        ),
    ] = None
    theme: Annotated[ThemeName, Option("paper, slide (larger text) or dark.", FIGURE, "NAME", is_common=True)] = "paper"
    lang: Annotated[
        Language,
        Option("Language of titles, axes and names of heads; else by LC_ALL and LANG, in a shell.", FIGURE),
    ] = "en"
    transparent: Annotated[bool, Option("Leave out the background of the figure.", FIGURE)] = False
    svg_text: Annotated[bool, Option("Text stays text in SVG: editable, drawn in the reader's fonts.", FIGURE)] = False
    out: Out = "attention"
    # also in the numbers
    merge: Annotated[
        MergeKind | None,
        Option("words: join pieces; phrases: of Chinese, Japanese, Thai, too.", FIGURE, "KIND", is_common=True),
    ] = None
    # numbers still count what is not drawn
    hide_special: Annotated[bool, Option("Leave out markers such as [CLS], and say what share they had.", FIGURE)] = (
        False
    )
    drop_first: Annotated[bool, Option("Leave out the first token, and say what share it had.", FIGURE)] = False
    # also in the numbers
    weigh: Annotated[WeighKind, WEIGH] = "attention"
    rollout: Annotated[bool, Option("Also draw attention through all layers (attention rollout).", FIGURE)] = False
    # None: by layer and head
    sort: Annotated[
        str | None,
        Option(
            "Heads by this measure, largest first; -MEASURE: smallest.",
            OUTPUT,
            "MEASURE",
            table="attnviz.measures:MEASURES",
            is_common=True,
        ),
    ] = None
    measure: Measure = ()  # names; empty: the headline
    table: Annotated[
        TableKind,
        Option(
            "In the terminal: answer (who looks at whom), heads (numbers), heatmap, top (keys), full (all weights, in "
            "LaTeX and CSV, too) or none.",
            OUTPUT,
            "WHAT",
        ),
    ] = "answer"
    top_k: TopK = 3
    open: Annotated[
        bool, Option("Also write the page to explore (--format html), and open it.", OUTPUT, is_common=True)
    ] = False
