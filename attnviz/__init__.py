"""attnviz: from a text to an honest picture of attention. Importing this package imports nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnviz.commands.compare.python import compare as compare
    from attnviz.commands.explain.python import explain as explain
    from attnviz.models.attentions.attentions import from_attentions as from_attentions
    from attnviz.models.recording.record import record as record
    from attnviz.monitor.watch import watch as watch
    from attnviz.python.api import attention as attention
    from attnviz.python.api import heatmap as heatmap
    from attnviz.python.api import measure as measure
    from attnviz.python.api import numbers as numbers
    from attnviz.python.api import save as save
    from attnviz.python.api import show as show
    from attnviz.records import AttentionMaps as AttentionMaps
    from attnviz.records.grid import Grid as Grid
    from attnviz.store import load as load

__version__ = "1.0.0"
_MODULE_OF = {  # the module of each public name
    "AttentionMaps": "attnviz.records",
    "Grid": "attnviz.records.grid",
    "attention": "attnviz.python.api",
    "compare": "attnviz.commands.compare.python",
    "explain": "attnviz.commands.explain.python",
    "from_attentions": "attnviz.models.attentions.attentions",
    "numbers": "attnviz.python.api",
    "heatmap": "attnviz.python.api",
    "load": "attnviz.store",
    "measure": "attnviz.python.api",
    "record": "attnviz.models.recording.record",
    "save": "attnviz.python.api",
    "show": "attnviz.python.api",
    "watch": "attnviz.monitor.watch",
}
__all__ = ["__version__", *_MODULE_OF]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        from attnviz import registry

        return registry.load(f"{_MODULE_OF[name]}:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
