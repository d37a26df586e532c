"""attnviz: from a text to an honest picture of attention. Importing this package imports nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnviz.grid import Grid as Grid
    from attnviz.models.recording.attentions import from_attentions as from_attentions
    from attnviz.models.recording.record import record as record
    from attnviz.records import AttentionMaps as AttentionMaps
    from attnviz.store import load as load
    from attnviz.store import save as save
    from attnviz.workflows.python import attention as attention
    from attnviz.workflows.python import compare as compare
    from attnviz.workflows.python import heatmap as heatmap
    from attnviz.workflows.python import measure as measure
    from attnviz.workflows.python import show as show

__version__ = "0.1.0"
_WHERE = {  # the module of each public name
    "AttentionMaps": "attnviz.records",
    "Grid": "attnviz.grid",
    "attention": "attnviz.workflows.python",
    "compare": "attnviz.workflows.python",
    "from_attentions": "attnviz.models.recording.attentions",
    "heatmap": "attnviz.workflows.python",
    "load": "attnviz.store",
    "measure": "attnviz.workflows.python",
    "record": "attnviz.models.recording.record",
    "save": "attnviz.store",
    "show": "attnviz.workflows.python",
}
__all__ = ["__version__", *_WHERE]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        from attnviz import registry

        return registry.load(f"{_WHERE[name]}:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
