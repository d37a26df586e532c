"""One table of strings: every entry in both languages, with the same placeholders, and each of them is used."""

import re
from pathlib import Path

import numpy as np

import attnviz
from attnviz.measures.patterns import list_patterns
from attnviz.words import load_table, say
from tests.made import tokens

ROOT = Path(attnviz.__file__).parent
SCRIPTS, PYTHON = (
    "".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*")) if path.suffix in of)
    for of in ((".js", ".html"), (".py",))
)
MARKS = re.compile(r"\{\w+\}|\*\*|`[^`]*`")
CHINESE = re.compile("[\u4e00-\u9fff]")
FORMULAS = {"see.s0"} | {f"see.c_{name}" for name in ("q", "k", "v", "weighted")}


def test_every_entry_is_in_both_languages() -> None:
    assert [name for name, entry in load_table().items() if set(entry) != {"en", "zh"}] == []


def test_the_same_places_are_filled_and_set_off_in_both() -> None:
    unlike = [
        name
        for name, entry in load_table().items()
        if sorted(MARKS.findall(entry["en"])) != sorted(MARKS.findall(entry["zh"]))
    ]
    assert unlike == []


def test_what_is_said_in_chinese_is_chinese() -> None:
    unlike = {name for name, entry in load_table().items() if not CHINESE.search(entry["zh"])}
    assert {name for name in unlike if re.search("[A-Za-z]", MARKS.sub("", load_table()[name]["en"]))} == FORMULAS
    assert [name for name, entry in load_table().items() if CHINESE.search(entry["en"])] == []
    half_width = re.compile(f"{CHINESE.pattern}[,.;:?!()]|[,;:?!()]{CHINESE.pattern}")
    assert [name for name, entry in load_table().items() if half_width.search(entry["zh"])] == []


def test_every_entry_is_used_and_every_one_that_is_used_is_there() -> None:
    known = set(load_table())
    parts = {name.partition(".")[0] for name in known}
    written = set(re.findall(r"[\"`]([a-z]+\.\w+)[\"`]", SCRIPTS))
    assert {name for name in written if name.partition(".")[0] in parts} <= known
    begun = tuple(each for each in re.findall(r"`([a-z]+\.\w*)\$\{", SCRIPTS) if each[-1] != ".")
    used = written | {name for name in known if name.startswith(("judge.", "report.", *begun))}
    used |= {f"{part}.title" for part in parts}
    used |= {f"ui.{name}" for name in re.findall(r'(?:\$ui_|"ui\.)(\w+)', SCRIPTS + PYTHON)}
    used |= {f"choose.{name}" for name in ("model", "layer", "head", "query", "key")}
    used |= {f"about.{name}" for name in re.findall(r'"(?:about\.)?(\w+)"', PYTHON)}
    used |= {f"when.{name}" for name in ("heads", "accuracy", "cost", "hidden")}
    assert known - used == set()


def test_each_pattern_that_names_a_head_has_its_words() -> None:
    names = {each.name for each in list_patterns(tokens("a"), np.arange(1))}
    assert [name for name in names if not CHINESE.search(say(name, "zh"))] == []
