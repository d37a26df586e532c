"""The model of a process that is given one piece of work after the other: read once."""

from functools import lru_cache

from attnviz.models.loading import ModelReference
from attnviz.models.protocols import AttentionModel


@lru_cache(maxsize=1)
def open_model(reference: ModelReference, vocabulary: tuple[str, ...] = ()) -> AttentionModel:
    """Open a model, which a process reads once, and what it computes with."""
    # Torch comes with it, and is imported by workers alone.
    from attnviz.models.device import keep_freed_memory, use_one_thread

    use_one_thread()  # with more of them, and on a cluster nobody knows how many, sums have other bits
    keep_freed_memory()  # sizes of blocks recur
    open_model.cache_clear()  # first: two models may have no room
    return reference.open(vocabulary)
