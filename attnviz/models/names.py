"""The names that `--model` and `--heads` take, without importing torch: a wrong name is answered at once."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from attnviz.errors import BadModel, BadOption
from attnviz.inputs import MAX_JSON, is_folder, read_bytes, user_path
from attnviz.models import MODELS
from attnviz.models.sizes import FLOAT32, check_room, head_size
from attnviz.registry import suggestion
from attnviz.specs.model import ModelOptions

DEFAULT_HEADS = 8
DEFAULT_D_MODEL = 64
SHIPPED = Path(__file__).parents[1] / "data" / "models"  # one folder per trained model: single, multi-2 …
LARGEST_SEED = 2**63 - 1  # that torch takes
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?(@[\w./-]{1,95})?")  # …@ a revision
UNTELLING = {"model", "models", "checkpoint", "weights", "output", "out"}  # what folders of any model are called
SIZE = re.compile("[0-9]{1,18}")  # no number that int() refuses
Kind = Literal["single", "multi", "random", "dot", "checkpoint", "pretrained"]


@dataclass(frozen=True)
class ModelName:
    """What a name means: the kind of model, its sizes, and where it lies if it was trained.

    Of a checkpoint of the user's own and of a pretrained model of others, only their files know the sizes. A pretrained
    model lies in a folder or, called by `hub`, on the hub.
    """

    kind: Kind
    n_heads: int = 1
    n_layers: int = 1
    d_model: int = DEFAULT_D_MODEL
    folder: Path | None = None
    hub: str = ""  # "org/name", "org/name@revision"

    @property
    def checkpoint(self) -> Path | None:
        """The folder of a model of ours that was trained; None for all others."""
        return None if self.kind == "pretrained" else self.folder

    @property
    def made(self) -> bool:
        """Whether it is made anew, with a vocabulary of the texts at hand."""
        return self.folder is None and self.kind != "pretrained"

    @property
    def known_sizes(self) -> bool:
        """Whether the sizes stand here, rather than in files."""
        return self.kind not in ("checkpoint", "pretrained")

    def __str__(self) -> str:
        match self.kind:
            case "checkpoint" | "pretrained":
                return self.hub or str(self.folder)
            case "multi" | "random":
                return f"{self.kind}:{self.n_heads}"
            case _:
                return self.kind


def resolve(spec: ModelOptions) -> ModelName:
    """What `--model` and `--heads` ask for together.

    Raises BadModel for an unknown name, BadOption for heads that contradict it or do not divide d_model, or a bad seed.
    """
    if not 0 <= spec.seed <= LARGEST_SEED:
        raise BadOption(f"--seed {spec.seed} is out of range", hint=f"It is 0 to {LARGEST_SEED}.")
    kind, colon, count = spec.model.partition(":")
    match kind:
        case "multi" | "random":
            return _of_size(spec, kind, _heads(spec, count if colon else None))
        case "single" | "dot" if not colon:
            return _of_size(spec, kind, _one_head(spec))
    return _elsewhere(spec)


def _one_head(spec: ModelOptions) -> int:
    if spec.heads not in (None, 1):
        raise BadOption(
            f"--heads {spec.heads} contradicts --model {spec.model}, which has one head",
            hint=f"Leave out --model, or use --model multi:{spec.heads}.",
        )
    return 1


def _elsewhere(spec: ModelOptions) -> ModelName:
    """A folder, of ours or of others, else a name on the hub. A name that is nearly one of ours is a slip."""
    folder = user_path(spec.model, BadModel)
    if spec.model and is_folder(folder):
        kind: Kind = "pretrained" if _is_pretrained(folder) else "checkpoint"
        _check_brought("a checkpoint" if kind == "checkpoint" else "a pretrained model", spec)
        return ModelName(kind, folder=folder)
    ours = [model.name for model in MODELS]
    if not HUB_NAME.fullmatch(spec.model) or ("/" not in spec.model and get_close_matches(spec.model, ours)):
        raise BadModel(f"no model or checkpoint folder {spec.model[:80]!r}", hint=suggestion(spec.model, ours))
    _check_brought("a pretrained model", spec)
    return ModelName("pretrained", hub=spec.model)


def _is_pretrained(folder: Path) -> bool:
    """Whether a folder's config.json is of Hugging Face's form, which names the type of the model."""
    try:
        found = json.loads(read_bytes(folder / "config.json", MAX_JSON, BadModel))
    except (BadModel, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and ("model_type" in found or "architectures" in found)


def _check_brought(what: str, spec: ModelOptions) -> None:
    """Raises BadOption for what a model brings itself and cannot be chosen."""
    if spec.heads is not None:
        raise BadOption(f"--heads cannot be chosen for {what}", hint="Leave it out; --head picks what is drawn.")
    for option, value in (("d-model", spec.d_model), ("layers", spec.layers), ("tokenizer", spec.tokenizer)):
        if value is not None:
            raise BadOption(f"--{option} cannot be chosen for {what}", hint="Leave it out.")
    if spec.vocab is not None:
        raise BadOption(f"{what} brings its own vocabulary", hint="Leave out --vocab.")
    if what == "a checkpoint":
        return
    for option, chosen in (("causal", spec.causal), ("show-padding", spec.show_padding)):
        if chosen:
            raise BadOption(f"--{option} cannot be chosen for {what}", hint="Leave it out.")


def _heads(spec: ModelOptions, written: str | None) -> int:
    """The number of heads in `multi:N`, in `--heads N`, or the default."""
    if written is None:
        return DEFAULT_HEADS if spec.heads is None else spec.heads
    if not SIZE.fullmatch(written):
        raise BadModel(f"no model {spec.model[:40]!r}", hint="Write the number of heads as in multi:8.")
    if spec.heads is not None and spec.heads != int(written):
        raise BadOption(f"--heads {spec.heads} contradicts --model {spec.model}", hint="Give one of them.")
    return int(written)


def _of_size(spec: ModelOptions, kind: Kind, n_heads: int) -> ModelName:
    """The model that came with attnviz if there is one and nothing else was asked of it, else one to be made."""
    kind = "single" if kind == "multi" and n_heads == 1 else kind
    shipped = SHIPPED / (f"multi-{n_heads}" if kind == "multi" else kind)
    as_it_is = (spec.d_model, spec.layers, spec.vocab, spec.tokenizer) == (None,) * 4
    if kind in ("single", "multi") and as_it_is and shipped.is_dir():
        return ModelName(kind, n_heads, folder=shipped)
    d_model = DEFAULT_D_MODEL if spec.d_model is None else spec.d_model
    layers = 1 if spec.layers is None else spec.layers
    head_size(d_model, n_heads)
    if layers < 1:
        raise BadOption(f"--layers {layers} is too small", hint="A model has at least 1 layer.")
    if kind == "dot" and layers != 1:
        raise BadOption(f"--layers {layers} with --model dot", hint="Unprojected attention has one layer.")
    check_room(f"the weights of {layers} layers of {d_model}", 12 * layers * d_model**2 * FLOAT32, spec.max_memory)
    return ModelName(kind, n_heads, layers, d_model)


def folder_name(folder: Path) -> str:
    """What a model in a folder is called: as the folder is, with its parent where that says nothing, as "model" does.

    A snapshot in the hub's cache is called as on the hub. `_name_or_path` of a config is no name: fine-tuned models
    keep that of the model they were tuned from.
    """
    whole = folder.resolve()
    cached = re.fullmatch("models--(.+?)--(.+)", whole.parents[1].name) if len(whole.parents) > 1 else None
    if cached and whole.parent.name == "snapshots":
        return "/".join(cached.groups())
    if whole.name.lower() in UNTELLING and whole.parent.name:
        return f"{whole.parent.name}/{whole.name}"
    return whole.name
