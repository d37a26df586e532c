"""What a batch keeps from one job to the next: data sets and models, each loaded once. Elsewhere nothing is kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from attnviz.models.names import ModelName, resolve
from attnviz.specs.model import ModelOptions, PretrainedOptions
from attnviz.specs.text import TextOptions
from attnviz.text import open_corpus
from attnviz.text.document import Corpus

if TYPE_CHECKING:
    from attnviz.models.attender import Attender
    from attnviz.models.checkpoint import Checkpoint
    from attnviz.models.pretrained_attender import PretrainedAttender
    from attnviz.models.pretrained_files import Files

Thing = TypeVar("Thing")
MOST_KEPT = 16  # of each and every kind together: the one that was not used for longest goes first

_kept: ContextVar[OrderedDict[Hashable, Any] | None] = ContextVar("kept", default=None)


@contextmanager
def keeping() -> Iterator[None]:
    """Within, a file that changes on disk is not read again."""
    token = _kept.set(OrderedDict())
    try:
        yield
    finally:
        _kept.reset(token)


def corpus_of(spec: TextOptions) -> Corpus:
    """`open_corpus`, once for each source."""
    return _once(replace(spec, index=()), lambda: open_corpus(spec))


def checkpoint_of(folder: Path, max_memory: float = 4.0) -> Checkpoint:
    """`load_checkpoint`, once for each folder."""
    from attnviz.models.checkpoint import load_checkpoint

    return _once(("checkpoint", folder), lambda: load_checkpoint(folder, max_memory))


def files_of(name: ModelName, max_memory: float) -> Files:
    """`found`, once for each pretrained model: where it lies, and that its files are whole."""
    from attnviz.models.pretrained_files import found

    return _once(("files", str(name), max_memory), lambda: found(name, max_memory))


def pretrained_of(name: ModelName, spec: ModelOptions, asked: PretrainedOptions | None = None) -> PretrainedAttender:
    """A pretrained model of others, loaded once. What a wrong name or file is refused with comes before torch does."""
    files = files_of(name, spec.max_memory)
    from attnviz.models.device import pick
    from attnviz.models.pretrained import load_pretrained
    from attnviz.models.pretrained_attender import PretrainedAttender

    device = pick(spec.device)
    loaded = _once(
        ("pretrained", files.folder, str(device), spec.max_memory),
        lambda: load_pretrained(files, device, spec.max_memory),
    )
    return PretrainedAttender(files.called, loaded, device, spec, asked or PretrainedOptions())


def attender_of(spec: ModelOptions, corpus: Corpus) -> Attender:
    """`open_model`: a checkpoint is loaded once; a model to be made is made once for each data set."""
    from attnviz.models.device import pick
    from attnviz.models.opening import attending, called, open_model

    name = resolve(spec)
    if name.checkpoint is not None:
        return attending(checkpoint_of(name.checkpoint, spec.max_memory), called(name), spec, pick(spec.device))
    _, attender = _once(
        (spec, id(corpus)),  # kept beside the model, so that no other corpus can get this number
        lambda: (corpus, open_model(spec, (document.text for document in corpus.documents))),
    )
    return attender


def _once(key: Hashable, make: Callable[[], Thing]) -> Thing:
    kept = _kept.get()
    if kept is None:
        return make()
    if key not in kept:
        kept[key] = make()
        while len(kept) > MOST_KEPT:
            kept.popitem(last=False)
    kept.move_to_end(key)
    found: Thing = kept[key]
    return found
