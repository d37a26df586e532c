"""What a batch keeps from one job to the next: data sets and models, each loaded once. Elsewhere nothing is kept."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Thing = TypeVar("Thing")
MAX_CACHED = 16  # of each and every kind together: the one that was not used for longest goes first

_cache: ContextVar[OrderedDict[Hashable, Any] | None] = ContextVar("cache", default=None)


@contextmanager
def caching() -> Iterator[None]:
    """Cache what is read: within, a file that changes on disk is not read again."""
    token = _cache.set(OrderedDict())
    try:
        yield
    finally:
        _cache.reset(token)


def remember(key: Hashable, make: Callable[[], Thing]) -> Thing:
    """Return what `make` gives, made once for each key within `caching`."""
    cache = _cache.get()
    if cache is None:
        return make()
    if key not in cache:
        cache[key] = make()
        while len(cache) > MAX_CACHED:
            cache.popitem(last=False)
    cache.move_to_end(key)
    found: Thing = cache[key]
    return found
