"""`attnviz train` as a process: what goes where, the same bytes each time, and a card whose command works."""

import json
import os
import re
import shlex
import signal
import sys
from html import unescape
from pathlib import Path

import pytest

from attnviz.commands.train.training import Training
from tests.attacks.endings import RunHere, check_streams, run_in, worked
from tests.commands.train.runs import TINY, after_step
from tests.made import content
from tests.process import Run


def noted(run: Run) -> list[str]:
    check_streams(run)
    return [line.removeprefix("note: ") for line in run.stderr.splitlines()]


# What goes where, as a process that measures as little as the others do here
PROCESS = f"""
from attnviz.commands.train import run
run.N_RANDOM = 2
from attnviz.cli.app import run
raise SystemExit(run({TINY!r}))
"""


def test_results_go_to_stdout_and_progress_to_stderr(run: Path, tmp_path: Path) -> None:
    """And the same bytes as in another process, with as many threads: with more torch adds in another order."""
    done = worked(run_in(tmp_path, "env", "PYTHONHASHSEED=2", "TZ=UTC+2", sys.executable, "-c", PROCESS))
    first, *epochs, last = noted(done)
    assert first == "training on 36 texts of sample train, 4 held out; 6,212 parameters"
    assert len(epochs) == 2  # as tests/attacks/test_training_stopped.py has them
    assert last == "wrote 6 files to model/ (model.safetensors … learning-curve.png)"
    assert content(tmp_path / "model") == content(run)
    told = json.loads((run / "metrics.json").read_bytes())
    assert done.stdout.startswith("Transformer encoder with 2 heads, trained on sample train\n")
    assert told["weights_sha256"][:8] in done.stdout
    assert done.stdout.splitlines()[3].startswith(f"Right on {told['held_out']['accuracy']['value']:.1%} (95 % ")


# Ctrl-C, where it can be sent at one exact step


def press_ctrl_c(_: Training) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def press_ctrl_c_twice(training: Training) -> None:
    press_ctrl_c(training)
    press_ctrl_c(training)


@pytest.mark.usefixtures("few_probes", "drawn_once")
def test_ctrl_c_ends_the_step_and_twice_breaks_it_off(
    run: Path, run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left three times and gone on with: each time the truth about the folder, and at last the same bytes."""
    for n_done, press, said in (
        (3, press_ctrl_c, ["stopped after step 3 of 10", "the same command with --resume starts from the beginning"]),
        (7, press_ctrl_c, ["stopped after step 7 of 10", "the same command with --resume goes on after step 5"]),
        (8, press_ctrl_c_twice, []),
    ):
        with monkeypatch.context() as patch:
            after_step(patch, n_done, press)
            left = run_here(*TINY, "--resume")
        assert (left.exit_code, left.out) == (130, b"")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "a run gives the signal back"
        assert noted(left)[-2:] == said or not said
        assert (tmp_path / "model/training.safetensors").exists()
        assert (tmp_path / "model/model.safetensors").exists() == (n_done > 5)
    assert noted(worked(run_here(*TINY, "--resume")))[1] == "going on after step 5 of 10"
    assert content(tmp_path / "model") == content(run)


# The same again


COMMANDS: dict[str, tuple[str, ...]] = {
    "many words": (  # the last of TINY is its learning rate
        *(*TINY[:-1], "--split", "train[:-2]+test[5:]", "--seed", "123", "--pool", "cls", "--norm", "post"),
        *("--learning-rate", "0.00123456789", "--dropout", "0.1", "--validation", "0.3", "--storage", "float16"),
        *("--tokenizer", "bpe", "--keep", "head", "--max-tokens", "20", "--crop", "10", "--layers", "2"),
    ),
    "a file": ("train", "--dataset", "a $(touch b) [c] | *d* `e`.csv", "--text-column", "my_words <b>", *TINY[3:]),
}


@pytest.mark.usefixtures("few_probes", "drawn_once")
@pytest.mark.parametrize("given", COMMANDS.values(), ids=COMMANDS)
def test_the_command_on_the_card_makes_the_model_again(
    given: tuple[str, ...], run_here: RunHere, tmp_path: Path
) -> None:
    rows = "".join(f'film {n} was good,1,"nor, this"\nfilm {n} was bad,0,"not this"\n' for n in range(20))
    (tmp_path / "a $(touch b) [c] | *d* `e`.csv").write_text(f"my_words <b>,label,text\n{rows}", encoding="utf-8")
    worked(run_here(*given))
    card = (tmp_path / "model/README.md").read_text(encoding="utf-8")
    (cell,) = re.findall(r"^\| command \| (.*) \|$", card, flags=re.MULTILINE)
    # As a reader of the rendered card copies it, cut as a shell cuts it.
    rendered = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", unescape(re.sub("</?span>", "", cell)))
    program, *words = shlex.split(rendered)
    assert (program, words[0]) == ("attnviz", "train")
    worked(run_here(*words, "--out", "again"))
    assert content(tmp_path / "again") == content(tmp_path / "model")
    assert {path.name for path in tmp_path.iterdir()} == {"model", "again", "a $(touch b) [c] | *d* `e`.csv"}
