"""Models that `attnviz train` wrote, the shipped ones among them: found without torch, and opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.cache import cached
from attnviz.errors import InvalidModel
from attnviz.inputs import is_folder, user_path
from attnviz.models.loading import ModelReference, digest, folder_name, refuse_sizes
from attnviz.specs.model import ModelOptions, PretrainedOptions

if TYPE_CHECKING:
    from attnviz.models.encoder_model import EncoderModel

FILES = ("config.json", "model.safetensors", "tokenizer.json")
TRAINED = "Choose single, multi, multi:2, multi:4 or a checkpoint folder."


@dataclass(frozen=True, kw_only=True)
class TrainedReference(ModelReference):
    """A checkpoint folder. Of one that did not come with attnviz, only its files know the sizes."""

    folder: Path

    def open(self, texts: Iterable[str], name: str = "") -> EncoderModel:
        """The folder is read once."""
        from attnviz.models.checkpoint import load_checkpoint
        from attnviz.models.classifier_model import checkpoint_model
        from attnviz.models.device import pick

        saved = cached(("checkpoint", self.folder), lambda: load_checkpoint(self.folder, self.spec.max_memory))
        return checkpoint_model(saved, self.folder, name or self.name, self.spec, pick(self.spec.device))

    def inputs(self) -> Mapping[str, str]:
        """The sha256 of the weights."""
        return {f"weights of {self.spec.model}": digest(self.folder, FILES)}


def find_folder(spec: ModelOptions, extras: PretrainedOptions) -> TrainedReference | None:
    """Any folder; opening it says what it lacks. It is called by its own name, wherever it lies."""
    folder = user_path(spec.model, InvalidModel)
    if not spec.model or not is_folder(folder):
        return None
    refuse_sizes("a checkpoint", spec)
    return TrainedReference(spec, extras, folder_name(folder), folder=folder)
