"""Running a command: its line in the registry, its progress and its results; who does its work; how it draws.

Every command yields the same types, and the command line knows no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from attnviz.registry import Plugin

if TYPE_CHECKING:  # reports bring numpy, which what is refused at once does without
    from attnviz.report import Report
    from attnviz.store.manifest import TextNumbers


@dataclass(frozen=True)
class Command(Plugin):
    """A command in the registry: its help is the docstring and the options of `spec`, a dataclass."""

    spec: str = field(kw_only=True)
    inputs: str | None = field(default=None, kw_only=True)  # the function from its spec to Inputs; None: it reads none
    preloads: tuple[str, ...] = field(default=(), kw_only=True)  # modules that its worker processes import once
    rows: str = field(default="", kw_only=True)  # the file in which a batch keeps its rows; "": it keeps none
    # Files of its own kind that `diff` can compare: their name, and the function that does.
    compares: tuple[str, str] | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Progress:
    """How far work is: `done` of `total`, such as 3 of 8 "pictures"."""

    done: int
    total: int
    what: str  # what is counted, in the plural
    latest: str = ""  # the last one done, such as a file
    line: str = ""  # printed to standard output when one is done
    notices: tuple[str, ...] = ()
    log: tuple[str, ...] = ()  # notes on the way, such as of an epoch: shown, and kept in no manifest
    label: str = ""  # shown beside the bar, in a few words
    if_left: tuple[str, ...] = ()  # shown where work stops here and can be resumed; (): it is lost
    error: str = ""  # why this one failed; the others go on


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a command, or of one of its texts."""

    report: Report | None = None  # printed in the form asked for; None: nothing is
    files: tuple[Path, ...] = ()  # those written
    notices: tuple[str, ...] = ()  # shown before the report
    rows: Iterable[Sequence[Any]] = ()  # for CSV, header first; (): the report's tables
    numbers: tuple[TextNumbers, ...] = ()  # what a manifest keeps
    lines: tuple[str, ...] = ()  # printed to standard output: the report in a few words
    closing: tuple[str, ...] = ()  # shown last
    document: Report | None = None  # printed in place of `report` where a document is asked for
    failure: Exception | None = None  # raised when all is shown
    is_text: bool = False  # it is about one of several texts, which one document lists


Events: TypeAlias = Iterator[Progress | Result]
