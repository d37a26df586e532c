"""Each option written once. A command takes the options that its spec has fields for, with the spec's defaults.

An option stands in the module of the panel that lists it in a command's help: options_text.py, options_model.py,
options_figures.py, options_output.py, options_check.py. Here stand arguments, which have no panel, and what one command
alone reads more narrowly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar

import typer

from attnviz.cli import options_check, options_figures, options_model, options_output, options_text
from attnviz.cli.options_form import completing, flag, names_of
from attnviz.cli.options_model import MODEL
from attnviz.cli.options_output import OUTPUT
from attnviz.models import MODELS

Spec = TypeVar("Spec")

ARGUMENTS: dict[str, Any] = {
    "models": Annotated[
        list[str],
        typer.Argument(
            metavar="MODELS",
            help=f"Two or more of: {names_of(MODELS)}, multi:N, random:N, folders, names on the hub.",
            autocompletion=completing(MODELS),
        ),
    ],
    "record": Annotated[str, typer.Argument(metavar="FILE", help="An attention.safetensors.")],
    "configs": Annotated[
        list[str], typer.Argument(metavar="CONFIGS", help="YAML or JSON files; see `attnviz schema`.")
    ],
    "folder": Annotated[str, typer.Argument(metavar="DIR", help="What attnviz batch made.")],
    "before": Annotated[
        str, typer.Argument(metavar="A", help="An attention.safetensors, a manifest.json, or the folder of one.")
    ],
    "after": Annotated[str, typer.Argument(metavar="B", help="Another of its kind.")],
}
OPTIONS: dict[str, Any] = {
    **ARGUMENTS,
    **options_text.OPTIONS,
    **options_model.OPTIONS,
    **options_figures.OPTIONS,
    **options_output.OPTIONS,
    **options_check.OPTIONS,
}

MODEL_OF_OURS = Annotated[
    str,
    flag(
        "--model",
        panel=MODEL,
        help=f"{names_of(MODELS)}, multi:N, random:N, or a checkpoint folder.",
        autocompletion=completing(MODELS),
    ),
]
ONE_LAYER = Annotated[int, flag("--layer", panel=MODEL, metavar="N", help="Which layer; -1 is the last.")]
SOME_HEADS = Annotated[
    list[str],
    flag("--head", panel=MODEL, metavar="N", help="Heads shown key by key: 0, 0-3,7; repeat. Default: the first."),
]
OUT_OF_CONFIGS = Annotated[
    str | None,
    flag("--out", panel=OUTPUT, metavar="DIR", help="Folder to write to; default: what configs say, or figures."),
]


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
