"""Everything that a user can meet as an error, and the exit code of each.

    AttnvizError
    ├── InputError            2   what was asked for cannot be
    │   ├── BadOption             a value that the option does not take
    │   ├── BadSelection          a layer, head or index that is not there
    │   ├── BadSource             a data set, split or file that cannot be read as asked
    │   ├── BadText               a text without tokens
    │   ├── BadModel              a model name or checkpoint that cannot be used
    │   ├── BadDevice             a device that this machine does not have
    │   ├── BadRecord             weights that are not attention, or a file that is not a record
    │   ├── BadConfig             a config or a manifest that says what cannot be; all its problems, one a line
    │   └── TooLarge              more memory than allowed, found out before it is allocated
    ├── WorkFailed            1   the work itself failed
    ├── Differs               3   a check against a baseline, or a threshold, found differences
    └── OutputFailed         74   the disk or the pipe failed

Anything else that escapes is a bug of ours (70). Exit codes are applied in `attnviz.cli.app`, nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST_PROBLEMS = 20  # of configs that are told at once


class AttnvizError(Exception):
    """A problem and the next move, one line together."""

    exit_code = 1

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(problem, hint)
        self.problem = problem
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.problem}. {self.hint}" if self.hint else self.problem


class InputError(AttnvizError):
    """What was given cannot be used: a user can mend it. Exit code 2."""

    exit_code = 2


class BadOption(InputError):
    """An option, or options together, that cannot be."""


class BadSelection(InputError):
    """A layer, head, text or token that is not there."""


class BadSource(InputError):
    """Texts that cannot be found or read."""


class BadText(InputError):
    """A text that cannot be attended to, such as one without tokens."""


class BadModel(InputError):
    """A model or checkpoint that cannot be found, read or used so."""


class BadDevice(InputError):
    """A device that is not there."""


class BadRecord(InputError):
    """A file that is no record, or one that contradicts itself."""


class BadConfig(InputError):
    """`lines` are the problems, each with its place; of very many the first, and how many more there are.

    A problem is anything whose str() is its line. Only those that are shown are asked for it.
    """

    def __init__(self, problems: Sequence[object]) -> None:
        more = len(problems) - MOST_PROBLEMS
        self.lines = (*map(str, problems[:MOST_PROBLEMS]), *([f"… and {more} more"] if more > 0 else []))
        super().__init__("\n".join(self.lines))


class TooLarge(InputError):
    """More memory, text or pictures than allowed; told before any of it is taken."""


class WorkFailed(AttnvizError):
    """The work could not be done, though all that was asked was right. Exit code 1."""

    exit_code = 1


class Differs(AttnvizError):
    """A comparison found differences. Exit code 3."""

    exit_code = 3


class OutputFailed(AttnvizError):
    """The disk or a pipe refused what was written. Exit code 74."""

    exit_code = 74
