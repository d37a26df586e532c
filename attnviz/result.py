"""What a command gives, whichever it is: how far it is, and what came of it. The command line knows no other event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # reports bring numpy, which what is refused at once does without
    from attnviz.manifest import Numbers
    from attnviz.report import CaseResult, Report, Row


@dataclass(frozen=True)
class Progress:
    """How far work is: `done` of `total`, such as 3 of 8 "pictures"."""

    done: int
    total: int
    what: str  # is counted, in the plural
    latest: str = ""  # what was done last, such as a file
    line: str = ""  # for standard output, where no bar is shown
    notices: tuple[str, ...] = ()
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
    ci_report: Report | None = None  # for who reads of it on a server; None: `report`
    cases: tuple[CaseResult, ...] = ()  # what was checked, for servers that list it
    failure: Exception | None = None  # raised when all is shown
    is_text: bool = False  # it is about one of several texts, which one document lists


Events: TypeAlias = Iterator[Progress | Result]
