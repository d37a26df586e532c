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
    exit_code = 2


class BadOption(InputError):
    pass


class BadSelection(InputError):
    pass


class BadSource(InputError):
    pass


class BadText(InputError):
    pass


class BadModel(InputError):
    pass


class BadDevice(InputError):
    pass


class BadRecord(InputError):
    pass


class BadConfig(InputError):
    """`lines` are the problems, each with its place; of very many the first, and how many more there are.

    A problem is anything whose str() is its line. Only those that are shown are asked for it.
    """

    def __init__(self, problems: Sequence[object]) -> None:
        more = len(problems) - MOST_PROBLEMS
        self.lines = (*map(str, problems[:MOST_PROBLEMS]), *([f"… and {more} more"] if more > 0 else []))
        super().__init__("\n".join(self.lines))


class TooLarge(InputError):
    pass


class WorkFailed(AttnvizError):
    exit_code = 1


class Differs(AttnvizError):
    exit_code = 3


class OutputFailed(AttnvizError):
    exit_code = 74
