"""`attnviz compare`."""

from __future__ import annotations

from attnviz.cli import show_comparison
from attnviz.specs.compare import CompareSpec


def compare(spec: CompareSpec) -> None:
    """Measure and draw what models attend to in the same texts: single against multi head, or any others.

    Example: attnviz compare single multi --text "not a good film, but the acting saves it"
    """
    from attnviz.workflows.compare import compare as run

    show_comparison.compared(run(spec), spec)
