"""Size is a wall: each room, and the sum, may have so many lines of code and no more.

Lines of code are those that hold any: no blank lines, comments or docstrings, so prose costs nothing and a longer
line gains nothing. A number in the table is only lowered, or raised in a commit that lowers others by as much.
`python -m tests.test_size` prints the table as it would be today.
"""

import ast
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.process import ROOT

BUDGET = ROOT.parent / "shared" / "design" / "BUDGET.toml"
WITH_ROOMS = {"commands", "models", "renderers"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

MAX_CODE_LINES = {
    "tests/commands": 6075,
    "tests/models": 5034,
    "tests/renderers": 3833,
    "attnviz/renderers/page": 3499,
    "tests": 3199,
    "attnviz/renderers/figure": 2394,
    "attnviz/models": 2014,
    "tests/attacks": 1518,
    "attnviz/commands/survey": 1826,
    "attnviz/views": 1573,
    "attnviz/commands/lesson": 974,
    "attnviz/models/capture": 1721,
    "attnviz/text": 1395,
    "attnviz/commands/train": 1068,
    "attnviz/measures": 1284,
    "tests/views": 1099,
    "attnviz/commands/batch": 1136,
    "tests/measures": 997,
    "attnviz/records": 1318,
    "attnviz/models/huggingface": 1782,
    "attnviz/commands/explain": 660,
    "tests/text": 1088,
    "attnviz": 1450,
    "attnviz/models/recording": 788,
    "attnviz/commands/compare": 893,
    "attnviz/store": 823,
    "tests/benchmarks": 403,
    "tests/running": 491,
    "attnviz/running": 565,
    "tests/fuzz": 597,
    "attnviz/models/attribution": 465,
    "tests/cli": 524,
    "attnviz/cli": 559,
    "tests/records": 399,
    "attnviz/renderers/terminal": 378,
    "attnviz/models/decomposition": 420,
    "attnviz/commands/attribute": 256,
    "attnviz/renderers/documents": 279,
    "attnviz/table": 274,
    "tests/table": 165,
    "attnviz/python": 222,
    "attnviz/commands/render": 142,
    "attnviz/renderers": 102,
    "attnviz/commands/heatmap": 180,
    "attnviz/commands": 55,
    "attnviz/commands/measures": 37,
    "attnviz/models/attentions": 530,
    "attnviz/commands/sources": 330,
    "attnviz/monitor": 370,
    "tests/monitor": 180,
    "attnviz/commands/changed": 224,
}  # fmt: skip


def count_python(source: str) -> int:
    """Count the lines of Python that hold code: of a string also those that are empty or look like a comment."""
    lines = {n for n, line in enumerate(source.split("\n"), 1) if line.strip() and not line.lstrip().startswith("#")}
    prose: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            prose |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr):
            lines |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(lines - prose)


def count_script(source: str) -> int:
    """Count the lines of JavaScript or CSS that hold code."""
    lines = re.sub(r"/\*.*?\*/", "", source, flags=re.S).splitlines()
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("//"))


def room_of(path: str) -> str:
    """Name the room of a file: the folder below attnviz/ or tests/, and one more where that folder holds rooms."""
    parts = path.split("/")
    depth = 3 if parts[0] == "attnviz" and parts[1] in WITH_ROOMS and len(parts) > 3 else 2
    return "/".join(parts[:depth]) if len(parts) > 2 else parts[0]


def count_rooms(root: Path) -> Counter[str]:
    """Count the code lines of each room of a checkout, of the files that git does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.js", "*.css"]
    files = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    rooms: Counter[str] = Counter()
    for path in files:
        if path.startswith(("attnviz/", "tests/")) and (root / path).is_file():
            source = (root / path).read_text(encoding="utf-8")
            rooms[room_of(path)] += count_python(source) if path.endswith(".py") else count_script(source)
    return rooms


def sum_of(rooms: dict[str, int], top: str) -> int:
    return sum(lines for room, lines in rooms.items() if room.split("/")[0] == top)


@pytest.fixture(scope="module")
def rooms() -> Counter[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout of git: which files belong to it is not known")
    return count_rooms(ROOT)


def test_no_room_is_larger_than_its_number(rooms: Counter[str]) -> None:
    above = {room: (lines, MAX_CODE_LINES.get(room, 0)) for room, lines in rooms.items()}
    assert {room: pair for room, pair in above.items() if pair[0] > pair[1]} == {}


@pytest.mark.parametrize(("top", "name"), [("attnviz", "product"), ("tests", "tests")])
def test_the_sums_are_within_the_table_and_the_wall(top: str, name: str, rooms: Counter[str]) -> None:
    assert sum_of(rooms, top) <= sum_of(MAX_CODE_LINES, top)
    if BUDGET.exists():
        assert sum_of(MAX_CODE_LINES, top) <= tomllib.loads(BUDGET.read_text(encoding="utf-8"))["wall"][name]


@pytest.mark.parametrize(
    ("count", "source", "lines"),
    [
        (count_python, '"""Prose\nof two lines."""\n\n# a comment\nx = (1,\n     2)  # two lines\n', 2),
        (count_python, 'def f():\n    """Prose."""\n    return """text\nis code"""\n', 3),
        (count_script, "/* prose\nof two lines */\n\n// a comment\nlet x = 1; // code\n", 1),
    ],
)
def test_prose_is_free(count: object, source: str, lines: int) -> None:
    assert callable(count)
    assert count(source) == lines


if __name__ == "__main__":
    for each, lines in sorted(count_rooms(ROOT).items(), key=lambda pair: -pair[1]):
        print(f'    "{each}": {lines},')
