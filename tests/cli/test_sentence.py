"""A line without a command: a sentence is drawn as a page, and words that people try are answered."""

import shlex
from pathlib import Path

import pytest

from attnviz.cli.sentence import complete_line
from attnviz.commands import COMMANDS
from tests.attacks.endings import RunHere, worked


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("'the cat sat'", "heatmap --format html --open 'the cat sat'"),
        ("猫坐在垫子上 -m multi-zh", "heatmap --format html --open 猫坐在垫子上 -m multi-zh"),
        ("-m smollm2 'the cat'", "heatmap --format html --open -m smollm2 'the cat'"),
        ("'-5 degrees'", "heatmap --format html --open '--text=-5 degrees'"),
        ("review.txt", "heatmap --format html --open review.txt"),
        ("nothing.txt", "heatmap --format html --open nothing.txt"),
        ("' '", "heatmap --format html --open ' '"),
        ("mine.safetensors", "render --format html --open mine.safetensors"),
        ("heatmap 'the cat' --svg", "heatmap 'the cat' --format svg"),
        ("--version", "--version"),
    ],
)
def test_what_is_meant(line: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("review.txt", "mine.safetensors"):
        Path(name).touch()
    assert complete_line(shlex.split(line), [each.name for each in COMMANDS], ("--version",)) == shlex.split(found)


def test_a_sentence_alone_is_a_page(attnviz: RunHere, tmp_path: Path) -> None:
    ran = worked(attnviz("the acting saved the film"))
    assert "Answer: negative 82 %; negative without saved 58 %" in ran.stdout
    assert "attention/attention.html" in ran.stderr
    assert (tmp_path / "attention/attention.html").is_file()


@pytest.mark.parametrize(
    ("word", "works"),
    [
        ("show", "attnviz render"),
        ("models", "multi-zh"),
        ("version", "--version"),
        ("heatmp", "Did you mean 'heatmap'?"),
        ("cat", "attnviz heatmap cat"),
    ],
)
def test_a_word_that_is_no_command_is_answered_by_what_works(attnviz: RunHere, word: str, works: str) -> None:
    ran = attnviz(word)
    assert ran.exit_code == 2
    assert works in ran.stderr


def test_nothing_at_all_shows_three_lines_to_try(attnviz: RunHere) -> None:
    ran = attnviz()
    assert ran.exit_code == 2
    assert [line.split()[0] for line in ran.stdout.splitlines()[1:4]] == ["attnviz"] * 3
