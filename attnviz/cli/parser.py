"""From words on a command line to a spec and its command. The only module that knows typer.

typer cuts the line into options and their words, which `attnviz.options` reads. typer would read them with
pydantic, whose import alone takes as long as typer's.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING
from inspect import Parameter, Signature
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperCommand
from typer.main import get_command

from attnviz import __version__, options
from attnviz.cli import show
from attnviz.cli.command import run_command
from attnviz.cli.help import write_command_help
from attnviz.cli.sentence import TRY
from attnviz.errors import InvalidOption, raising
from attnviz.registry import load
from attnviz.running import Command
from attnviz.words import find_language

COMPLETE_VARIABLE = "_ATTNVIZ_COMPLETE"  # set by a shell that wants to know what may follow
WHOLE_NUMBER = re.compile(r"[-+]?[0-9]{1,18}")
DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
HELP_NAMES = ("help", "help_all")  # which of its flags names the option is left to chance
# Else typer reads a None.
NO_TYPER_DEFAULTS = dict.fromkeys((*HELP_NAMES, "install_completion", "show_completion"), False)


def parse_and_run(arguments: Sequence[str], commands: Sequence[Command]) -> int:
    """Run the command that the arguments name. Gives its exit code.

    Raises what the command raises, and InvalidOption for a value that an option does not take and for words that are
    no command and no option.
    """
    if not arguments and COMPLETE_VARIABLE not in os.environ:
        show.line(TRY)
        return 0
    try:
        program = get_command(_make_app(arguments, commands))
        code = program.main(args=list(arguments), prog_name="attnviz", standalone_mode=False)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except typer.TyperException as error:
        raise InvalidOption(error.format_message()) from error
    return code if isinstance(code, int) else 0


def make_function(command: Command) -> Callable[..., None]:
    """Make a function that takes the words of a command's options by name, None of those that are not there."""
    spec = load(command.spec)
    listed = options.list_options(spec)

    def from_words(**words: Any) -> None:
        given = {}
        if "lang" in words:
            words["lang"] = words["lang"] or find_language(os.environ)
        for each in listed:
            if words[each.name] is not None:
                given[each.name] = parse_option(each, words[each.name])
            elif each.default is MISSING:
                is_argument = each.option.panel == options.ARGUMENT
                name = f"argument {each.option.metavar}" if is_argument else f"option {each.flag}"
                raise InvalidOption(f"Missing {name}", hint=f"Such as: {options.find_example(spec)}")
        run_command(command, options.build(spec, **given))

    parameters = [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=None, annotation=_annotate(each)) for each in listed
    ]
    from_words.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    from_words.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return from_words


def parse_option(each: options.FlatOption, words: str | Sequence[str] | bool) -> Any:
    """Parse the words of an option into its value. Raises InvalidOption."""
    kinds = (each.type, *get_args(each.type))
    read: Any = words
    if isinstance(words, str) and int in kinds and WHOLE_NUMBER.fullmatch(words):
        read = int(words)
    if isinstance(words, str) and float in kinds and DECIMAL.fullmatch(words):
        read = float(words)
    with raising(InvalidOption, f"{each.flag}:", told=(options.InvalidValue,)):
        return options.check_option(each, read)


def _annotate(each: options.FlatOption) -> Any:
    option = each.option
    shared: dict[str, Any] = {
        "help": option.write_command_line_help(),
        "metavar": option.metavar,
        "autocompletion": each.complete if each.complete("") else None,
    }
    kind: Any = bool if bool in (each.type, *get_args(each.type)) else str
    if get_origin(each.type) is tuple:
        kind = list[str]
    if option.panel == options.ARGUMENT:
        return Annotated[kind, typer.Argument(**shared)]
    return Annotated[kind, typer.Option(*([option.short] if option.short else []), option.flags or each.flag, **shared)]


def _make_app(arguments: Sequence[str], commands: Sequence[Command]) -> typer.Typer:
    """Build the program, with the one command that is called: to build all of them takes longer than to run most."""
    called = next((word for word in arguments if not word.startswith("-")), None)
    app = typer.Typer(
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # its boxes take longer than all the rest
        context_settings={"help_option_names": list(options.HELP_OPTIONS), "default_map": NO_TYPER_DEFAULTS},
    )
    helps = {"help_option_names": [*options.HELP_OPTIONS, options.HELP_ALL]}
    for command in commands:
        if command.name == called or COMPLETE_VARIABLE in os.environ:
            words = _make_command_class(command)
            app.command(command.name, help=command.help, cls=words, context_settings=helps)(make_function(command))
        else:
            app.command(command.name, help=command.help)(lambda: None)  # for the list of commands: it is not called
    app.callback()(_accept_program_options)
    return app


def _make_command_class(command: Command) -> type[TyperCommand]:
    """Build the class of a command whose help is ours, also between other words, whose words typer does not read."""

    class Words(TyperCommand):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            words, surplus, order = self.make_parser(ctx).parse_args(list(args))
            wants_help = any(words.pop(name, False) for name in HELP_NAMES)
            if not ctx.resilient_parsing:  # else a shell completes
                if wants_help:
                    show.line(write_command_help(command.name, load(command.spec), is_full=options.HELP_ALL in args))
                    ctx.exit()
                for each in order:
                    if order.count(each) > 1 and not each.multiple:
                        ctx.fail(f"{each.opts[-1]} is given {order.count(each)} times, and takes one value")
                if surplus:
                    example = options.find_example(load(command.spec))
                    if load("attnviz.text.files:is_image")(surplus[0]):
                        ctx.fail(f"unexpected: {' '.join(surplus)}. Of several images each follows --text-file")
                    ctx.fail(f"unexpected: {' '.join(surplus)}. A text stands in quotes. Such as: {example}")
            ctx.params = {name: value for name, value in words.items() if value is not None and value != ()}
            return []

    return Words


def _print_version(wanted: bool) -> None:
    if wanted:
        show.line(f"attnviz {__version__}")
        raise typer.Exit


def _accept_program_options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """See and measure attention: from a text to a picture of who attends to what."""
