"""Every setting of every command and its default, once. Flags override files, files override these.

Plain frozen dataclasses: `attnviz --help` imports this module and must stay quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TableKind = Literal["heatmap", "top", "full", "none"]
ScaleKind = Literal["fixed", "shared", "log"]
TokenizerKind = Literal["word", "bpe"]


@dataclass(frozen=True, kw_only=True)
class SourceSpec:
    """Where text comes from. Without any of the first three it is the packaged sample."""

    text: tuple[str, ...] = ()
    text_file: tuple[str, ...] = ()  # "-" is standard input
    dataset: str | None = None  # a name, a file or a folder
    split: str | None = None  # None: `train` where there is one, else the only split
    text_column: str | None = None


@dataclass(frozen=True, kw_only=True)
class TextSpec(SourceSpec):
    """Which texts of a source."""

    index: tuple[str, ...] = ()  # "3", "-1", "0-4,7"; empty: every text given as such, the first of a data set


@dataclass(frozen=True, kw_only=True)
class VocabularySpec:
    """What a vocabulary holds."""

    tokenizer: TokenizerKind = "word"
    size: int = 20_000  # entries, special tokens included
    min_frequency: int = 2


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """Who attends."""

    model: str = "multi"
    heads: int | None = None  # short for multi:N
    d_model: int = 64
    layers: int = 1
    causal: bool = False
    seed: int = 0
    device: str = "auto"
    vocab: str | None = None  # a tokenizer.json or its folder; None: made from the texts at hand
    tokenizer: TokenizerKind = "word"
    max_tokens: int | None = None
    show_padding: bool = False
    max_memory: float = 4.0  # GiB that one text's weights may take


@dataclass(frozen=True, kw_only=True)
class DrawSpec:
    """What is drawn, and how."""

    format: tuple[str, ...] = ("png",)
    layer: tuple[str, ...] = ()  # "0", "0-3,7"; empty: all
    head: tuple[str, ...] = ()
    cmap: str = "viridis"
    dpi: int = 150
    scale: ScaleKind = "fixed"
    annotate: bool = False
    title: str | None = None
    out: str = "attention"
    table: TableKind = "top"
    top_k: int = 3
    json: bool = False


@dataclass(frozen=True, kw_only=True)
class HeatmapSpec(DrawSpec, ModelSpec, TextSpec):
    """`attnviz heatmap`. Bases from last to first are the order of the options in the help."""


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
