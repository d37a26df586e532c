"""Commands as functions of their spec, started as the command line starts them: inputs first, then the work."""

from collections.abc import Callable
from functools import partial
from typing import Any

from attnviz.commands import COMMANDS, start_command
from attnviz.running import Events


def __getattr__(name: str) -> Callable[[Any], Events]:
    """Return the command of that name: a wing that was taken out has none."""
    for command in COMMANDS:
        if command.name == name:
            return partial(start_command, command)
    raise AttributeError(name)
