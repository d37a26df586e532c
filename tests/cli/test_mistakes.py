"""Mistakes as people make them: each ends in one line, at once, that holds the way that works."""

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attnviz.cli.sentence import complete_line
from attnviz.commands import COMMANDS
from tests.attacks.endings import RunHere, refused, worked
from tests.process import bare_environment

LONG = " ".join(["the", "film"] * 12)  # as many tokens as a lesson shows
RANDOM = "--model random:4 --d-model 16"
MISTAKES = (
    # commands and options
    ("help heatmpa", "Did you mean 'heatmap'"),
    ("heatmap 'a b' --hads 8", "--heads"),
    ("heatmap the cat sat", 'Such as: attnviz heatmap "the cat sat on the mat"'),
    ("compare", "Missing argument MODELS. Such as: attnviz compare single multi"),
    ("render", "Missing argument FILE. Such as: attnviz render weights.npy"),
    ("batch", "attnviz batch figures.yaml"),
    ("diff before after", "cannot read before: No such file or directory. Name a file or a folder."),
    # closed choices
    ("heatmap 'a b' -m multi --model single", "--model is given 2 times, and takes one value"),
    ("heatmap 'a b' --scale shard", "Did you mean 'shared'"),
    ("heatmap 'a b' --format pgn", "Did you mean 'png'"),
    ("heatmap 'a b' --measure entropi", "Did you mean 'entropy'"),
    ("heatmap 'a b' --sort all", "no measure 'all'. There are entropy, "),
    ("heatmap 'a b' --sort vendi_score", "cannot be sorted by vendi_score. It is one number for all heads of a layer"),
    ("heatmap 'a b' --cmap Viridis", "no colour map 'Viridis'. Did you mean 'viridis'"),
    ("heatmap 'a b' --cmap qqqqqqqqqq", "Such as viridis"),
    ("heatmap 'a b' --device gpu", "auto, cpu"),
    ("survey 'a b' --shard 3-16", "Write 3/16"),
    # numbers and places
    ("heatmap 'a b' --width 84", "Did you mean 84mm?"),
    ("heatmap 'a b' --pick 0,1", "Did you mean 0.1?"),
    ("heatmap 'a b' --pick 5.mean", "no layer 5"),
    ("heatmap 'a b' --head 0-mean", "'0-mean' does not say which head"),
    ("heatmap 'a b' --head Mean", "mean is the mean over all"),
    ("heatmap 'a b' --layer 7", "There are layers 0 to 1."),
    ("heatmap 'a b' --heads 7", "try 1, 2, 4, 8"),
    ("heatmap 'a b' --heads many", "--heads: write a whole number, not 'many'"),
    ("heatmap 'good film' --query god", "The nearest is 0 'good'."),
    ("train --dataset sample --validation 2", "above 0 and below 0.5"),
    # texts, models and folders
    ("./nothing", "no file ./nothing. --text ./nothing takes its name as words."),
    ("heatmap nothere.docx", "no file nothere.docx. --text nothere.docx takes its name as words."),
    ("heatmap ''", "no tokens in the text. It is empty"),
    ("heatmap 'a b' --out ''", "--out: write a folder, not ''"),
    ("heatmap --dataset sampel", "Did you mean 'sample'"),
    ("heatmap --dataset sample --split trian", "Did you mean 'train'"),
    ("heatmap --dataset sample --split train+x.v1[:5]", "sample has no split 'x.v1'. There are train, test, ja, zh."),
    ("heatmap --dataset missing.csv --split test[-5]", "is not a split. One text is --split test --index -5. "),
    ("heatmap --dataset sample --split train[:101%]", "more than 100%"),
    ("heatmap --dataset sample --index 99", "There are texts 0 to 39."),
    ("heatmap --dataset ./nowhere --label-column none", "no file or folder ./nowhere"),
    ("heatmap 'a b' --model mlti", "Did you mean 'multi'"),
    ("heatmap 'a b' --model ./nowhere --generate 3", "no model or checkpoint folder './nowhere'"),
    ("heatmap 'a b' --model . --heads 8", "cannot read config.json"),
    ("compare single multi 'a film of mine'", "A text goes with --text."),
    ("render .", "A record is FOLDER/attention.safetensors; attnviz merge draws surveys."),
    ("render ./nowhere --array layers", "cannot read nowhere"),
    ("heatmap 'a b' --generate 3", "takes a decoder"),
    ("heatmap 'a b' --pair 'c d'", "Leave it out."),
    ("predict 'a b' --model random", "Choose single, multi"),
    ("explain 'a b' --answer postive", "Did you mean 'positive'"),
    ("attribute 'a b' --target postive", "Did you mean 'positive'"),
    ("heatmap --text fine --text ' '", "no tokens in the text"),
    ("heatmap --index x", "'x' does not say which text"),
    ("heatmap --text a --dataset imdb", "--text and --dataset exclude each other. Leave one of them out"),
    ("heatmap --text a --split train", "--split is for data sets, and --text was given. Leave out --split"),
    (f"heatmap a --model multi:{'9' * 5_000}", "Write the number of heads"),
    (f"heatmap a --model {'x' * 300}", "no model or checkpoint folder 'xxx"),
    ("heatmap a --model '~nouser/x'", "no model or checkpoint folder '~nouser/x'"),
    ("heatmap a --d-model 65536", "the weights of 1 layers of 65536 need"),
    # what a command takes
    (f"compare {'single ' * 9} --text a", "9 models to compare"),
    ("compare single multi --text ''", "no tokens in the text"),
    ("compare single multi --text 'a b' --layer 2", "There are layers 0 to 1."),
    ("attribute 'a b' --method relevence", "Did you mean 'relevance'"),
    ("attribute 'a b' --model random", "random weights"),
    ("attribute --text good --card", "one token"),
    ("attribute good --method leave-one-out", "needs two tokens"),
    ("explain 'the film and the end' --by-hand --query the", "'the' occurs 2 times. Choose by position: 0, 3."),
    (f"explain 'the film' --head 0.4 {RANDOM}", "no head 4. There are heads 0 to 3."),
    (f"explain 'the film' --head 0.mean {RANDOM}", "--head '0.mean' does not name one head"),
    ("explain 'a film' --query film", "--query asks for one look of a head: say which with --head 18.6, or --by-hand"),
    ("explain --text a --text b", "2 texts, where one is explained at a time"),
    ("lesson", 'no sentence to make a lesson of. Give one, as in attnviz lesson "the acting saved the film".'),
    (f"lesson '{LONG} twice'", "has 25 tokens, and a lesson shows every number of at most 24. Shorten it, or let the"),
    ("lesson ' '", "no tokens in"),
    ("lesson a --model smollm2", "cannot be worked out by hand. A lesson takes single, multi:8, random:4 and"),
    ("lesson a --example", "--example has a text and numbers of its own, and takes no inline text. Leave one out."),
    ("lesson --example --model dot", "and takes no model"),
    (f"lesson '{LONG}' --model random:2 --d-model 2048", "numbers in all layers, and a page has room for 72,000"),
    ("survey 'a b' --null chance", "no --null 'chance'. There are random"),
    ("survey 'a b' --model dot --null random", "dot has no weights to draw anew"),
    ("survey 'a b' --max-tokens 3 --probe repeat", "--probe repeat reads two tokens twice"),
    ("batch figures.yaml --schema", "--schema makes no jobs, and there is figures"),
    ("explain 'a b' --by-hand --answer positive", "--answer is of an answer, and multi:8 is worked out by hand"),
    ("explain 'a b' --answer positive --causal", "--causal is for --by-hand"),
    # words that people try instead of a command
    ("show", "attnviz render"),
    ("models", "multi-zh"),
    ("version", "--version"),
    ("heatmp", "Did you mean 'heatmap'?"),
    ("cat", "attnviz heatmap cat"),
)


@pytest.mark.parametrize(("line", "way"), MISTAKES, ids=[line[:60] for line, _ in MISTAKES])
def test_a_mistake_ends_with_the_way_that_works(line: str, way: str, run_here: RunHere, here: Path) -> None:
    assert refused(run_here(*shlex.split(line)), way).stderr.count("\n") == 1
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
