"""What running a command means: how far it is, what came of it, who does its work, what commands share in drawing.

What a command gives is the same, whichever it is. The command line knows no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from attnviz.registry import Plugin

if TYPE_CHECKING:  # reports bring numpy, which what is refused at once does without
    from attnviz.report import CaseResult, Report, Row
    from attnviz.store.manifest import Numbers


@dataclass(frozen=True)
class Command(Plugin):
    """A registration line of a command: `spec` is what it is asked, whose docstring and options are its help."""

    spec: str = field(kw_only=True)
    inputs: str | None = field(default=None, kw_only=True)  # the function from its spec to Inputs, where it reads some
    preloads: tuple[str, ...] = field(default=(), kw_only=True)  # modules that its worker processes import once
    rows: str = field(default="", kw_only=True)  # the file in which a batch keeps its rows; "": it keeps none
    is_document: bool = field(default=False, kw_only=True)  # a batch also keeps its report for LaTeX and as JSON
    # Files of its own kind that `diff` can compare: their name, and the function that does.
    compares: tuple[str, str] | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Progress:
    """How far work is: `done` of `total`, such as 3 of 8 "pictures"."""

    done: int
    total: int
    what: str  # is counted, in the plural
    latest: str = ""  # what was done last, such as a file
    line: str = ""  # for standard output, where no bar is shown
    notices: tuple[str, ...] = ()
    log: tuple[str, ...] = ()  # how it went until here, for who watches: no manifest keeps it
    label: str = ""  # how it goes in a few words, beside a bar
    if_left: tuple[str, ...] = ()  # what to say where work is left here and can go on; (): it is lost
    error: str = ""  # why it failed; the others go on


@dataclass(frozen=True, eq=False)
class Result:
    """What came of a command, or of one of its texts."""

    report: Report | None = None  # to be printed as the user asks; None: nothing is
    files: tuple[Path, ...] = ()  # that were written
    notices: tuple[str, ...] = ()  # what the user has to know first
    rows: Iterable[Row] = ()  # the numbers as a spreadsheet has them, header first; (): the report's tables
    numbers: Numbers = field(default_factory=dict)  # what a manifest keeps
    layers: dict[str, list[int]] = field(default_factory=dict)  # by text, what they are of, if not simply 0, 1, 2 …
    heads: dict[str, list[int]] = field(default_factory=dict)
    lines: tuple[str, ...] = ()  # on standard output, in a few words, what the report says at length
    closing: tuple[str, ...] = ()  # what the user has to know last
    document: Report | None = None  # to be printed where a document is asked for; None: `report`
    cases: tuple[CaseResult, ...] = ()  # what was tried or compared, for servers that list it
    failure: Exception | None = None  # raised when all is shown
    is_text: bool = False  # it is about one of several texts, which one document lists


Events: TypeAlias = Iterator[Progress | Result]
