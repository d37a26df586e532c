"""Everything that a user can meet as an error, and the exit code of each.

    AttnvizError
    ├── InputError            2   what was asked for cannot be
    │   ├── InvalidOption             a value that the option does not take
    │   │   └── NotMeasurable             a measure of what this text does not have
    │   ├── InvalidSelection          a layer, head or index that is not there
    │   ├── InvalidSource             a data set, split or file that cannot be read as asked
    │   ├── InvalidText               a text without tokens
    │   ├── InvalidModel              a model name or checkpoint that cannot be used
    │   ├── InvalidDevice             a device that this machine does not have
    │   ├── InvalidRecord             weights that are not attention, or a file that is not a record
    │   ├── InvalidConfig             a config or a manifest that says what cannot be; all its problems, one a line
    │   └── TooLarge              more memory than allowed, found out before it is allocated
    ├── ExecutionError            1   the work itself failed
    ├── DifferencesFound               3   a comparison found differences
    └── OutputError         74   the disk or the pipe failed

Anything else that escapes is a bug of ours (70). Exit codes are applied in `attnviz.cli.app`, nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

MAX_PROBLEMS = 20  # of configs that are told at once


class AttnvizError(Exception):
    """A problem and the next move, one line together."""

    exit_code = 1

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(problem, hint)
        self.problem = problem
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.problem}. {self.hint}" if self.hint else self.problem

    def __reduce__(self) -> tuple[Any, ...]:
        """How it comes from one process to another: pickle would give the hint without its name."""
        return partial(type(self), hint=self.hint), (self.problem,)


class InputError(AttnvizError):
    """What was given cannot be used: a user can mend it. Exit code 2."""

    exit_code = 2


class InvalidOption(InputError):
    """An option, or options together, that cannot be."""


class NotMeasurable(InvalidOption):
    """A measure of what this text does not have, such as brackets; other texts may."""


class InvalidSelection(InputError):
    """A layer, head, text or token that is not there."""


class InvalidSource(InputError):
    """Texts that cannot be found or read."""


class InvalidText(InputError):
    """A text that cannot be attended to, such as one without tokens."""


class InvalidModel(InputError):
    """A model or checkpoint that cannot be found, read or used so."""


class InvalidDevice(InputError):
    """A device that is not there."""


class InvalidRecord(InputError):
    """A file that is no record, or one that contradicts itself."""


class InvalidConfig(InputError):
    """`lines` are the problems, each with its place; of very many the first, and how many more there are.

    A problem is anything whose str() is its line. Only those that are shown are asked for it.
    """

    def __init__(self, problems: Sequence[object]) -> None:
        more = len(problems) - MAX_PROBLEMS
        self.lines = (*map(str, problems[:MAX_PROBLEMS]), *([f"… and {more} more"] if more > 0 else []))
        super().__init__("\n".join(self.lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.lines,)


class TooLarge(InputError):
    """More memory, text or pictures than allowed; told before any of it is taken."""


class ExecutionError(AttnvizError):
    """The work could not be done, though all that was asked was right. Exit code 1."""

    exit_code = 1


class DifferencesFound(AttnvizError):
    """A comparison found differences. Exit code 3."""

    exit_code = 3


class OutputError(AttnvizError):
    """The disk or a pipe refused what was written. Exit code 74."""

    exit_code = 74
