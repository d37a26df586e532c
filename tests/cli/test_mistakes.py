"""Mistakes as people make them: each ends in one line, at once, that holds the way that works."""

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attnviz.cli.sentence import complete_line
from attnviz.commands import COMMANDS
from tests.attacks.endings import RunHere, worked
from tests.process import bare_environment

MISTAKES = (
    # commands and options
    ("help heatmpa", "Did you mean 'heatmap'"),
    ("heatmap 'a b' --hads 8", "--heads"),
    ("heatmap 'a b' --modle multi", "--model"),
    ("heatmap the cat sat", 'Such as: attnviz heatmap "the cat sat on the mat"'),
    ("compare", "Missing argument MODELS. Such as: attnviz compare single multi"),
    ("render", "Missing argument FILE. Such as: attnviz render weights.npy"),
    ("batch", "attnviz batch figures.yaml"),
    ("diff before after", "cannot read before: No such file or directory. Name a file or a folder."),
    # closed choices
    ("heatmap 'a b' -m multi --model single", "--model is given 2 times, and takes one value"),
    ("heatmap 'a b' --scale shard", "Did you mean 'shared'"),
    ("heatmap 'a b' --table foo", "heads, heatmap, top, full, none"),
    ("heatmap 'a b' --format pgn", "Did you mean 'png'"),
    ("heatmap 'a b' --measure entropi", "Did you mean 'entropy'"),
    ("heatmap 'a b' --sort -entopy", "Did you mean 'entropy'"),
    ("heatmap 'a b' --device gpu", "auto, cpu"),
    ("survey 'a b' --ablate foo", "zero, mean, uniform, queries, none"),
    ("survey 'a b' --shard 3-16", "Write 3/16"),
    # numbers and places
    ("heatmap 'a b' --width 84", "Did you mean 84mm?"),
    ("heatmap 'a b' --width wide", "Write 3.3in or 84mm"),
    ("heatmap 'a b' --pick 0,1", "Did you mean 0.1?"),
    ("heatmap 'a b' --layer 7", "There are layers 0 to 1."),
    ("heatmap 'a b' --head 9", "There are heads 0 to 7."),
    ("heatmap 'a b' --heads 7", "try 1, 2, 4, 8"),
    ("heatmap 'a b' --heads many", "--heads: write a whole number, not 'many'"),
    ("heatmap 'good film' --query god", "The nearest is 0 'good'."),
    ("train --dataset sample --validation 2", "above 0 and below 0.5"),
    # texts, models and folders
    ("./nothing", "no file ./nothing. --text ./nothing takes its name as words."),
    ("heatmap nothere.docx", "no file nothere.docx. --text nothere.docx takes its name as words."),
    ("heatmap review.txt", "no file review.txt. --text review.txt takes its name as words."),
    ("heatmap ''", "no tokens in the text. It is empty"),
    ("heatmap 'a b' --out ''", "--out: write a folder, not ''"),
    ("heatmap --dataset sampel", "Did you mean 'sample'"),
    ("heatmap --dataset sample --split trian", "Did you mean 'train'"),
    ("heatmap --dataset sample --index 99", "There are texts 0 to 39."),
    ("heatmap --dataset ./nowhere --label-column none", "no file or folder ./nowhere"),
    ("heatmap 'a b' --model mlti", "Did you mean 'multi'"),
    ("heatmap 'a b' --model ./nowhere --generate 3", "no model or checkpoint folder './nowhere'"),
    ("heatmap 'a b' --model . --heads 8", "cannot read config.json"),
    ("compare single multi 'a film of mine'", "A text goes with --text."),
    ("render ./nowhere --array layers", "cannot read nowhere"),
    ("heatmap 'a b' --generate 3", "takes a decoder"),
    ("heatmap 'a b' --pair 'c d'", "Leave it out."),
    ("predict 'a b' --model random", "Choose single, multi"),
    ("explain 'a b' --answer postive", "Did you mean 'positive'"),
    ("attribute 'a b' --target postive", "Did you mean 'positive'"),
)


@pytest.mark.parametrize(("line", "way"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_ends_with_the_way_that_works(line: str, way: str, run_here: RunHere, here: Path) -> None:
    run = run_here(*shlex.split(line))
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr.startswith("error: ")
    assert run.stderr.count("\n") == 1
    assert way in run.stderr
    assert list(here.iterdir()) == []


# --- A line without a command: a sentence is drawn as a page, and words that people try are answered ---


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
@pytest.mark.usefixtures("here")
def test_what_is_meant(line: str, found: str) -> None:
    for name in ("review.txt", "mine.safetensors"):
        Path(name).touch()
    assert complete_line(shlex.split(line), [each.name for each in COMMANDS], ("--version",)) == shlex.split(found)


def test_a_sentence_alone_is_a_page(run_here: RunHere, tmp_path: Path) -> None:
    ran = worked(run_here("the acting saved the film"))
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
def test_a_word_that_is_no_command_is_answered_by_what_works(run_here: RunHere, word: str, works: str) -> None:
    ran = run_here(word)
    assert ran.exit_code == 2
    assert works in ran.stderr


def test_nothing_at_all_shows_three_lines_to_try(run_here: RunHere) -> None:
    ran = run_here()
    assert ran.exit_code == 2
    assert [line.split()[0] for line in ran.stdout.splitlines()[1:4]] == ["attnviz"] * 3


AT_ONCE = """
import os, signal, sys
class Finder:
    find_spec = staticmethod(lambda name, *_: name == "attnviz.errors" and os.kill(os.getpid(), signal.SIGINT) or None)
sys.meta_path.insert(0, Finder)
from attnviz.__main__ import main
main()
"""


def test_ctrl_c_among_imports_is_no_traceback(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, env=bare_environment(tmp_path))
    assert (ran.returncode, ran.stderr) == (-signal.SIGINT, b"")
