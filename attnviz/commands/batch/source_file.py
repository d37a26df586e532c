"""What a file says and where, and what is wrong with it. Knows neither YAML nor what a config means."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from attnviz.option_values import shorten

PLAIN_NAME = re.compile(r"\w[\w-]{0,39}", re.ASCII)

Steps = tuple[str | int, ...]  # the way to a value: ("jobs", 2, "heatmap", "heads")
Place = tuple[int, ...]  # line and column, counted from 1; () is the whole file
Text = str | Callable[[], str]  # a function where the sentence takes a search: of 100,000 problems 20 are told


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: "figures.yaml:12:5: jobs[2].heatmap.heads: write a whole number, not 'many'"."""

    file: str
    place: Place
    steps: Steps
    text: Text

    def __str__(self) -> str:
        where = ":".join(map(str, (self.file, *self.place)))
        plain = (isinstance(step, str) and PLAIN_NAME.fullmatch(step) for step in self.steps)
        written = (f".{step}" if name else f"[{shorten(step)}]" for name, step in zip(plain, self.steps, strict=True))
        path = f"{''.join(written).removeprefix('.')}: " if self.steps else ""
        return f"{where}: {path}{self.text if isinstance(self.text, str) else self.text()}"


@dataclass
class SourceFile:
    """What a file says. `data` holds dict, list, str, int, float, bool and None only, None where it cannot be read."""

    file: str
    sha256: str = ""
    data: Any = None
    values: dict[Steps, Place] = field(default_factory=lambda: {(): (1, 1)})
    keys: dict[Steps, Place] = field(default_factory=dict)
    problems: dict[tuple[Steps, Place], Problem] = field(default_factory=dict)

    def report(self, steps: Steps, text: Text) -> None:
        """Keep a problem where the value is written, or what is around it."""
        around = steps
        while around not in self.values:
            around = around[:-1]
        self.report_at(self.values[around], steps, text)

    def report_name(self, steps: Steps, text: Text) -> None:
        """Keep a problem where the value's name is written."""
        self.report_at(self.keys.get(steps, ()), steps, text)

    def report_at(self, place: Place, steps: Steps, text: Text) -> None:
        """Keep a problem, unless there is one of the same value: the second would only follow from the first."""
        self.problems.setdefault((steps, place), Problem(self.file, place, steps, text))
