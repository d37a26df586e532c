"""attnviz: from a text to an honest picture of attention. Importing this package imports nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnviz.store import load as load

__version__ = "0.1.0"
__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    if name == "load":
        from attnviz.store import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
