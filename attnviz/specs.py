"""Every setting of every command and its default, once. Flags override files, files override these.

Plain frozen dataclasses: every command imports this module and must stay quick. Those of which nothing is made get
no methods of their own, since to make these is most of what importing this takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

TableKind = Literal["heatmap", "top", "full", "none"]
ScaleKind = Literal["fixed", "shared", "log", "auto"]
TokenizerKind = Literal["word", "bpe"]
KeepKind = Literal["head", "head-tail"]
NormKind = Literal["pre", "post"]
PoolKind = Literal["mean", "cls", "attention"]
StorageKind = Literal["float32", "float16", "int8"]
LabelKind = Literal["en", "zh"]
AnnotationKind = Literal["github"]
AttentionKind = Literal["self", "encoder", "decoder", "cross"]
MergeKind = Literal["words"]


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class GivenSpec:
    """Texts given one by one."""

    text: tuple[str, ...] = ()
    text_file: tuple[str, ...] = ()  # "-" is standard input


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class DatasetSpec:
    """A data set, and which part of it."""

    dataset: str | None = None  # a name, a file or a folder
    split: str | None = None  # None: `train` where there is one, else the only split
    text_column: str | None = None


@dataclass(frozen=True, kw_only=True)
class SourceSpec(DatasetSpec, GivenSpec):
    """Where text comes from. Without a text, a file or a data set it is the packaged sample."""


@dataclass(frozen=True, kw_only=True)
class TextSpec(SourceSpec):
    """Which texts of a source."""

    index: tuple[str, ...] = ()  # "3", "-1", "0-4,7"; empty: every text given as such, the first of a data set


@dataclass(frozen=True, kw_only=True)
class VocabularySpec:
    """What a vocabulary holds."""

    tokenizer: TokenizerKind | None = "word"
    size: int = 20_000  # entries, special tokens included
    min_frequency: int = 2


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class NameSpec:
    """Which model."""

    model: str = "multi"
    heads: int | None = None  # short for multi:N


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class AttendSpec:
    """How models are made and what they read, whichever they are."""

    d_model: int | None = None  # None: the shipped model's, or 64 where none is shipped
    layers: int | None = None  # likewise, or 1
    causal: bool = False
    seed: int = 0
    device: str = "auto"
    vocab: str | None = None  # a tokenizer.json or its folder; None: the model's own, or made from the texts at hand
    tokenizer: TokenizerKind | None = None  # likewise, or word
    max_tokens: int | None = None
    keep: KeepKind = "head"
    max_memory: float = 4.0  # GiB that one text's weights may take


@dataclass(frozen=True, kw_only=True)
class ModelSpec(AttendSpec, NameSpec):
    """Who attends."""

    show_padding: bool = False


@dataclass(frozen=True, kw_only=True)
class PretrainedSpec:
    """What only some models of others have."""

    attention: AttentionKind | None = None  # None: self; of an encoder-decoder cross with a target text, else encoder
    pair: str | None = None  # a second text, which the model reads behind the first
    target_text: str | None = None  # what the decoder of an encoder-decoder has written


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ChoiceSpec:
    """Which maps are drawn."""

    layer: tuple[str, ...] = ()  # "0", "0-3,7"; empty: all
    head: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class LookSpec:
    """How pictures look, and where they go."""

    format: tuple[str, ...] = ("png",)
    cmap: str = "viridis"
    dpi: int = 150
    scale: ScaleKind = "fixed"
    annotate: bool = False
    title: str | None = None
    out: str = "attention"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class FigureSpec(LookSpec, ChoiceSpec):
    """What is drawn, and how."""


@dataclass(frozen=True, kw_only=True)
class DrawSpec(FigureSpec):
    """What is drawn and what is printed."""

    merge: MergeKind | None = None  # tokens that belong together become one, also in the numbers
    hide_special: bool = False  # markers such as [CLS] are not drawn; numbers still count them
    drop_first: bool = False  # nor is the first token
    rollout: bool = False  # one more picture: attention through all layers
    sort: str | None = None  # the measure by which heads are listed, the largest first; None: by layer and head
    measure: tuple[str, ...] = ()  # names; empty: the headline
    table: TableKind = "top"
    top_k: int = 3
    open: bool = False  # in a browser, as a page to explore
    json: bool = False


@dataclass(frozen=True, kw_only=True)
class HeatmapSpec(DrawSpec, PretrainedSpec, ModelSpec, TextSpec):
    """`attnviz heatmap`. Bases from last to first are the order of the options in the help."""


@dataclass(frozen=True, kw_only=True)
class CompareSpec(LookSpec, AttendSpec, TextSpec):
    """`attnviz compare`."""

    models: tuple[str, ...]
    max_tokens: int | None = 512  # as the models that come with attnviz read, so that what is compared is what decides
    keep: KeepKind = "head-tail"
    scale: ScaleKind = "auto"  # the maps are to be compared with each other, and of long texts to be seen at all
    layer: tuple[str, ...] = ()
    query: str | None = None  # None: the one on which heads differ most
    measure: tuple[str, ...] = ("all",)
    theory: bool = False
    kernel: int = 3  # width of the convolutions in the theory
    time: bool = True
    json: bool = False
    csv: bool = False
    markdown: bool = False
    out: str = "comparison"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ClassifierSpec:
    """Which trained model classifies."""

    model: str = "multi"
    heads: int | None = None
    device: str = "auto"
    max_tokens: int | None = None  # None: as many as the model was made for
    keep: KeepKind | None = None  # likewise


@dataclass(frozen=True, kw_only=True)
class PredictSpec(FigureSpec, ClassifierSpec, TextSpec):
    """`attnviz predict`."""

    heatmap: bool = False
    csv: bool = False
    json: bool = False


@dataclass(frozen=True, kw_only=True)
class RenderSpec(DrawSpec):
    """`attnviz render`."""

    record: str


@dataclass(frozen=True, kw_only=True)
class VocabSpec(VocabularySpec, SourceSpec):
    """`attnviz vocab`."""

    held_out: str | None = None  # split on which coverage is measured; None: test, else every tenth text
    out: str = "vocabulary"
    json: bool = False


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ShapeSpec:
    """What the model to be trained looks like."""

    heads: int | None = 8
    d_model: int | None = 32
    layers: int | None = 1
    norm: NormKind = "pre"
    pool: PoolKind = "mean"
    bigrams: int = 65_536  # pairs of words that get a vector of their own


@dataclass(frozen=True, kw_only=True)
class TrainSpec(ShapeSpec, VocabularySpec, DatasetSpec):
    """`attnviz train`. The defaults are the recipe of the models that come with attnviz."""

    validation: float = 0.1  # share of the texts to hold out
    max_tokens: int | None = 512
    keep: KeepKind = "head-tail"
    crop: int = 256  # tokens of a text in one step of training
    epochs: int = 4
    batch_size: int = 64
    learning_rate: float = 2e-3
    dropout: float = 0.5
    word_dropout: float = 0.5
    label_smoothing: float = 0.1
    patience: int = 2  # epochs without a better one before training ends
    seed: int = 0
    device: str = "auto"
    storage: StorageKind = "int8"  # of the embeddings
    out: str = "model"
    resume: bool = False
    json: bool = False


@dataclass(frozen=True, kw_only=True)
class ExplainSpec(ModelSpec, TextSpec):
    """`attnviz explain`."""

    query: str | None = None  # a word or its position; None: the first token, of a causal model the last
    layer: int = 0
    head: tuple[str, ...] = ()  # shown key by key; empty: the first
    top_k: int = 10
    example: bool = False
    lang: LabelKind | None = None  # of the example's tokens; None: English
    json: bool = False
    markdown: bool = False
    latex: bool = False


@dataclass(frozen=True, kw_only=True)
class MeasuresSpec:
    """`attnviz measures`."""

    json: bool = False


@dataclass(frozen=True, kw_only=True)
class VerifySpec:
    """`attnviz verify`."""

    folder: str
    root: str = "."


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ToldSpec:
    """What a run on a server leaves for who reads it later."""

    summary: str | None = None  # a file that Markdown is added to
    annotations: AnnotationKind | None = None
    junit: str | None = None


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class BaselineSpec:
    """Which batch is compared with which, and by how much they may differ."""

    folder: str
    baseline: str
    tolerance: float = 1e-4  # of numbers, absolute
    pixels: float = 0.0  # of pictures: root mean square, 0 to 255


@dataclass(frozen=True, kw_only=True)
class CheckSpec(ToldSpec, BaselineSpec):
    """`attnviz check`."""

    out: str = "differences"
    json: bool = False


@dataclass(frozen=True, kw_only=True)
class DiffSpec:
    """`attnviz diff`."""

    before: str
    after: str
    measure: tuple[str, ...] = ()  # names; empty: entropy of records, every measure of batches
    threshold: tuple[str, ...] = ()  # "jsd=0.01"
    top_k: int = 3
    json: bool = False
    markdown: bool = False


@dataclass(frozen=True, kw_only=True)
class BatchSpec(ToldSpec):
    """`attnviz batch`."""

    configs: tuple[str, ...]
    out: str | None = None  # None: what the configs say, or figures
    workers: int | None = None  # processes; None: as many as there are cores
    force: bool = False
    fail_fast: bool = False
    dry_run: bool = False


AnySpec: TypeAlias = HeatmapSpec | CompareSpec | ExplainSpec | PredictSpec  # of commands that make something
