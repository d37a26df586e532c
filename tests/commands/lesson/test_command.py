"""`attnviz lesson` as a command: what it writes; what it refuses is in tests/cli/test_mistakes.py."""

import re
from pathlib import Path

import numpy as np

import attnviz
from attnviz.measures.patterns import list_patterns
from attnviz.words import load_table, say
from tests.attacks.endings import RunHere, worked
from tests.cli.test_mistakes import LONG
from tests.commands.lesson.conftest import SENTENCE, Write
from tests.made import page_content, tokens

MAX_BYTES = 500_000


def test_a_lesson_is_one_small_file_that_opens_offline(write: Write) -> None:
    file = write(text=LONG)
    page = file.read_text(encoding="utf-8")
    assert len(page.encode()) < MAX_BYTES
    assert "default-src 'none'" in page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    tokens = page_content(file)["tokens"]
    assert len(tokens) == 24


def test_the_same_lesson_twice_is_the_same_bytes(run_here: RunHere, tmp_path: Path) -> None:
    for out in ("a.html", "b"):
        worked(run_here("lesson", SENTENCE, "--out", out))
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b/lesson.html").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b"]


def test_the_language_is_that_of_the_page(write: Write) -> None:
    english, chinese = (write("--lang", language).read_text(encoding="utf-8") for language in ("en", "zh"))
    assert '<html lang="en">' in english
    assert '<html lang="zh-Hans">' in chinese
    assert "<title>从一句话看懂注意力</title>" in chinese


def test_a_long_sentence_is_cut_where_that_is_asked_for(run_here: RunHere, tmp_path: Path) -> None:
    worked(run_here("lesson", f"{LONG} and more", "--max-tokens", "24", "--out", "l.html"))
    assert page_content(tmp_path / "l.html")["cut"] == 2


def test_a_sentence_that_the_model_cannot_read_is_said_to_be(run_here: RunHere, tmp_path: Path) -> None:
    ran = worked(run_here("lesson", "猫 坐 垫子", "--lang", "zh", "--out", "l.html"))
    assert "不在词表里（读作 [UNK]）" in ran.stderr
    found = page_content(tmp_path / "l.html")
    assert (found["mostlyUnknown"], found["nUnknown"]) == (True, found["nTokens"])
    assert {layer["known"] for model in found["models"] for layer in model["layers"]} == {None}, "as the note says"


def test_a_model_beside_that_reads_other_tokens_is_left_out(run_here: RunHere, tmp_path: Path) -> None:
    ran = worked(run_here("lesson", "5 a3 b7 12", "--beside", "recall:1", "--out", "l.html"))
    assert "note: recall:1 cuts the text into other tokens, and is left out" in ran.stderr
    assert len(page_content(tmp_path / "l.html")["models"]) == 1
    worked(run_here("lesson", "片子不错", "--model", "multi-zh", "--out", "l.html"))
    assert [model["name"] for model in page_content(tmp_path / "l.html")["models"]] == ["multi-zh", "single-zh"]


# --- One table of strings: every entry in both languages, with the same placeholders, and each of them is used ---


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
    written |= {f"{part}.{name}" for part, name in re.findall(r"\$([a-z]+)_(\w+)", SCRIPTS)}
    assert {name for name in written if name.partition(".")[0] in parts} <= known
    begun = tuple(each for each in re.findall(r"`([a-z]+\.\w*)\$\{", SCRIPTS) if each[-1] != ".")
    used = written | {name for name in known if name.startswith(("judge.", "report.", *begun))}
    used |= {f"ui.{name}" for name in re.findall(r'(?:\$ui_|"ui\.)(\w+)', SCRIPTS + PYTHON)}
    used |= {f"choose.{name}" for name in ("model", "layer", "head", "query", "key")}
    used |= {f"about.{name}" for name in re.findall(r'"(?:about\.)?(\w+)"', PYTHON)}
    used |= {f"when.{name}" for name in ("heads", "accuracy", "cost", "hidden")}
    assert known - used == set()


def test_each_pattern_that_names_a_head_has_its_words() -> None:
    names = {each.name for each in list_patterns(tokens("a"), np.arange(1), attnviz.Grid(1, 1))}
    assert [name for name in names if not CHINESE.search(say(name, "zh"))] == []
