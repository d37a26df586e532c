"""`attnviz schema`."""

from __future__ import annotations

from attnviz.cli import show


def schema() -> None:
    """Print what a config of `attnviz batch` may say, as a JSON Schema for editors.

    Example: attnviz schema > batch.schema.json
    """
    import json

    from attnviz.configs.schema import json_schema

    show.line(json.dumps(json_schema(), indent=1))
