"""How a command starts: what it reads is checked first, and only then is the code that works on it imported."""

from __future__ import annotations

from typing import Any

from attnviz.inputs import Inputs
from attnviz.registry import load
from attnviz.running import Command, Events
from attnviz.running.local_executor import process_context


def start_command(command: Command, spec: Any) -> Events:
    """Check what the command is asked, import it and call it: the one place where commands are imported.

    torch and matplotlib take seconds to import, so a module of inputs does without them, and what is refused is refused
    at once. Raises what the command raises.
    """
    given: list[Any] = [spec]
    if command.inputs is not None:
        inputs: Inputs = load(command.inputs)(spec)
        if inputs.n_workers > 1:  # what workers are forked from imports while this process does
            process_context(command.preloads)
        given.append(inputs)
    events: Events = load(command)(*given)
    return events
