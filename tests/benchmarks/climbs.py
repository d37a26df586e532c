"""How often a command climbs, from a lower floor of the house to a higher one: `python -m tests.benchmarks.climbs`.

A walk through a command should go down: commands, running, views, models or measures or renderers, store, records.
A call back up is a place where a lower room knows what a higher one wants. Generators that are resumed and functions
that were handed down are not told from others: they count.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections import Counter
from types import FrameType
from typing import Any

from attnviz.cli.parser import parse_and_run
from attnviz.commands import COMMANDS as REGISTRY

FLOORS = (
    ("cli", "__main__"),
    ("commands",),
    ("python",),
    ("running", "inputs"),
    ("views",),
    ("models", "measures", "renderers", "text"),
    ("store",),
    ("records", "report"),
    ("specs",),
    ("options", "option_values", "selection"),
    ("registry",),
    ("errors", "display", "shapes", "bounded", "alike"),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
TEXT = "not a good film, but the acting saves it"
COMMANDS = {
    "heatmap": ("heatmap", "--text", TEXT, "--heads", "4"),
    "compare": ("compare", "single", "multi", "--text", TEXT, "--no-time"),
    "survey": ("survey", "--dataset", "sample", "--split", "train[:4]", "--null", "none"),
    "attribute": ("attribute", TEXT),
}


def climbs_of(words: tuple[str, ...]) -> Counter[tuple[str, str]]:
    """Run a command in this process: from which module to which higher one it called, each place of a call once."""
    found: set[tuple[str, int, str]] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_back is None:
            return
        called, caller = (each.f_globals.get("__name__", "") for each in (frame, frame.f_back))
        floors = [FLOOR.get(name.split(".")[1]) if name.startswith("attnviz.") else None for name in (caller, called)]
        lower, upper = floors
        if lower is not None and upper is not None and upper < lower:
            found.add((caller, frame.f_back.f_lineno, called))

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        sys.setprofile(look)
        try:
            with contextlib.suppress(SystemExit):
                parse_and_run([*words, "--out", folder, "-q"], REGISTRY)
        finally:
            sys.setprofile(None)
    return Counter((caller, called) for caller, _, called in found)


if __name__ == "__main__":
    for name, words in COMMANDS.items():
        climbs = climbs_of(words)
        print(f"{name}: {climbs.total()}")
        for (caller, called), number in climbs.most_common():
            print(f"    {number} {caller} → {called}")
