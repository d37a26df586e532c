"""Built-in models, found without torch: folders that `attnviz train` wrote, the shipped ones among them, and random
models of any size.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.bounded import MAX_VOCABULARY, check_room, expand_path, is_file, is_folder, read_bytes
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.models.attribution import Attributable
from attnviz.models.loading import ModelReference, digest, folder_name, refuse_sizes
from attnviz.models.protocols import Ablatable, AttentionModel, Classifies
from attnviz.models.sizes import FLOAT32, head_size
from attnviz.specs import ModelOptions, PretrainedOptions
from attnviz.store.cache import remember

if TYPE_CHECKING:
    from attnviz.models.checkpoint import Checkpoint
    from attnviz.models.encoder_model import EncoderModel

DEFAULT_HEADS = 8
DEFAULT_D_MODEL = 64
LAYERS = 2  # of the models that come with attnviz, but for those that recall
SHIPPED = Path(__file__).parents[1] / "data" / "models"  # one folder per trained model: single, multi-2 …
RECALL = ("recall:1", "recall:2", "recall:4", "recall:8")
ONE_SIZE = {"single-zh": (LAYERS, 1), "multi-zh": (LAYERS, 8)} | {name: (1, int(name[-1])) for name in RECALL}
SIZE = re.compile("[0-9]{1,18}")  # no number that int() refuses
RELATIVES = "Trained are single, multi:2, multi:4 and multi:8, without --d-model, --layers, --vocab or --tokenizer"
FILES = ("config.json", "model.safetensors", "tokenizer.json")
TRAINED = "Choose single, multi, multi:2, multi:4 or a checkpoint folder."


@dataclass(frozen=True, kw_only=True)
class TrainedReference(ModelReference):
    """A checkpoint folder. Of one that did not come with attnviz, only its files know the sizes."""

    folder: Path
    has_answers = True

    def open(self, texts: Iterable[str], name: str = "") -> EncoderModel:
        """Open it; the folder is read once."""
        from attnviz.models.ablation import remove_heads
        from attnviz.models.checkpoint import load_checkpoint
        from attnviz.models.classifier_model import checkpoint_model
        from attnviz.models.device import pick

        def load() -> Checkpoint:
            saved = load_checkpoint(self.folder, self.spec.max_memory)
            if self.spec.without:
                remove_heads(make_model(saved), self.spec)
            return saved

        def make_model(saved: Checkpoint) -> EncoderModel:
            return checkpoint_model(saved, self.folder, name or self.name, self.spec, pick(self.spec.device))

        return make_model(remember(("checkpoint", self.folder, self.spec.without), load))

    def inputs(self) -> Mapping[str, str]:
        """Return the sha256 of the weights."""
        return {f"weights of {self.spec.model}": digest(self.folder, FILES)}


def find_folder(spec: ModelOptions, extras: PretrainedOptions) -> TrainedReference | None:
    """Refer to any folder; opening it says what it lacks. It is called by its own name, wherever it lies."""
    folder = expand_path(spec.model, InvalidModel)
    if not spec.model or not is_folder(folder):
        return None
    if is_file(folder / FILES[0]):  # else that is said first, when it is opened
        refuse_sizes("a checkpoint", spec)
    return TrainedReference(spec, extras, folder_name(folder), folder=folder)


@dataclass(frozen=True, kw_only=True)
class RandomReference(ModelReference):
    """An encoder with random weights, with a vocabulary of the texts at hand."""

    n_layers: int
    n_heads: int
    d_model: int
    projected: bool = True  # False: q, k and v are the embeddings themselves

    learns_from_texts = True

    def check(self, needs: type[object] = AttentionModel) -> None:
        """Refuse all that can be refused without torch. Raises InvalidModel or InvalidOption."""
        if needs in (Ablatable, Attributable, Classifies):
            raise InvalidModel(f"{self} has random weights and cannot classify", hint=TRAINED)
        super().check(needs)

    def open(self, texts: Iterable[str], name: str = "") -> EncoderModel:
        """Make it once for each source of texts."""
        from attnviz.models.ablation import remove_heads
        from attnviz.models.classifier_model import random_model

        # The texts are kept beside the model, so that no others can get this number.
        def make() -> tuple[object, EncoderModel]:
            sizes = self.n_layers, self.n_heads, self.d_model
            model = random_model(self.name, self.spec, sizes, texts, projected=self.projected)
            if self.spec.without:
                remove_heads(model, self.spec)
            return texts, model

        _, model = remember((self.spec, id(texts)), make)
        return replace(model, name=name) if name else model

    def inputs(self) -> Mapping[str, str]:
        """Return what the model is made of besides its options: sha256 by name."""
        if self.spec.vocab is None:
            return {}
        vocabulary = expand_path(self.spec.vocab, InvalidModel)
        file = vocabulary / "tokenizer.json" if is_folder(vocabulary) else vocabulary
        return {"vocabulary": hashlib.sha256(read_bytes(file, MAX_VOCABULARY, InvalidModel)).hexdigest()}


def single(spec: ModelOptions, extras: PretrainedOptions) -> ModelReference | None:
    """Refer to the model of one head of full width."""
    return None if ":" in spec.model else multi(spec, extras)


def multi(spec: ModelOptions, extras: PretrainedOptions) -> ModelReference:
    """Refer to a model of as many heads as are written, or 8.

    It is the one that came with attnviz if there is one and nothing else was asked of it, else one to be made.
    """
    n_heads = _count_heads(spec)
    name = "single" if n_heads == 1 else f"multi:{n_heads}"
    folder = SHIPPED / name.replace(":", "-")
    if (spec.d_model, spec.layers, spec.vocab, spec.tokenizer) == (None,) * 4 and folder.is_dir():
        return TrainedReference(spec, extras, name, n_layers=LAYERS, n_heads=n_heads, folder=folder)
    return replace(_random(spec, extras, name, n_heads), trained_relatives=RELATIVES)


def random(spec: ModelOptions, extras: PretrainedOptions) -> ModelReference:
    """Refer to random weights, whatever is asked."""
    n_heads = _count_heads(spec)
    return _random(spec, extras, f"random:{n_heads}", n_heads)


def dot(spec: ModelOptions, extras: PretrainedOptions) -> ModelReference | None:
    """Refer to the model of one head, one layer and no projections."""
    if ":" in spec.model:
        return None
    reference = replace(_random(spec, extras, "dot", _count_heads(spec)), projected=False)
    if reference.n_layers != 1:
        raise InvalidOption(f"--layers {spec.layers} with --model dot", hint="Unprojected attention has one layer.")
    return reference


def one_size(spec: ModelOptions, extras: PretrainedOptions) -> ModelReference | None:
    """Refer to a model that has one size, trained on Chinese reviews or to recall.

    Raises InvalidModel for another size.
    """
    kind, colon, _ = spec.model.partition(":")
    name = spec.model if colon or kind != "recall" else f"recall:{DEFAULT_HEADS}"
    if name not in ONE_SIZE:
        if kind != "recall":
            return None
        raise InvalidModel(f"no model {spec.model[:40]!r}", hint=f"There are {', '.join(RECALL)}.")
    n_layers, n_heads = ONE_SIZE[name]
    refuse_sizes(spec.model, replace(spec, heads=None if spec.heads == n_heads else spec.heads))
    return TrainedReference(
        spec, extras, name, n_layers=n_layers, n_heads=n_heads, folder=SHIPPED / name.replace(":", "-")
    )


def _count_heads(spec: ModelOptions) -> int:
    """Return the number of heads in `multi:N`, of a model that has one, in `--heads N`, or the default."""
    kind, colon, written = spec.model.partition(":")
    if colon and not SIZE.fullmatch(written):
        raise InvalidModel(f"no model {spec.model[:40]!r}", hint="Write the number of heads as in multi:8.")
    usual = DEFAULT_HEADS if spec.heads is None else spec.heads
    n_heads = int(written) if colon else 1 if kind in ("single", "dot") else usual
    if spec.heads not in (None, n_heads):
        raise InvalidOption(f"--heads {spec.heads} contradicts --model {spec.model}", hint="Give one of them.")
    return n_heads


def _random(spec: ModelOptions, extras: PretrainedOptions, name: str, n_heads: int) -> RandomReference:
    """Refer to random weights. Raises InvalidOption where their sizes do not fit."""
    d_model = DEFAULT_D_MODEL if spec.d_model is None else spec.d_model
    n_layers = 1 if spec.layers is None else spec.layers
    head_size(d_model, n_heads)
    needed = 12 * n_layers * d_model**2 * FLOAT32
    check_room(f"the weights of {n_layers} layers of {d_model}", needed, spec.max_memory)
    return RandomReference(spec, extras, name, n_layers=n_layers, n_heads=n_heads, d_model=d_model)
