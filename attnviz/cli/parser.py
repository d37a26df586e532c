"""From words on a command line to a spec and its command. The only module that knows typer.

Values that can be read at sight are: typer reads every value with pydantic, whose import alone takes as long as
typer's. What cannot, such as a wrong value, is left to typer, which then says what is wrong.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING
from inspect import Parameter, Signature
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand
from typer.main import get_command

from attnviz import __version__
from attnviz.cli import show
from attnviz.cli.command import run_command
from attnviz.options import ARGUMENT, HELP_OPTIONS, FlatOption, Option, build, flat_options
from attnviz.registry import load
from attnviz.workflows import Command

COMPLETING = "_ATTNVIZ_COMPLETE"  # set by a shell that wants to know what may follow
WHOLE = re.compile(r"-?[0-9]{1,18}")
DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
UNPARSED = object()


def parse_and_run(arguments: Sequence[str], commands: Sequence[Command]) -> int:
    """Run the command that the arguments name. Gives its exit code.

    Raises what the command raises, and UsageError for words that are no command, no option or no value of one.
    """
    try:
        program = patch_params(get_command(_app(arguments, commands)))
        code = program.main(args=list(arguments) or ["--help"], prog_name="attnviz", standalone_mode=False)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except typer.TyperException as error:
        # typer hands on what pydantic says, with a prefix that is of no use to a user
        raise UsageError(error.format_message().replace(": Value error, ", ": ", 1), error.exit_code) from error
    return code if isinstance(code, int) else 0


class UsageError(Exception):
    """What typer says of a command line, and its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def command_from_spec(command: Command) -> Callable[..., None]:
    """A function that takes the options of a command's spec by name, as typer wants them."""
    spec = load(command.spec)

    def from_flags(**flags: Any) -> None:
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in flags.items()}
        run_command(command, build(spec, **given))

    parameters = [
        Parameter(
            option.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if option.default is MISSING else option.default,
            annotation=_annotation(option),
        )
        for option in flat_options(spec)
    ]
    from_flags.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    from_flags.__doc__ = spec.__doc__
    from_flags.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return from_flags


def completer(option: Option) -> Callable[[str], list[tuple[str, str]]] | None:
    """What a shell offers to complete a name of the option's table."""
    if option.table is None:
        return None

    def complete(incomplete: str) -> list[tuple[str, str]]:
        return [(name, help) for name, help in option.names() if name.startswith(incomplete)]

    return complete


def _annotation(each: FlatOption) -> Any:
    option = each.option
    shared: dict[str, Any] = {
        "help": option.command_line_help(),
        "metavar": option.metavar,
        "autocompletion": completer(option),
    }
    kind = list[str] if get_origin(each.type) is tuple else each.type
    if option.panel == ARGUMENT:
        return Annotated[kind, typer.Argument(**shared)]
    return Annotated[kind, typer.Option(*([option.short] if option.short else []), option.flags or each.flag, **shared)]


def _app(arguments: Sequence[str], commands: Sequence[Command]) -> typer.Typer:
    """The program, with the one command that is called: to build all of them takes longer than to run most."""
    app = typer.Typer(
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # its boxes take longer than all the rest
        context_settings={"help_option_names": list(HELP_OPTIONS)},
    )
    called = next((word for word in arguments if not word.startswith("-")), None)
    for command in commands:
        if command.name == called or COMPLETING in os.environ:
            app.command(command.name, cls=_with_help(command))(command_from_spec(command))
        else:
            app.command(command.name, help=command.help)(_not_called)
    app.callback()(_options)
    return app


def _with_help(command: Command) -> type[TyperCommand]:
    """The class of a command whose help is ours, also between other words."""

    class Helped(TyperCommand):
        def get_help(self, ctx: Any) -> str:
            from attnviz.cli.help import command_help

            return command_help(command.name, load(command.spec))

    return Helped


def _not_called() -> None:
    """Stands in the list of commands for one that is not called."""
    raise AssertionError("a command was called that is not the first word")


def _print_version(wanted: bool) -> None:
    if wanted:
        show.line(f"attnviz {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """See and measure attention: from a text to a picture of who attends to what."""


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
    """The value as `annotation`, or UNPARSED. Of several, all; None where nothing was given, and of several nothing."""
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
