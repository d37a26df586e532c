"""The names that `--model` and `--heads` take, without importing torch: a wrong name is answered at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnviz.errors import BadModel, BadOption
from attnviz.models import MODELS
from attnviz.models.sizes import head_size
from attnviz.registry import suggestion
from attnviz.specs import ModelSpec

DEFAULT_HEADS = 8
LARGEST_D_MODEL = 65_536  # four projections of it take 64 GiB: beyond this it is a slip of the finger
Kind = Literal["single", "multi", "random", "dot", "checkpoint"]


@dataclass(frozen=True)
class ModelName:
    """What a name means: the kind of model, its heads, and for a checkpoint where it lies."""

    kind: Kind
    n_heads: int = 1
    folder: Path | None = None

    def __str__(self) -> str:
        match self.kind:
            case "checkpoint":
                return str(self.folder)
            case "multi" | "random":
                return f"{self.kind}:{self.n_heads}"
            case _:
                return self.kind


def resolve(spec: ModelSpec) -> ModelName:
    """What `--model` and `--heads` ask for together.

    Raises BadModel for an unknown name, BadOption for heads that contradict it or do not divide d_model.
    """
    kind, colon, count = spec.model.partition(":")
    match kind:
        case "multi" | "random":
            return _checked(spec, kind, _heads(spec, count if colon else None))
        case "single" | "dot" if not colon:
            return _checked(spec, kind, _one_head(spec))
    return _checkpoint(spec)


def _one_head(spec: ModelSpec) -> int:
    if spec.heads not in (None, 1):
        raise BadOption(
            f"--heads {spec.heads} contradicts --model {spec.model}, which has one head",
            hint=f"Leave out --model, or use --model multi:{spec.heads}.",
        )
    return 1


def _checkpoint(spec: ModelSpec) -> ModelName:
    folder = Path(spec.model).expanduser()
    if spec.model and folder.is_dir():
        if spec.heads is not None:
            raise BadOption(
                "--heads cannot be chosen for a checkpoint", hint="Leave it out; --head picks what is drawn."
            )
        return ModelName("checkpoint", folder=folder)
    raise BadModel(
        f"no model or checkpoint folder {spec.model!r}", hint=suggestion(spec.model, [m.name for m in MODELS])
    )


def _heads(spec: ModelSpec, written: str | None) -> int:
    """The number of heads in `multi:N`, in `--heads N`, or the default."""
    if written is None:
        return DEFAULT_HEADS if spec.heads is None else spec.heads
    if not written.isascii() or not written.isdigit():
        raise BadModel(f"no model {spec.model!r}", hint="Write the number of heads as in multi:8.")
    if spec.heads is not None and spec.heads != int(written):
        raise BadOption(f"--heads {spec.heads} contradicts --model {spec.model}", hint="Give one of them.")
    return int(written)


def _checked(spec: ModelSpec, kind: Kind, n_heads: int) -> ModelName:
    if spec.d_model > LARGEST_D_MODEL:
        raise BadOption(f"--d-model {spec.d_model} is too large", hint=f"It is at most {LARGEST_D_MODEL}.")
    head_size(spec.d_model, n_heads)
    if spec.layers < 1:
        raise BadOption(f"--layers {spec.layers} is too small", hint="A model has at least 1 layer.")
    if kind == "dot" and spec.layers != 1:
        raise BadOption(f"--layers {spec.layers} with --model dot", hint="Unprojected attention has one layer.")
    return ModelName("single" if kind == "multi" and n_heads == 1 else kind, n_heads)
