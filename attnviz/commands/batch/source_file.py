"""What a file says and where, and what is wrong with it. Knows neither YAML nor what a config means."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from attnviz.option_values import MAX_SHOWN_LENGTH, shorten

PLAIN_NAME = re.compile(r"\w[\w-]*", re.ASCII)

Steps = tuple[str | int, ...]  # the way to a value: ("jobs", 2, "heatmap", "heads")


@dataclass(frozen=True, order=True)
class Position:
    """Where something is written, counted from 1."""

    line: int
    column: int


START = Position(1, 1)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: "figures.yaml:12:5: jobs[2].heatmap.heads: write a whole number, not 'many'"."""

    file: str
    place: Position | None  # None: the whole file
    steps: Steps
    text: str | Callable[[], str]  # a function where the sentence takes a search: of 100,000 problems 20 are told

    def __str__(self) -> str:
        whole = f"{format_path(self.steps)}: " if self.steps else ""
        text = self.text if isinstance(self.text, str) else self.text()
        where = f"{self.file}:{self.place.line}:{self.place.column}" if self.place else self.file
        return f"{where}: {whole}{text}"


@dataclass
class SourceFile:
    """What a file says. `data` holds dict, list, str, int, float, bool and None only, None also where it is spoilt.

    `complete` is False where reading had to stop; then only `problems` count.
    """

    file: str
    sha256: str = ""
    data: Any = None
    complete: bool = False
    problems: list[Problem] = field(default_factory=list)
    values: dict[Steps, Position] = field(default_factory=dict)
    keys: dict[Steps, Position] = field(default_factory=dict)
    spoilt: set[Steps] = field(default_factory=set)  # a problem is told already

    def place(self, steps: Steps, *, of_key: bool = False) -> Position:
        """Where the value, or its key, is written; of what is not written, the nearest thing around it."""
        if of_key and steps in self.keys:
            return self.keys[steps]
        while steps and steps not in self.values:
            steps = steps[:-1]
        return self.values.get(steps, START)

    def report(self, steps: Steps, text: str | Callable[[], str], *, at_key: bool = False) -> None:
        """Keep a problem at one place of the file."""
        self.problems.append(Problem(self.file, self.place(steps, of_key=at_key), steps, text))

    def tell_of_file(self, text: str) -> None:
        """Keep a problem that is of the file as a whole."""
        self.problems.append(Problem(self.file, None, (), text))


def format_path(steps: Sequence[str | int]) -> str:
    """jobs[2].heatmap.heads"""
    written = ""
    for step in steps:
        if isinstance(step, int):
            written += f"[{step}]"
        elif PLAIN_NAME.fullmatch(step) and len(step) <= MAX_SHOWN_LENGTH:
            written += f".{step}" if written else step
        else:
            written += f"[{shorten(step)}]"
    return written
