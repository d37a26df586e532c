"""What a command reads and where it writes, checked before anything heavy is imported.

Every command first makes Inputs of its options, which refuses what can be refused without a model, and then works on
them. A batch asks the same Inputs for the sha256 of everything that a job's files follow from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from attnviz import store
from attnviz.bounded import is_file
from attnviz.errors import InvalidOption
from attnviz.models.loading import ModelReference
from attnviz.specs import TextOptions
from attnviz.text import ENDINGS, Corpus, Document, load_corpus
from attnviz.text.stream import TextStream, stream_corpus

DATA_SET_ENDINGS = frozenset(plugin.name for plugin in ENDINGS) - {".txt"}


@dataclass(frozen=True, eq=False)
class Inputs:
    """The models, texts and files that a command reads, and the folder that it writes."""

    models: tuple[ModelReference, ...] = ()
    corpus: Corpus = field(default_factory=lambda: Corpus("", ()))  # every text of the source
    documents: Sequence[Document] = ()  # those that the command is about
    held_out: Corpus | None = None  # texts to measure on what was made of the others
    stream: TextStream | None = None  # in the place of them, for more texts than memory holds
    files: Mapping[str, Path] = field(default_factory=dict)  # others, by what they are
    folder: Path | None = None  # None: nothing is written
    n_workers: int = 1  # processes that share the work

    @property
    def model(self) -> ModelReference:
        """The only model."""
        (only,) = self.models
        return only

    @property
    def out(self) -> Path:
        """The folder of a command that writes one."""
        assert self.folder is not None
        return self.folder

    def sha256(self) -> dict[str, str]:
        """The sha256 of each input, by what it is. Reads all of them; raises as reading them does."""
        found = {}
        if self.stream is not None:
            found["texts"] = _digest(self.stream.documents())
        elif self.documents:
            learns = any(model.learns_from_texts for model in self.models)
            found["texts"] = _digest(self.corpus.documents if learns else self.documents)
        if self.held_out is not None:
            found["held_out"] = _digest(self.held_out.documents)
        for model in self.models:
            found |= model.inputs()
        for name, path in self.files.items():
            with path.open("rb") as opened:
                found[name] = hashlib.file_digest(opened, "sha256").hexdigest()
        return found


def add_argument(text: TextOptions, argument: str | None) -> tuple[TextOptions, tuple[str, ...]]:
    """Return the options with the text of an argument, or the file of that name where there is one, and what to say.

    Raises InvalidOption for a file of many texts.
    """
    if argument is None:
        return text, ()
    if not is_file(Path(argument)):
        return replace(text, text=(argument, *text.text)), ()
    if Path(argument).suffix.lower() in DATA_SET_ENDINGS:
        raise InvalidOption(f"{argument} is a file of many texts", hint=f"Give it by --dataset {argument}.")
    notice = f"reading the file {argument}; --text {argument!r} takes its name as words"
    return replace(text, text_file=(argument, *text.text_file)), (notice,)


def read_inputs(
    models: Sequence[ModelReference],
    text: TextOptions,
    *,
    every: bool,
    out: str | None = None,
    notices: tuple[str, ...] = (),
) -> Inputs:
    """The texts that `text` names, of which without --index all are meant if `every`, else the first.

    Raises InvalidOption, InvalidSource or InvalidSelection for texts that are not there, InvalidOption for a folder
    that cannot be one.
    """
    folder = None if out is None else store.check_output_folder(out)
    corpus = load_corpus(text)
    corpus = replace(corpus, notices=(*notices, *corpus.notices)) if notices else corpus
    documents = corpus.choose(text.index, every=every)
    return Inputs(tuple(models), corpus, documents, folder=folder)


def stream_inputs(models: Sequence[ModelReference], text: TextOptions, *, out: str) -> Inputs:
    """All texts that `text` names, read one after the other. Raises as `read_inputs` does."""
    return Inputs(tuple(models), stream=stream_corpus(text), folder=store.check_output_folder(out))


def _digest(documents: Iterable[Document]) -> str:
    """sha256 of texts with their names and labels."""
    digest = hashlib.sha256()
    for document in documents:
        digest.update(json.dumps([document.name, document.text, document.label]).encode())
    return digest.hexdigest()
