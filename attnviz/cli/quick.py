"""Values that can be read at sight. typer reads every value with pydantic, whose import alone takes as long as typer's.

What cannot be read at sight, such as a wrong value, is left to typer, which then says what is wrong.
"""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin

WHOLE = re.compile(r"-?[0-9]{1,18}")
DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
UNPARSED = object()


class SimpleParam:
    """Stands where typer keeps its own way to read a parameter's value, which it makes when it is first needed."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read a value at sight where it can be, else as typer does."""
        read = parse_simple(value, param.type_descriptor.annotation, param.multiple or param.nargs == -1)
        if read is not UNPARSED:
            return read
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def patch_params(command: Any) -> Any:
    """The command of typer, with quick parameters, and so its subcommands. Where typer has no such place, as it was."""
    make_help = command.get_help_option
    command.get_help_option = lambda ctx: _quick(make_help(ctx))  # it comes later, and with the context
    for param in command.params:
        _quick(param)
    for subcommand in getattr(command, "commands", {}).values():
        patch_params(subcommand)
    return command


def _quick(param: Any) -> Any:
    if getattr(param, "_runtime_param", UNPARSED) is None:
        param._runtime_param = SimpleParam()
    return param


def parse_simple(value: Any, annotation: Any, several: bool = False) -> Any:
    """The value as `annotation`, or UNREAD. Of several, all; None where nothing was given, and of several nothing."""
    if several:
        if value is None:
            return ()
        if isinstance(value, str):
            return UNPARSED
        leaf = get_args(annotation)[0] if get_origin(annotation) is list else annotation
        read = [parse_simple(each, leaf) for each in value]
        return UNPARSED if UNPARSED in read else read
    if value is None:
        return None
    if get_origin(annotation) is Literal:
        return value if value in get_args(annotation) else UNPARSED
    if type(value) is annotation and annotation in (str, int, float, bool):
        return value
    if isinstance(value, str):
        if annotation is int and WHOLE.fullmatch(value):
            return int(value)
        if annotation is float and DECIMAL.fullmatch(value):
            return float(value)
    return UNPARSED
