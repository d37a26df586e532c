"""Commands as functions of their spec, started as the command line starts them: inputs first, then the work."""

from collections.abc import Callable
from functools import partial
from typing import Any

from attnviz.commands import COMMANDS, start_command
from attnviz.options import build
from attnviz.registry import load
from attnviz.running import Command, Events


def __getattr__(name: str) -> Callable[..., Events]:
    """Return the command of that name: a wing that was taken out has none."""
    for command in COMMANDS:
        if command.name == name:
            return partial(start, command)
    raise AttributeError(name)


def start(command: Command, spec: Any = None, **settings: Any) -> Events:
    """Start a command by its spec, or by the settings of one."""
    return start_command(command, build(load(command.spec), **settings) if spec is None else spec)
