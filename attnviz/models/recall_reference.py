"""The shipped networks of the recall task by name, `recall:1` … `recall:8` by their heads. Knows no torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.capacity import Trial
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.models.built_in import TRAINED
from attnviz.models.loading import ModelReference, digest, refuse_sizes
from attnviz.models.protocols import AttentionModel, Classifies, Generates
from attnviz.models.recall_text import EXAMPLE
from attnviz.specs import ModelOptions, PretrainedOptions

if TYPE_CHECKING:
    from attnviz.models.recall_model import RecallModel

FOLDER = Path(__file__).parents[1] / "data" / "recall"
TRIALS = {heads: Trial("attention", heads, 8, 32, 24, 1600, 0) for heads in (1, 2, 4, 8)}  # how they were trained
DEFAULT_HEADS = 8


@dataclass(frozen=True, kw_only=True)
class RecallReference(ModelReference):
    """One of the networks that ship."""

    n_heads: int

    example = EXAMPLE

    def check(self, needs: type[object] = AttentionModel) -> None:
        """Refuse all that can be refused without torch. Raises InvalidModel or InvalidOption."""
        if needs not in (AttentionModel, Generates):
            does = "classify" if needs is Classifies else "explain its arithmetic"
            raise InvalidModel(f"{self} recalls values and cannot {does}", hint=TRAINED)
        super().check(needs)
        for option, value in (("show-padding", self.spec.show_padding), ("causal", self.spec.causal)):
            if value:
                raise InvalidOption(f"--{option} is not for {self}", hint="Its one query reads the whole text.")

    def open(self, texts: Iterable[str], name: str = "") -> RecallModel:
        """The network with its weights. Raises InvalidModel for a damaged file, InvalidDevice."""
        from attnviz.models.recall_model import load_recall

        return load_recall(self.file, TRIALS[self.n_heads], name or self.name, self.spec)

    def inputs(self) -> Mapping[str, str]:
        """The sha256 of the weights."""
        return {f"weights of {self}": digest(FOLDER, (self.file.name,))}

    @property
    def file(self) -> Path:
        """The weights."""
        return FOLDER / f"heads-{self.n_heads}.safetensors"


def recall(spec: ModelOptions, extras: PretrainedOptions) -> RecallReference:
    """The network with as many heads as are written. Raises InvalidModel where none ships."""
    written = spec.model.partition(":")[2] or str(DEFAULT_HEADS)
    if written not in map(str, TRIALS):
        names = ", ".join(f"recall:{heads}" for heads in TRIALS)
        raise InvalidModel(f"no model {spec.model[:40]!r}", hint=f"There are {names}.")
    refuse_sizes("a recall model", spec)
    return RecallReference(spec, extras, f"recall:{written}", n_layers=1, n_heads=int(written))
