"""The help of a command, written from its spec. Knows no typer: to import that takes longer than all of this."""

import shutil
from collections.abc import Iterator
from dataclasses import MISSING
from textwrap import wrap
from typing import Any, Literal, get_args, get_origin

from attnviz.options import ARGUMENT, HELP_ALL, HELP_OPTIONS, PANELS, FlatOption, list_options

MAX_WIDTH, MAX_LEFT_WIDTH, MIN_RIGHT_WIDTH = 80, 30, 20  # columns: of the page, of what one writes, of what it does
MAX_OPTIONS = 20  # of a help that shows all
TYPE_WORDS = {int: "N", float: "NUMBER", str: "TEXT"}


def write_command_help(name: str, spec: type[Any], *, is_full: bool = False) -> str:
    """Write what `attnviz NAME --help` shows: usage, the spec's docstring, and a list of options for each panel.

    Where a command has many, those that are common and must be given; with `is_full`, as for --help-all, all of them.
    """
    options = list_options(spec)
    is_full |= len(options) <= MAX_OPTIONS
    panels: dict[str, list[tuple[str, str]]] = {}
    for option in sorted(options, key=lambda option: PANELS.index(option.option.panel)):
        if is_full or option.option.is_common or option.option.panel == ARGUMENT:
            panels.setdefault(option.option.panel, []).append((_write_option(option), _describe_option(option)))
    panels["Options"] = [(", ".join(HELP_OPTIONS), "Show this message and exit.")]
    if not is_full:
        panels["Options"].append((HELP_ALL, f"Show all {len(options)} options."))
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    places = [_write_placeholder(option) for option in options if option.option.panel == ARGUMENT]
    lines = [" ".join(["Usage: attnviz", name, "[OPTIONS]", *places])]
    for paragraph in (spec.__doc__ or "").split("\n\n"):
        lines += ["", *wrap(" ".join(paragraph.split()), width, initial_indent="  ", subsequent_indent="  ")]
    for panel, rows in panels.items():
        lines += ["", f"{panel}:", *_lay_out_columns(rows, width)]
    return "\n".join(lines)


def _lay_out_columns(rows: list[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield lines of two columns; what is too long for the first stands alone on its line."""
    indent = 4 + min(max(len(left) for left, _ in rows), MAX_LEFT_WIDTH)
    for left, right in rows:
        lines = wrap(right, max(width - indent, MIN_RIGHT_WIDTH), break_on_hyphens=False) or [""]
        if len(left) + 4 > indent:
            yield f"  {left}"
        else:
            yield f"  {left}".ljust(indent) + lines.pop(0)
        yield from (" " * indent + line for line in lines)


def _write_placeholder(option: FlatOption) -> str:
    if option.default is None:
        return f"[{option.option.metavar}]"
    return f"{{{option.option.metavar}}}" + "..." * (get_origin(option.type) is tuple)


def _write_option(option: FlatOption) -> str:
    """Write an option: its flag, and what stands behind it."""
    if option.option.panel == ARGUMENT:
        return str(option.option.metavar)
    flag = (option.option.flags or option.flag).replace("/", " / ")
    if option.option.short:
        flag = f"{option.option.short}, {flag}"
    value = option.option.metavar or _describe_kind(option.type)
    return f"{flag} {value}" if value else flag


def _describe_kind(annotation: Any) -> str:
    """Write what a value may be: "N", "pre|post"; nothing where there is no value."""
    if annotation is bool:
        return ""
    if get_origin(annotation) is Literal:
        return "|".join(get_args(annotation))
    inner = [each for each in get_args(annotation) if each not in (type(None), ...)]
    return _describe_kind(inner[0]) if inner else TYPE_WORDS[annotation]


def _describe_option(option: FlatOption) -> str:
    text, default = option.option.write_command_line_help(), option.default
    if default is MISSING:
        return f"{text}  [required]"
    if default in (None, ()) or default is False:
        return text
    if default is True:
        default = option.name
    return f"{text}  [default: {', '.join(default) if isinstance(default, tuple) else default}]"
