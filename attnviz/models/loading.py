"""From `--model` to a model, in two steps: a reference, which needs no torch, and the model that it opens."""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from attnviz.bounded import MAX_JSON, compute_sha256, read_bytes
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.models import FORMATS, MODELS
from attnviz.models.attribution import Attributable
from attnviz.models.decomposition import Decomposable
from attnviz.models.protocols import AttentionModel, Generates
from attnviz.options import refuse_changed
from attnviz.registry import load, suggest_name
from attnviz.specs import ModelOptions, PretrainedOptions

NO_EXTRAS = PretrainedOptions()
CARD = "README.md"
NAME_IN_CARD = tuple(
    re.compile(before + r"[\"']?([\w.-]{1,95}(?:/[\w.-]{1,95})?)[\"']?[ \t]*$", re.MULTILINE)
    for before in (r"^model-index:\s*-\s*name:[ \t]*", r"^#[ \t]+")
)
WRITERS = "--generate takes a decoder such as Llama or GPT-2, or an encoder-decoder: a folder, or a name on the hub."
UNTELLING = {"model", "models", "checkpoint", "weights", "output", "out"}  # what folders of any model are called


@dataclass(frozen=True)
class ModelReference(ABC):
    """What `--model` names, as far as it is known without torch. A kind of model is a subclass. Its `str` names it."""

    spec: ModelOptions
    extras: PretrainedOptions
    name: str  # as titles and records will call the model
    n_layers: int | None = None  # None where only its files know
    n_heads: int | None = None  # likewise
    known_heads: str = ""  # which of its heads do what over many texts, where that was measured and has no card
    trained_relatives: str = ""  # what to choose instead of random weights, where others of its name are trained

    learns_from_texts: ClassVar[bool] = False  # whether its vocabulary is made of the texts that it is opened with
    works_by_hand: ClassVar[bool] = True  # whether its attention can be worked out by hand: see `Traceable`
    has_answers: ClassVar[bool] = False  # whether it was trained to answer, as far as its kind says

    def __str__(self) -> str:
        return self.name

    def check(self, needs: type[object] = AttentionModel) -> None:
        """Refuse all that can be refused without torch, such as files that are not whole. `needs`: a capability.

        Raises InvalidModel, InvalidOption, TooLarge.
        """
        if needs is Decomposable and not self.has_answers:
            raise InvalidOption(f"{self} has no answer to explain", hint="attnviz explain works it out by hand.")
        if needs is Generates:
            raise InvalidOption(f"{self} reads texts and writes none", hint=WRITERS)
        why, hint = "is for third-party models", f"{self.spec.model} reads one text. Leave it out."
        refuse_changed(self.extras, vars(self.extras), why, hint)
        refuse_changed(self.spec, ("chat",), why, hint)

    def answering(self, needs: type[object] = Attributable) -> "ModelReference":
        """Return the same model with all that its answers come from, which its attention may do without. `needs`: see
        `check`.

        One whose answers are others, or that has none, is opened without them.
        """
        return self

    @property
    def reads_images(self) -> bool:
        """Tell whether the model reads images, alone or beside words."""
        return False

    def find_notices(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Say what these texts are likely a mistake for."""
        return ()

    def prepare(self) -> Iterator[str]:
        """Say what is made once, and make it. Opening it does so, too, in silence. Raises as `open`."""
        return iter(())

    @abstractmethod
    def open(self, texts: Iterable[str], name: str = "") -> AttentionModel:
        """Open the model, its weights cached. `texts` make the vocabulary of one without; `name` is another name.

        Raises InvalidModel for a file that is missing or damaged, InvalidDevice.
        """

    @abstractmethod
    def inputs(self) -> Mapping[str, str]:
        """Return digests of the files that the model is read from, by what they are, and versions that matter."""


def find_model(spec: ModelOptions, extras: PretrainedOptions = NO_EXTRAS) -> ModelReference:
    """Return what `--model` and `--heads` ask for together; `extras` are what only third-party models have.

    Raises InvalidModel for an unknown name, InvalidOption for heads that contradict it or do not divide d_model, or a
    bad seed.
    """
    kind = spec.model.partition(":")[0]
    names = [plugin.name for plugin in MODELS]
    for plugin in (*(plugin for plugin in MODELS if plugin.name == kind), *FORMATS):
        reference: ModelReference | None = load(plugin)(spec, extras)
        if reference is not None:
            return replace(reference, name=reference.name + spec.removal)
    hint = "A text goes with --text." if len(spec.model.split()) > 2 else suggest_name(spec.model, names)
    raise InvalidModel(f"no model or checkpoint folder {spec.model[:80]!r}", hint=hint)


def refuse_sizes(what: str, spec: ModelOptions, *others: str) -> None:
    """Raise InvalidOption for what a model of files brings itself and cannot be chosen, and for other options."""
    names = "heads", "d_model", "layers", "tokenizer", "vocab", *others
    refuse_changed(spec, names, f"cannot be chosen for {what}", "Leave it out. --head picks what is drawn.")


def folder_name(folder: Path) -> str:
    """Return what a model in a folder is called: as the folder is; where that says nothing, as "model" does, as its
    card says: under `model-index`, else in its heading if that is one word.

    Without a card it is the folder with its parent. A snapshot in the hub's cache is called as on the hub.
    `_name_or_path` of a config is no name: fine-tuned models keep that of the model they were tuned from.
    """
    whole = folder.resolve()
    cached = re.fullmatch("models--(.+?)--(.+)", whole.parents[1].name) if len(whole.parents) > 1 else None
    if cached and whole.parent.name == "snapshots":
        return "/".join(cached.groups())
    if whole.name.lower() in UNTELLING and whole.parent.name:
        named = None
        with suppress(InvalidModel):
            text = read_bytes(whole / CARD, MAX_JSON, InvalidModel).decode(errors="replace")
            named = next((match[1] for pattern in NAME_IN_CARD if (match := pattern.search(text))), None)
        return named or f"{whole.parent.name}/{whole.name}"
    return whole.name


def digest(folder: Path, patterns: Sequence[str]) -> str:
    """Compute the sha256 of the files that a model is read from. What is missing is for opening it to say."""
    whole = hashlib.sha256()
    for file in sorted({file for pattern in patterns for file in folder.glob(pattern)}):
        if file.is_file():
            whole.update(f"{file.name} {compute_sha256(file)}".encode())
    return whole.hexdigest()
