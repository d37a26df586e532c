"""`attnviz render`."""

from __future__ import annotations

from attnviz.cli import progress, show
from attnviz.specs.render import RenderSpec


def render(spec: RenderSpec) -> None:
    """Draw a saved record again, without the model.

    Example: attnviz render attention/attention.safetensors --format svg,pdf --scale shared
    """
    from attnviz.workflows.render import render as draw

    with progress.followed() as follow:
        show.drawn([draw(spec, follow)], spec.figure)
