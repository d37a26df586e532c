"""attnviz: from a text to an honest picture of attention. Importing this package imports nothing heavy."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnviz.commands.compare.python import compare
    from attnviz.commands.explain.python import explain
    from attnviz.models.attentions.attentions import from_attentions
    from attnviz.models.recording.record import record
    from attnviz.monitor.watch import watch
    from attnviz.python.api import attention, heatmap, measure, numbers, save, show
    from attnviz.records import AttentionMaps
    from attnviz.records.grid import Grid
    from attnviz.store import load

__version__ = "1.0.0"
__all__ = ["AttentionMaps", "Grid", "__version__", "attention", "compare", "explain", "from_attentions", "heatmap"]
__all__ += ["load", "measure", "numbers", "record", "save", "show", "watch"]
_MODULE_OF = dict.fromkeys(__all__, "attnviz.python.api") | {  # the module of each public name
    "AttentionMaps": "attnviz.records",
    "Grid": "attnviz.records.grid",
    "compare": "attnviz.commands.compare.python",
    "explain": "attnviz.commands.explain.python",
    "from_attentions": "attnviz.models.attentions.attentions",
    "load": "attnviz.store",
    "record": "attnviz.models.recording.record",
    "watch": "attnviz.monitor.watch",
}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        from attnviz import registry

        return registry.load(f"{_MODULE_OF[name]}:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
