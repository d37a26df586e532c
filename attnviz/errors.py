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
    │   └── TooLarge              more memory than allowed, found out before it is allocated
    ├── WorkFailed            1   the work itself failed
    └── OutputFailed         74   the disk or the pipe failed

Anything else that escapes is a bug of ours (70). Exit codes are applied in `attnviz.cli.app`, nowhere else.
"""

from __future__ import annotations


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


class TooLarge(InputError):
    pass


class WorkFailed(AttnvizError):
    exit_code = 1


class OutputFailed(AttnvizError):
    exit_code = 74
