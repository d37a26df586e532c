"""How an option is written: its names, its help and the panel of the help that it stands in. Knows no option itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer

from attnviz.registry import Plugin


def flag(*names: str, panel: str, help: str, **more: Any) -> Any:
    """An option by its names; what it is unless given stands in its help."""
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=more.pop("show_default", True), **more)


def names_of(table: Sequence[Plugin]) -> str:
    return ", ".join(plugin.name for plugin in table)


def completing(table: Sequence[Plugin]) -> Callable[[str], list[tuple[str, str]]]:
    """What a shell offers to complete a name of the table."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        return [(plugin.name, plugin.help) for plugin in table if plugin.name.startswith(incomplete)]

    return complete
