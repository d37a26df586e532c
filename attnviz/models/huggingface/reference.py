"""Third-party models by folder or by name on the hub, told from ours and checked without torch and transformers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.bounded import expand_path, is_file
from attnviz.document import Chat
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.models import MODELS
from attnviz.models.attribution import Attributable
from attnviz.models.built_in import TRAINED
from attnviz.models.decomposition import Decomposable
from attnviz.models.huggingface.files import FETCHED, PROCESSORS, ModelFiles, configuration, find_files, knows_chats
from attnviz.models.loading import WRITERS, ModelReference, digest, folder_name, refuse_sizes
from attnviz.models.protocols import Ablatable, AttentionModel, Classifies, Generates, Traceable
from attnviz.options import refuse_changed
from attnviz.specs import ModelOptions, PretrainedOptions
from attnviz.store.cache import remember

if TYPE_CHECKING:
    from attnviz.models.huggingface.model import HuggingFaceModel
    from attnviz.models.huggingface.weights import HeadKind, LoadedWeights

WRITING = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForSeq2SeqLM")  # what such classes end in
DECODERS = ("ForCausalLM", "LMHeadModel")
ANSWERS: dict[type[object], tuple[str, str]] = {  # by capability what a model without it lacks, and what to take
    Attributable: (
        "has no answer to explain",
        "attribute takes classifiers of texts and decoders: --model multi, --model smollm2.",
    ),
    Decomposable: (
        "has no answer to explain",
        "--head 2.1 --query WORD explains one look of a head; decoders, classifiers and masked models have answers.",
    ),
    Classifies: ("classifies no texts", "predict takes --model multi, or one saved as ForSequenceClassification."),
}
OF_IMAGES = "attnviz heatmap FILE draws where in an image it looks."
OF_TEXTS = ("max_tokens", "chat", "without", "pair", "target_text", "attention")  # options
LONE_SPACE = re.compile(r"\S \Z")
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?(@[\w./-]{1,95})?")  # …@ a revision


@dataclass(frozen=True, kw_only=True)
class HuggingFaceReference(ModelReference):
    """A model that lies in a folder or, called by `hub`, on the hub. Only its files know its sizes."""

    folder: Path | None = None
    hub: str = ""  # "org/name", "org/name@revision"
    works_by_hand = False
    answers: type[object] | None = None  # opened with the head of this capability, if it has one

    def __str__(self) -> str:
        return self.hub or str(self.folder)

    def check(self, needs: type[object] = AttentionModel) -> None:
        """Refuse all that can be refused without torch. Raises InvalidModel or InvalidOption."""
        if needs is Traceable:
            problem = f"{self} cannot be worked out by hand"
            raise InvalidOption(problem, hint="--by-hand takes a built-in model: --model multi.")
        if needs is Ablatable and not any(each.endswith(DECODERS) for each in self.list_classes()):
            raise InvalidModel(f"{self} is not a built-in classifier", hint=TRAINED)
        if self.extras.target_text is not None and self.extras.generate is not None:
            problem = "--generate and --target-text both say what the decoder writes"
            raise InvalidOption(problem, hint="Give one of them.")
        classes = self.list_classes()
        named = (", ".join(classes) or "a model without a head")[:80]
        if needs is Generates and not any(each.endswith(WRITING) for each in classes):
            raise InvalidModel(f"{self} is {named}, which writes no text", hint=WRITERS)
        if needs in ANSWERS and _choose_head(classes, needs) == "none":
            lack, hint = ANSWERS[needs]
            raise InvalidModel(f"{self} is {named}, which {lack}", hint=OF_IMAGES if self.reads_images else hint)

    def answering(self, needs: type[object] = Attributable) -> HuggingFaceReference:
        """Return the same, opened with the head that its answers come from if it has one that `needs`."""
        return replace(self, answers=needs)

    def open(self, texts: Iterable[str], name: str = "") -> HuggingFaceModel:
        """Open it, for images where these are some; it is loaded once for each device."""
        for _ in self.prepare():
            pass
        files, room = self._files, self.spec.max_memory
        from attnviz.images import Photo
        from attnviz.models.ablation import remove_heads
        from attnviz.models.device import pick
        from attnviz.models.huggingface import answering, weights
        from attnviz.models.huggingface.generating import HuggingFaceWriter
        from attnviz.models.huggingface.images import ImageModel
        from attnviz.models.huggingface.model import HuggingFaceModel

        device, writes = pick(self.spec.device), self.extras.generate is not None
        reads_images = any(isinstance(each, Photo) for each in texts)
        for options in (self.spec, self.extras) if reads_images else ():
            refuse_changed(options, OF_TEXTS, f"is for texts, and {self} reads an image, always all of it")
        answers = "none" if self.answers is None else _choose_head(self.list_classes(), self.answers)
        head: HeadKind = "images" if reads_images else "tokens" if writes else answers
        kinds: dict[HeadKind, type[HuggingFaceModel]] = {
            "none": answering.HeadedModel if self.answers is Decomposable else HuggingFaceModel,
            "tokens": answering.NextTokenModel,
            "masked": answering.MaskedTokenModel,
            "labels": answering.HuggingFaceClassifier,
            "images": ImageModel,
        }
        kind = HuggingFaceWriter if head == "tokens" and writes else kinds[head]

        def load() -> LoadedWeights:
            loaded = weights.load_weights(files, self.name, device, room, head)
            if self.spec.without:
                remove_heads(kind(name or self.name, loaded, device, self.spec, self.extras), self.spec)
            return loaded

        loaded = remember(("huggingface", files.folder, str(device), room, head, self.spec.without), load)
        return kind(name or self.name, loaded, device, self.spec, self.extras)

    def inputs(self) -> Mapping[str, str]:
        """Return the sha256 of the weights, and the version of the library that runs them."""
        found = digest(self._files.folder, FETCHED)
        return {f"weights of {self.spec.model}": found, "transformers": version("transformers")}

    @property
    def reads_images(self) -> bool:
        """Tell whether the model's files have a processor of images or sounds."""
        return any(is_file(self._files.folder / name) for name in PROCESSORS)

    def find_notices(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Say what of plain texts changes an answer unseen, once the model's files are there.

        A model may know chats. A decoder's words begin with a space: behind one that stands alone other tokens come.
        """
        plain, found = [text for text in texts if not isinstance(text, Chat)], list[str]()
        if self.spec.chat or not plain:
            return ()
        with suppress(InvalidModel):
            if knows_chats(self._files.folder):
                found = [f"{self} has learned from chats: --chat reads a text as a message to it, not as plain text"]
            if any(map(LONE_SPACE.search, plain)) and any(each.endswith(DECODERS) for each in self.list_classes()):
                found.append(f"a text ends in a space, its last token: without it {self} may go on with another word")
        return tuple(found)

    @cached_property
    def _files(self) -> ModelFiles:
        """Return the model's files, fetched if need be and checked to be whole."""
        return remember(("files", str(self), self.spec.max_memory), self._find_files)

    def _find_files(self) -> ModelFiles:
        return find_files(self.folder, self.hub, self.spec.max_memory)

    def list_classes(self) -> list[str]:
        """Return the classes that its weights were saved from. Raises InvalidModel where its files are not whole."""
        return [str(each) for each in configuration(self._files.folder).get("architectures") or ()]


def find_folder(spec: ModelOptions, extras: PretrainedOptions) -> HuggingFaceReference | None:
    """Refer to a folder whose config.json is of Hugging Face's form, which names the type of the model."""
    folder = expand_path(spec.model, InvalidModel)
    try:
        found = configuration(folder)
    except InvalidModel:
        return None
    if not spec.model or not {"model_type", "architectures"} & found.keys():
        return None
    refuse_sizes("a pretrained model", spec, "causal")
    return HuggingFaceReference(spec, extras, folder_name(folder), folder=folder)


def find_on_hub(spec: ModelOptions, extras: PretrainedOptions) -> HuggingFaceReference | None:
    """Refer to any name that could be on the hub; a name that is nearly a built-in one is taken for a slip."""
    ours = [plugin.name for plugin in MODELS]
    if not HUB_NAME.fullmatch(spec.model) or ("/" not in spec.model and get_close_matches(spec.model.lower(), ours)):
        return None
    refuse_sizes("a pretrained model", spec, "causal")
    return HuggingFaceReference(spec, extras, spec.model.partition("@")[0], hub=spec.model)


def _choose_head(classes: Sequence[str], needs: type[object]) -> HeadKind:
    """Return the head that a model was saved with, "none" without one that has the capability."""
    for each in classes:
        if each.endswith("ForSequenceClassification"):
            return "labels"
        if each.endswith("ForMaskedLM") and needs is Decomposable:
            return "masked"
        if each.endswith(DECODERS) and needs in (Attributable, Decomposable):
            return "tokens"
    return "none"
