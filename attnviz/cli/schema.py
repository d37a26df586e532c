"""`attnviz schema`."""

from __future__ import annotations

import re
from typing import Any

from attnviz.cli import show

FLAG = re.compile(r"--([a-z-]+)")
ON_A_COMMAND_LINE = re.compile(r"; (?:- is stdin|repeat(?: for several)?)\b")


def schema() -> None:
    """Print what a config of `attnviz batch` may say, as a JSON Schema for editors.

    Example: attnviz schema > batch.schema.json
    """
    import json

    from attnviz.configs.schema import json_schema

    show.line(json.dumps(json_schema(_helps()), indent=1))


def _helps() -> dict[str, dict[str, str]]:
    """Of every setting of every command what its option says, without what holds for flags only."""
    from attnviz.cli.app import COMMANDS
    from attnviz.jobs import JOBS
    from attnviz.registry import load

    signatures: dict[str, dict[str, Any]] = {
        command.name: load(command).__annotations__ for command in COMMANDS if command.name in JOBS
    }
    return {
        command: {name: _for_configs(option.__metadata__[0].help) for name, option in options.items()}
        for command, options in signatures.items()
    }


def _for_configs(help: str) -> str:
    return FLAG.sub(lambda flag: flag[1].replace("-", "_"), ON_A_COMMAND_LINE.sub("", help))
