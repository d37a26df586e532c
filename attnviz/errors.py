"""The errors that a user can meet, and the exit code of each.

    AttnvizError
    ├── InputError            2   the input or an option is invalid
    │   ├── InvalidOption             a value that the option does not accept
    │   │   └── NotMeasurable             a measure that needs what this text does not have
    │   ├── InvalidSelection          a layer, head or index that is not there
    │   ├── InvalidSource             a data set, split or file that cannot be read as asked
    │   ├── InvalidText               a text without tokens
    │   ├── InvalidModel              a model name or checkpoint that cannot be used
    │   ├── InvalidDevice             a device that this machine does not have
    │   ├── InvalidRecord             weights that are not attention, or a file that is not a record
    │   ├── InvalidConfig             an invalid config or manifest; all its problems, one a line
    │   └── TooLarge              more memory than allowed, refused before it is allocated
    ├── ExecutionError            1   the work itself failed
    ├── DifferencesFound               3   a comparison found differences
    └── OutputError         74   the disk or the pipe failed

Any other exception is a bug of attnviz (70). Exit codes are applied in `attnviz.cli.app`, nowhere else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

MAX_PROBLEMS = 20  # of one config that are shown at once
Kinds: TypeAlias = tuple[type[Exception], ...]
Say: TypeAlias = Callable[[Exception], str]
MALFORMED: Kinds = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # what is read is not of its form


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
        """Pickle with the hint by its name, which the default would pass by position."""
        return partial(type(self), hint=self.hint), (self.problem,)


class InputError(AttnvizError):
    """An input that cannot be used, which the user can correct. Exit code 2."""

    exit_code = 2


class InvalidOption(InputError):
    """An invalid option, or options that exclude each other."""


class NotMeasurable(InvalidOption):
    """A measure that needs what this text does not have, such as brackets."""


class InvalidSelection(InputError):
    """A layer, head, text or token that does not exist."""


class InvalidSource(InputError):
    """Texts that cannot be found or read."""


class InvalidText(InputError):
    """A text that a model cannot attend over, such as one without tokens."""


class InvalidModel(InputError):
    """A model or checkpoint that cannot be found, read or used as asked."""


class InvalidDevice(InputError):
    """A device that this machine does not have."""


class InvalidRecord(InputError):
    """A file that is not a record, or one that contradicts itself."""


class InvalidConfig(InputError):
    """A config with problems: `lines` are the first of them with their places, and how many more there are.

    A problem is anything whose str() is its line; str() is called only on those that are shown.
    """

    def __init__(self, problems: Sequence[object]) -> None:
        more = len(problems) - MAX_PROBLEMS
        self.lines = (*map(str, problems[:MAX_PROBLEMS]), *([f"… and {more} more"] if more > 0 else []))
        super().__init__("\n".join(self.lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.lines,)


class TooLarge(InputError):
    """More memory, text or pictures than allowed; raised before any memory is allocated."""


class ExecutionError(AttnvizError):
    """Valid work that failed while it ran. Exit code 1."""

    exit_code = 1


class DifferencesFound(AttnvizError):
    """A comparison found differences. Exit code 3."""

    exit_code = 3


class OutputError(AttnvizError):
    """The disk or a pipe refused what was written. Exit code 74."""

    exit_code = 74


def refuse_several(options: Mapping[str, object]) -> None:
    """Raise InvalidOption where two of these options or more, by what users write, are given."""
    given = [name for name, value in options.items() if value is not None and value is not False]
    if len(given) > 1:
        raise InvalidOption(f"{given[0]} and {given[1]} exclude each other", hint="Leave one of them out.")


def describe_error(error: Exception) -> str:
    """Return what an error of a library says, on one line, or its kind where it says nothing."""
    return summarize(error, 200) or type(error).__name__


def summarize(error: Exception, most: int | None = 160) -> str:
    """Return what an error says on one line, of so many characters."""
    return " ".join(str(error).split())[:most]


@contextmanager
def raising(
    kind: type[AttnvizError], problem: str, hint: str = "", told: Kinds = MALFORMED, say: Say = summarize
) -> Iterator[None]:
    """Raise an error of ours in the place of others in the block. What those say follows a problem that ends in ":"."""
    try:
        yield
    except told as error:
        raise kind(f"{problem} {say(error)}" if problem.endswith(":") else problem, hint=hint) from error
