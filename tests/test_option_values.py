"""One checker behind three doors: what a command line, a config and Python may say of each kind of option."""

from collections.abc import Callable, Sequence
from math import inf, nan
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest

import attnviz
from attnviz.cli.parser import parse_option
from attnviz.commands import COMMANDS
from attnviz.commands.batch.configs import read_setting
from attnviz.commands.batch.reading import SourceFile
from attnviz.errors import InvalidOption
from attnviz.options import TEXT, FlatOption, InvalidValue, Limits, Option, check, check_option, list_options
from attnviz.python.api import parse_setting, parse_settings
from attnviz.python.options import FigureSettings
from attnviz.registry import load

BIG = 10**18  # has a digit too many
CHOICES = Literal["head", "head-tail"]
HEAD = "head, head-tail"
LIMITS: dict[str, Limits] = {
    "few": (("at least", 2), ("at most", 9)),
    "share": (("above", 0), ("below", 1)),
}
KINDS: dict[str, Any] = {
    "few": int | None,
    "share": float,
    "whole": int,
    "maybe": int | None,
    "number": float,
    "text": str,
    "part": str | None,
    "flag": bool,
    "choice": CHOICES,
    "chosen": CHOICES | None,
    "several": tuple[str, ...],
}


class No(NamedTuple):
    """What a door says: what to write, and in brackets what was found, where the door itself does not show it."""

    said: str


def rows(kind: str, values: Sequence[Any], wanted: No) -> list[tuple[str, Any, Any]]:
    """Values that one kind of option does not take."""
    return [(kind, value, wanted) for value in values]


FEW = No("a whole number that is at least 2 and at most 9")
SHARE = No("a number that is above 0 and below 1")
WHOLE, NUMBER, TEXT_, FLAG = No("a whole number"), No("a number"), No("a text"), No("true or false")
COMMAND_LINE: list[tuple[str, Any, Any]] = [
    *(("whole", text, int(text)) for text in ("7", "-7", "+7", "007", "9" * 18)),
    *rows("whole", ("", " 7", "7 ", "1e3", "1.5", "7.0", "1_000", "٣", "0x1f", "inf", "9" * 19), WHOLE),
    ("maybe", "8", 8), ("maybe", "many", WHOLE),
    *(("number", text, float(text)) for text in ("7", "-7", "1.5", "-.5", ".5", "7.", "1e3", "1E-3", "9" * 30)),
    *rows("number", ("", "half", "nan", "inf", "1_0", " 1", "1,5"), NUMBER),
    ("number", "1e999", No("a finite number")),
    *(("text", text, text) for text in ("", "7", "true", "猫", "--", "a,b")),
    ("part", "3:9", "3:9"),
    ("few", "2", 2), ("few", "9", 9), *rows("few", ("1", "10"), FEW),
    ("share", "0.5", 0.5), *rows("share", ("0", "1", "1.5"), SHARE),
    ("flag", True, True), ("flag", False, False),
    ("choice", "head", "head"), ("choice", "Head", No(f"one of {HEAD}")), ("chosen", "", No(f"one of {HEAD}")),
    ("several", ["a", "b"], ("a", "b")), ("several", ["a,b"], ("a,b",)),
]  # fmt: skip
CONFIG: list[tuple[str, Any, Any]] = [
    ("whole", 7, 7), ("whole", -7, -7), ("maybe", None, None), ("maybe", 8, 8),
    *rows("whole", ("7", 7.0, True, None, [7], {}, BIG), WHOLE),
    ("number", 2, 2.0), ("number", 2.5, 2.5),
    ("few", None, None), *rows("few", (1, 10), FEW), *rows("share", (0, 1), SHARE),
    *rows("number", ("2", True, None, [2.0]), NUMBER),
    *rows("number", (inf, -inf, nan, 10**400), No("a finite number")),
    ("text", "a", "a"), ("text", 3, "3"), ("text", "", ""), ("part", None, None), ("part", 3, "3"),
    *rows("text", (1.5, True, None, ["a"], {}), TEXT_),
    ("flag", True, True), ("flag", False, False), *rows("flag", (1, 0, "no", None), FLAG),
    ("choice", "head-tail", "head-tail"), ("chosen", None, None),
    *rows("choice", ("hed", 3, None, ["head"]), No(f"one of {HEAD}")),
    ("several", "a", ("a",)), ("several", 3, ("3",)), ("several", ["a", 3], ("a", "3")),
    ("several", [], No("at least one")), *rows("several", (None, True, ["a", {}], [1.5]), TEXT_),
]  # fmt: skip
PYTHON: list[tuple[str, Any, Any]] = [
    *(row for row in CONFIG if not (isinstance(row[1], int) and row[0] in ("text", "part")) and row[1] != ["a", 3]),
    ("text", 3, TEXT_), ("text", True, TEXT_), ("part", 3, TEXT_), ("number", np.int8(3), 3.0),
    ("whole", np.int64(3), 3), ("whole", np.float32(3), WHOLE), ("whole", np.bool_(True), WHOLE),
    ("number", np.float32(0.5), 0.5), ("flag", np.bool_(True), True), ("text", np.str_("a"), "a"),
    ("whole", np.zeros(2), WHOLE), ("choice", np.zeros((2, 2)), No(f"one of {HEAD}")), ("text", b"a", TEXT_),
    ("several", ("a", "b"), ("a", "b")),
]  # fmt: skip


def option(kind: str) -> FlatOption:
    """An option whose value may be a number that counts something where it is several."""
    metavar = "N" if kind == "several" else "WORD"
    return FlatOption(kind, "", KINDS[kind], Option("Help.", TEXT, metavar, limits=LIMITS.get(kind, ())), None)


def line(kind: str, words: Any) -> Any:
    return parse_option(option(kind), words)


def config(kind: str, value: Any) -> Any:
    source = SourceFile("")
    found = read_setting(source, value, option(kind), ())
    for problem in source.problems.values():
        raise InvalidOption(problem.text if isinstance(problem.text, str) else problem.text())
    return found


def python(kind: str, value: Any) -> Any:
    return parse_setting(option(kind), value)


DOORS: dict[str, tuple[Callable[[str, Any], Any], str]] = {
    "line": (line, "--%s: write %s, not "),
    "config": (config, "%.0swrite %s, not "),
    "python": (python, "%s=.*: write %s"),
}
TABLES = {"line": COMMAND_LINE, "config": CONFIG, "python": PYTHON}


@pytest.mark.parametrize(
    ("name", "kind", "value", "wanted"), [(name, *row) for name, rows in TABLES.items() for row in rows], ids=repr
)
def test_a_door(name: str, kind: str, value: Any, wanted: Any) -> None:
    door, says = DOORS[name]
    if isinstance(wanted, No):
        with pytest.raises(InvalidOption, match=f"^{says % (kind, wanted.said)}.*$"):
            door(kind, value)
    else:
        assert repr(door(kind, value)) == repr(wanted)


def test_what_each_door_says() -> None:
    said = r"write one of head, head-tail%s. Did you mean 'head-tail'\?$"
    with pytest.raises(InvalidOption, match="^--choice: " + said % ", not 'hed-tail'"):
        line("choice", "hed-tail")
    with pytest.raises(InvalidOption, match="^choice='hed-tail': " + said % ""):
        python("choice", "hed-tail")
    with pytest.raises(InvalidOption, match=r"^whole=2.0: write a whole number. Help.$"):
        python("whole", 2.0)
    with pytest.raises(InvalidValue, match="not '1234567890123456789'; no number here has more than 18 digits"):
        check(int, "1234567890123456789")
    with pytest.raises(InvalidValue, match=f"not '{'x' * 39}…'$"):
        check(int, "x" * 1000)
    with pytest.raises(InvalidOption, match=r'^write a text, not 1[.]5; quotes make it one: "1[.]5"'):
        config("text", 1.5)


def test_what_an_option_is_by_itself_is_within_its_limits() -> None:
    options = [option for command in COMMANDS for option in list_options(load(command.spec)) if option.option.limits]
    assert [check_option(option, option.default) for option in options] == [option.default for option in options]
    assert len({option.name for option in options}) > 20


def test_numbers_that_count_are_texts_in_python_and_none_is_no_list() -> None:
    read = parse_settings(FigureSettings, layer=0, head=np.int64(3), query=2, pick=None, title=None).figure
    assert (read.layer, read.head, read.query, read.pick, read.title) == (("0",), ("3",), "2", (), None)
    with pytest.raises(InvalidOption, match=r"no setting 'laier'. Did you mean 'layer'\?"):
        parse_settings(FigureSettings, laier=0)


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("columns='2': write a whole number. How many heads", lambda maps: attnviz.heatmap(maps, columns="2")),
        ("columns='2': write a whole number. How many heads", lambda maps: attnviz.show(maps, columns="2")),
        ("scale='x': write one of lift", lambda maps: attnviz.compare(maps, maps, scale="x")),  # type: ignore[arg-type]
        ("no measure 'none'. There are entropy", lambda maps: attnviz.measure(maps, None)),  # type: ignore[arg-type]
        ("a question is asked about an image, and multi is", lambda _: attnviz.attention("a film", question="good?")),
        (r"text=\['a'\]: write a text", lambda _: attnviz.attention(["a"])),  # type: ignore[arg-type]
        ("seed=1.5: write a whole number", lambda _: attnviz.attention("a", seed=1.5)),
    ],
)
def test_every_function_of_python_asks_it(said: str, call: Any) -> None:
    maps = attnviz.from_attentions(np.full((2, 3, 3), 1 / 3))
    with pytest.raises(InvalidOption, match=f"^{said}"):
        call(maps)
