"""What a command reads and where it writes, checked before anything heavy is imported.

Every command first turns its options into Inputs, which refuses what can be refused without a model, and then works on
them. A batch uses the same Inputs for the sha256 of everything that decides a job's files.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from attnviz import store
from attnviz.bounded import compute_sha256
from attnviz.errors import InvalidOption
from attnviz.models.loading import ModelReference
from attnviz.specs import TextOptions
from attnviz.text import Corpus, Document, load_corpus
from attnviz.text.dataset import TextStream


@dataclass(frozen=True, eq=False)
class Inputs:
    """The models, texts and files that a command reads, and the folder that it writes."""

    models: tuple[ModelReference, ...] = ()
    corpus: Corpus = field(default_factory=lambda: Corpus("", ()))  # every text of the source
    documents: Sequence[Document] = ()  # the texts that the command works on
    stream: TextStream | None = None  # instead of documents, for more texts than memory holds
    files: Mapping[str, Path] = field(default_factory=dict)  # other files that are read, by what they are
    folder: Path | None = None  # None: nothing is written
    n_workers: int = 1  # processes that share the work

    @property
    def model(self) -> ModelReference:
        """Return the only model."""
        (only,) = self.models
        return only

    @property
    def out(self) -> Path:
        """Return the folder of a command that writes one."""
        assert self.folder is not None
        return self.folder

    def sha256(self) -> dict[str, str]:
        """Return the sha256 of each input, by what it is. Reads all inputs; raises as reading them does."""
        found = {}
        if self.stream is not None:
            found["texts"] = digest_texts(self.stream.documents(), named=True)
        elif self.documents:
            learns = any(model.learns_from_texts for model in self.models)
            found["texts"] = digest_texts(self.corpus.documents if learns else self.documents, named=True)
        for model in self.models:
            found |= model.inputs()
        for name, path in self.files.items():
            found[name] = compute_sha256(path)
        return found


def read_inputs(models: Sequence[ModelReference], text: TextOptions, *, every: bool, out: str | None = None) -> Inputs:
    """Read the texts that `text` names: those of --index, else all of them if `every`, else the first.

    Raises InvalidOption, InvalidSource or InvalidSelection for texts that do not exist, InvalidOption where
    `out` cannot be a folder.
    """
    folder = None if out is None else store.check_output_folder(out)
    memory = max((model.spec.max_memory for model in models), default=4.0)
    corpus = load_corpus(text, memory, only_index=not any(model.learns_from_texts for model in models))
    documents = corpus.choose(text.index, every=every)
    notices = (said for model in models for said in model.find_notices([each.text for each in documents]))
    corpus = replace(corpus, notices=tuple(dict.fromkeys((*corpus.notices, *notices))))
    return Inputs(tuple(models), corpus, documents, folder=folder)


def read_one_text(models: Sequence[ModelReference], text: TextOptions, out: str, where: str) -> Inputs:
    """Read the text of a command that takes one. Raises as `read_inputs` does, and InvalidOption for several."""
    inputs = read_inputs(models, text, every=text.inline, out=out)
    if len(inputs.documents) != 1:
        raise InvalidOption(f"{len(inputs.documents)} texts, where {where}", hint="--index chooses one.")
    return inputs


def digest_texts(documents: Iterable[Document], *, named: bool = False) -> str:
    """Return the sha256 of texts with their labels, in order: as metrics say it, or with names, as manifests do."""
    digest = hashlib.sha256()
    for each in documents:
        with_name = json.dumps([each.name, each.text, each.label])
        digest.update((with_name if named else f"{each.label} {len(each.text)} {each.text}").encode())
    return digest.hexdigest()


def leave_out_copies(documents: Sequence[Document]) -> tuple[list[Document], tuple[str, ...]]:
    """Return the first of each text that is not blank, and how many are left out: copies say nothing of other texts."""
    read = [document for document in documents if document.text.strip()] or documents
    found: dict[str, Document] = {}
    for document in read:
        found.setdefault(document.text, document)
    left_out = {"blank": len(documents) - len(read), "the same text stands there before": len(read) - len(found)}
    notices = (f"leaving out {n} of {len(documents)} texts: {why}" for why, n in left_out.items() if n)
    return list(found.values()), tuple(notices)
