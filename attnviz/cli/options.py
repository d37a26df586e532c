"""Each option written once. A command takes the options that its spec has fields for, with the spec's defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar

import typer

from attnviz.models import MODELS
from attnviz.registry import Plugin
from attnviz.renderers import RENDERERS
from attnviz.specs import ScaleKind, TableKind, TokenizerKind
from attnviz.text import NAMES

Spec = TypeVar("Spec")


def takes(spec: type[Spec]) -> Callable[[Callable[[Spec], None]], Callable[..., None]]:
    """Turn a command that takes a spec into one that takes the spec's fields as options."""

    def decorate(command: Callable[[Spec], None]) -> Callable[..., None]:
        def from_flags(**flags: Any) -> None:
            command(spec(**{name: tuple(v) if isinstance(v, list) else v for name, v in flags.items()}))

        parameters = [
            Parameter(
                field.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if field.default is MISSING else field.default,
                annotation=OPTIONS[field.name],
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


def _complete(table: tuple[Plugin, ...]) -> Callable[[str], list[tuple[str, str]]]:
    def complete(incomplete: str) -> list[tuple[str, str]]:
        return [(plugin.name, plugin.help) for plugin in table if plugin.name.startswith(incomplete)]

    return complete


def _option(*names: str, panel: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=more.pop("show_default", True), **more)


TEXT, MODEL, FIGURE, OUTPUT = "Which text", "Which model", "Which figures", "What comes out"

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
            help=f"{_names(MODELS)}, multi:N, random:N, or a checkpoint folder.",
            autocompletion=_complete(MODELS),
        ),
    ],
    "heads": Annotated[int | None, _option("--heads", panel=MODEL, help="Short for --model multi:N; 1 is single.")],
    "d_model": Annotated[int, _option("--d-model", panel=MODEL, help="Width of the model, shared by its heads.")],
    "layers": Annotated[int, _option("--layers", panel=MODEL, help="Layers of the model.")],
    "causal": Annotated[bool, _option("--causal", panel=MODEL, help="Attend only to earlier tokens and to itself.")],
    "seed": Annotated[int, _option("--seed", panel=MODEL, help="Seed of random weights.")],
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
    "tokenizer": Annotated[TokenizerKind, _option("--tokenizer", panel=MODEL, help="Kind of vocabulary to make.")],
    "max_tokens": Annotated[int | None, _option("--max-tokens", panel=MODEL, help="Only the first N tokens.")],
    "show_padding": Annotated[
        bool, _option("--show-padding", panel=MODEL, help="Pad shorter texts to --max-tokens and show the padding.")
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
            "--scale", panel=FIGURE, help="fixed: 0 to 1; shared: 0 to the largest weight; log: for dominant keys."
        ),
    ],
    "annotate": Annotated[bool, _option("--annotate", panel=FIGURE, help="Write the weights into the cells.")],
    "title": Annotated[str | None, _option("--title", panel=FIGURE, help="Title of the figures.")],
    "out": Annotated[str, _option("--out", panel=OUTPUT, metavar="DIR", help="Folder to write to.")],
    "table": Annotated[
        TableKind,
        _option("--table", panel=OUTPUT, help="In the terminal: shaded maps, top keys, all weights, or nothing."),
    ],
    "top_k": Annotated[int, _option("--top-k", panel=OUTPUT, help="Keys listed for each query.")],
    "json": Annotated[bool, _option("--json", panel=OUTPUT, help="All numbers as JSON on stdout, and nothing else.")],
}
