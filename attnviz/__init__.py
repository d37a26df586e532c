"""attnviz: from a text to an honest picture of attention. Importing this package imports nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnviz.models.recording.record import record as record
    from attnviz.store import load as load
    from attnviz.store import save as save

__version__ = "0.1.0"
__all__ = ["__version__", "load", "record", "save"]


def __getattr__(name: str) -> Any:
    if name in ("load", "save"):
        from attnviz import store

        return getattr(store, name)
    if name == "record":
        from attnviz.models.recording.record import record

        return record
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
