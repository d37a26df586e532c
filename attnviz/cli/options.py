"""Each option written once. A command takes the options that its spec has fields for, with the spec's defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar

import typer

from attnviz.measures import MEASURES
from attnviz.models import MODELS
from attnviz.registry import Plugin
from attnviz.renderers import RENDERERS
from attnviz.specs import (
    AnnotationKind,
    AttentionKind,
    KeepKind,
    LabelKind,
    MergeKind,
    NormKind,
    PoolKind,
    ScaleKind,
    StorageKind,
    TableKind,
    TokenizerKind,
)
from attnviz.text import NAMES

Spec = TypeVar("Spec")


def takes(spec: type[Spec], **own: Any) -> Callable[[Callable[[Spec], None]], Callable[..., None]]:
    """Turn a command that takes a spec into one that takes the spec's fields as options.

    `own` are options of the same name that this command alone reads more narrowly.
    """

    def decorate(command: Callable[[Spec], None]) -> Callable[..., None]:
        def from_flags(**flags: Any) -> None:
            command(spec(**{name: tuple(v) if isinstance(v, list) else v for name, v in flags.items()}))

        parameters = [
            Parameter(
                field.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if field.default is MISSING else field.default,
                annotation=own.get(field.name, OPTIONS.get(field.name)),
            )
            for field in fields(spec)  # type: ignore[arg-type]  # a TypeVar cannot be bound to dataclasses
        ]
        from_flags.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        from_flags.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        from_flags.__doc__ = command.__doc__
        from_flags.__name__ = command.__name__
        return from_flags

    return decorate


def _names(table: tuple[Plugin, ...]) -> str:
    return ", ".join(plugin.name for plugin in table)


def _complete(table: Sequence[Plugin]) -> Callable[[str], list[tuple[str, str]]]:
    def complete(incomplete: str) -> list[tuple[str, str]]:
        return [(plugin.name, plugin.help) for plugin in table if plugin.name.startswith(incomplete)]

    return complete


def _option(*names: str, panel: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=more.pop("show_default", True), **more)


TEXT, MODEL, TRAINING = "Which text", "Which model", "How to train"
FIGURE, OUTPUT = "Which figures", "What comes out"
CHECK, SERVER = "What may differ", "On a server"

OPTIONS: dict[str, Any] = {
    "text": Annotated[list[str], _option("--text", panel=TEXT, help="A text; repeat for several.")],
    "text_file": Annotated[
        list[str], _option("--text-file", panel=TEXT, metavar="FILE", help="A file that is one text; - is stdin.")
    ],
    "dataset": Annotated[
        str | None,
        _option(
            "--dataset",
            panel=TEXT,
            metavar="NAME|PATH",
            help=f"{_names(NAMES)}, a name on the hub, or a local file or folder.",
            autocompletion=_complete(NAMES),
        ),
    ],
    "split": Annotated[
        str | None,
        _option("--split", panel=TEXT, help="train, test, train[:1000], train[-5:], train[:10%], train+test."),
    ],
    "index": Annotated[
        list[str], _option("--index", panel=TEXT, metavar="N", help="Which texts of the split: 3, -1, 0-4,7; repeat.")
    ],
    "text_column": Annotated[
        str | None, _option("--text-column", panel=TEXT, help="The column that holds the text, if not found by name.")
    ],
    "model": Annotated[
        str,
        _option(
            "--model",
            panel=MODEL,
            help=f"{_names(MODELS)}, multi:N, random:N, a folder, or a name on the hub.",
            autocompletion=_complete(MODELS),
        ),
    ],
    "models": Annotated[
        list[str],
        typer.Argument(
            metavar="MODELS",
            help=f"Two or more of: {_names(MODELS)}, multi:N, random:N, folders, names on the hub.",
            autocompletion=_complete(MODELS),
        ),
    ],
    "heads": Annotated[int | None, _option("--heads", panel=MODEL, help="Heads: N for multi:N, 1 for single.")],
    "d_model": Annotated[
        int | None, _option("--d-model", panel=MODEL, help="Width of the model, shared by its heads.")
    ],
    "layers": Annotated[int | None, _option("--layers", panel=MODEL, help="Layers of the model.")],
    "norm": Annotated[NormKind, _option("--norm", panel=MODEL, help="Layer norm before or after each sublayer.")],
    "pool": Annotated[PoolKind, _option("--pool", panel=MODEL, help="How the text's states become one vector.")],
    "bigrams": Annotated[
        int, _option("--bigrams", panel=MODEL, help="Pairs of words that get a vector of their own; 0 for none.")
    ],
    "causal": Annotated[bool, _option("--causal", panel=MODEL, help="Attend only to earlier tokens and to itself.")],
    "seed": Annotated[int, _option("--seed", panel=MODEL, help="Seed of what is random.")],
    "device": Annotated[str, _option("--device", panel=MODEL, help="auto, cpu, cuda, cuda:N or mps.")],
    "vocab": Annotated[
        str | None,
        _option(
            "--vocab",
            panel=MODEL,
            metavar="PATH",
            help="A tokenizer.json or its folder. Without it, the vocabulary is made from the texts of the split.",
        ),
    ],
    "tokenizer": Annotated[
        TokenizerKind | None, _option("--tokenizer", panel=MODEL, help="Kind of vocabulary to make.")
    ],
    "max_tokens": Annotated[
        int | None, _option("--max-tokens", panel=MODEL, help="At most N tokens of a text; --keep says which.")
    ],
    "keep": Annotated[
        KeepKind | None,
        _option("--keep", panel=MODEL, help="The first N tokens, or N/2 of the beginning and of the end."),
    ],
    "show_padding": Annotated[
        bool, _option("--show-padding", panel=MODEL, help="Pad shorter texts to --max-tokens and show the padding.")
    ],
    "attention": Annotated[
        AttentionKind | None,
        _option("--attention", panel=MODEL, metavar="KIND", help="Of an encoder-decoder: encoder, decoder or cross."),
    ],
    "pair": Annotated[
        str | None, _option("--pair", panel=TEXT, metavar="TEXT", help="A second text, for models that read two.")
    ],
    "target_text": Annotated[
        str | None,
        _option(
            "--target-text", panel=TEXT, metavar="TEXT", help="What the decoder of an encoder-decoder has written."
        ),
    ],
    "max_memory": Annotated[
        float, _option("--max-memory", panel=MODEL, help="GiB that the attention of one text may take.")
    ],
    "size": Annotated[int, _option("--size", panel=MODEL, help="Entries of the vocabulary, special tokens included.")],
    "min_frequency": Annotated[
        int, _option("--min-frequency", panel=MODEL, help="Rarer words do not enter the vocabulary.")
    ],
    "held_out": Annotated[
        str | None,
        _option(
            "--held-out", panel=TEXT, help="Split to measure coverage on; test if there is one, else every tenth text."
        ),
    ],
    "validation": Annotated[
        float, _option("--validation", panel=TEXT, metavar="SHARE", help="Share of the texts to hold out.")
    ],
    "crop": Annotated[
        int, _option("--crop", panel=TRAINING, help="Tokens of a text in one step: fewer make training faster.")
    ],
    "epochs": Annotated[int, _option("--epochs", panel=TRAINING, help="Passes over the texts.")],
    "batch_size": Annotated[int, _option("--batch-size", panel=TRAINING, help="Texts in one step.")],
    "learning_rate": Annotated[
        float, _option("--learning-rate", panel=TRAINING, help="Largest rate of Adam; it rises, then falls.")
    ],
    "dropout": Annotated[
        float, _option("--dropout", panel=TRAINING, metavar="SHARE", help="Of embeddings and pooled encoding.")
    ],
    "word_dropout": Annotated[
        float, _option("--word-dropout", panel=TRAINING, metavar="SHARE", help="Words and pairs left out in a step.")
    ],
    "label_smoothing": Annotated[
        float, _option("--label-smoothing", panel=TRAINING, metavar="SHARE", help="Taken from the right label.")
    ],
    "patience": Annotated[
        int, _option("--patience", panel=TRAINING, help="Stop after so many epochs without a better one.")
    ],
    "storage": Annotated[
        StorageKind, _option("--storage", panel=OUTPUT, help="How the embeddings are stored; all else is float32.")
    ],
    "resume": Annotated[bool, _option("--resume", panel=OUTPUT, help="Go on with the run that stopped in --out.")],
    "record": Annotated[str, typer.Argument(metavar="FILE", help="An attention.safetensors.")],
    "layer": Annotated[
        list[str], _option("--layer", panel=FIGURE, metavar="N", help="Which layers: 0, 0-3,7; repeat. Default: all.")
    ],
    "head": Annotated[
        list[str], _option("--head", panel=FIGURE, metavar="N", help="Which heads: 0, 0-3,7; repeat. Default: all.")
    ],
    "format": Annotated[
        list[str],
        _option("--format", panel=FIGURE, metavar="NAME", help=f"{_names(RENDERERS)}; several with commas."),
    ],
    "cmap": Annotated[str, _option("--cmap", panel=FIGURE, help="A colour map of matplotlib or seaborn.")],
    "dpi": Annotated[int, _option("--dpi", panel=FIGURE, help="Pixels per inch.")],
    "scale": Annotated[
        ScaleKind,
        _option(
            "--scale",
            panel=FIGURE,
            help="fixed: 0 to 1; shared: 0 to the largest; log: for small weights; auto: shared or log.",
        ),
    ],
    "annotate": Annotated[bool, _option("--annotate", panel=FIGURE, help="Write the weights into the cells.")],
    "title": Annotated[str | None, _option("--title", panel=FIGURE, help="Title of the figures.")],
    "out": Annotated[str, _option("--out", panel=OUTPUT, metavar="DIR", help="Folder to write to.")],
    "merge": Annotated[
        MergeKind | None,
        _option(
            "--merge",
            panel=FIGURE,
            help="words: the pieces of a word become one token (sum over keys, mean over queries).",
        ),
    ],
    "hide_special": Annotated[
        bool, _option("--hide-special", panel=FIGURE, help="Leave out markers such as [CLS]; says what share that was.")
    ],
    "drop_first": Annotated[
        bool, _option("--drop-first", panel=FIGURE, help="Leave out the first token; says what share that was.")
    ],
    "rollout": Annotated[
        bool, _option("--rollout", panel=FIGURE, help="Also draw attention through all layers (attention rollout).")
    ],
    "sort": Annotated[
        str | None,
        _option(
            "--sort",
            panel=OUTPUT,
            metavar="MEASURE",
            help="List heads by this measure, the largest first; -MEASURE: the smallest.",
            autocompletion=_complete(MEASURES),
        ),
    ],
    "table": Annotated[
        TableKind,
        _option("--table", panel=OUTPUT, help="In the terminal: shaded maps, top keys, all weights, or nothing."),
    ],
    "measure": Annotated[
        list[str],
        _option(
            "--measure",
            panel=OUTPUT,
            metavar="NAME",
            help="Which measures, or all, several with commas; `attnviz measures` lists them.",
            autocompletion=_complete(MEASURES),
        ),
    ],
    "top_k": Annotated[int, _option("--top-k", panel=OUTPUT, help="Keys listed for each query.")],
    "heatmap": Annotated[
        bool, _option("--heatmap", panel=FIGURE, help="Also draw what each text's tokens attended to.")
    ],
    "theory": Annotated[
        bool, _option("--theory", panel=OUTPUT, help="Also compare with recurrent and convolutional layers.")
    ],
    "kernel": Annotated[
        int, _option("--kernel", panel=OUTPUT, metavar="K", help="Width of the convolutions in --theory.")
    ],
    "time": Annotated[
        bool, _option("--time/--no-time", panel=OUTPUT, help="Measure time, the one number that differs each time.")
    ],
    "csv": Annotated[bool, _option("--csv", panel=OUTPUT, help="The rows as CSV on stdout, and nothing else.")],
    "root": Annotated[
        str,
        _option("--root", panel=TEXT, metavar="DIR", help="Where the configs lie, which relative paths start from."),
    ],
    "configs": Annotated[
        list[str], typer.Argument(metavar="CONFIGS", help="YAML or JSON files; see `attnviz schema`.")
    ],
    "workers": Annotated[
        int | None, _option("--workers", panel=OUTPUT, metavar="N", help="Processes; default: one for each core.")
    ],
    "force": Annotated[bool, _option("--force", panel=OUTPUT, help="Make everything again, also what did not change.")],
    "fail_fast": Annotated[bool, _option("--fail-fast", panel=OUTPUT, help="Stop at the first job that fails.")],
    "dry_run": Annotated[bool, _option("--dry-run", panel=OUTPUT, help="List what would be made, and make nothing.")],
    "open": Annotated[
        bool, _option("--open", panel=OUTPUT, help="Also write the page to explore (--format html), and open it.")
    ],
    "json": Annotated[bool, _option("--json", panel=OUTPUT, help="All numbers as JSON on stdout, and nothing else.")],
    "markdown": Annotated[
        bool, _option("--markdown", panel=OUTPUT, help="The report as Markdown on stdout, and nothing else.")
    ],
    "latex": Annotated[
        bool, _option("--latex", panel=OUTPUT, help="The report as a LaTeX document on stdout, and nothing else.")
    ],
    "query": Annotated[
        str | None, _option("--query", panel=TEXT, metavar="WORD|N", help="A word of the text or its position.")
    ],
    "example": Annotated[
        bool, _option("--example", panel=TEXT, help="Instead of a text: three tokens whose numbers fit on paper.")
    ],
    "lang": Annotated[LabelKind | None, _option("--lang", panel=TEXT, help="Labels of the example's tokens.")],
    "folder": Annotated[str, typer.Argument(metavar="DIR", help="What attnviz batch made.")],
    "baseline": Annotated[
        str, _option("--baseline", panel=CHECK, metavar="DIR", help="What it made before.", show_default=False)
    ],
    "tolerance": Annotated[float, _option("--tolerance", panel=CHECK, help="By how much a number may differ.")],
    "pixels": Annotated[
        float, _option("--pixels", panel=CHECK, metavar="RMS", help="By how much a picture may differ, of 255.")
    ],
    "before": Annotated[
        str, typer.Argument(metavar="A", help="An attention.safetensors, a manifest.json, or the folder of one.")
    ],
    "after": Annotated[str, typer.Argument(metavar="B", help="Another of its kind.")],
    "threshold": Annotated[
        list[str],
        _option(
            "--threshold",
            panel=CHECK,
            metavar="NAME=N",
            help="Fail where a head changed by more: jsd, top_key or a measure; repeat.",
        ),
    ],
    "summary": Annotated[
        str | None, _option("--summary", panel=SERVER, metavar="FILE", help="Add the report as Markdown to this file.")
    ],
    "annotations": Annotated[
        AnnotationKind | None,
        _option("--annotations", panel=SERVER, help="Say what was found as this server's annotations, on stderr."),
    ],
    "junit": Annotated[
        str | None, _option("--junit", panel=SERVER, metavar="FILE", help="Write each job as a test in JUnit XML.")
    ],
}

MODEL_OF_OURS = Annotated[
    str,
    _option(
        "--model",
        panel=MODEL,
        help=f"{_names(MODELS)}, multi:N, random:N, or a checkpoint folder.",
        autocompletion=_complete(MODELS),
    ),
]
ONE_LAYER = Annotated[int, _option("--layer", panel=MODEL, metavar="N", help="Which layer; -1 is the last.")]
SOME_HEADS = Annotated[
    list[str],
    _option("--head", panel=MODEL, metavar="N", help="Heads shown key by key: 0, 0-3,7; repeat. Default: the first."),
]
OUT_OF_CONFIGS = Annotated[
    str | None,
    _option("--out", panel=OUTPUT, metavar="DIR", help="Folder to write to; default: what configs say, or figures."),
]
