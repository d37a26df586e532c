"""`attnviz train` as a process: what goes where, the same bytes each time, and a card whose command works."""

import json
import os
import re
import shlex
import signal
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from attnviz.commands.train.training import Training
from tests.attacks.endings import RAW, RunHere, check_streams, document, worked
from tests.commands.train.runs import FILES, TINY, after_step
from tests.made import content, known
from tests.process import Run, RunCli

EPOCH = re.compile(
    r"epoch (\d+)/2  loss \d\.\d{3}  accuracy \d\.\d{3}  [\d,]+ texts/s; held out: loss \d\.\d{4}, accuracy \d\.\d{4}"
    r"( \(best so far\))?"
)


def noted(run: Run) -> list[str]:
    check_streams(run)
    return [line.removeprefix("note: ") for line in run.stderr.splitlines()]


# What goes where


def test_results_go_to_stdout_and_progress_to_stderr(attnviz: RunHere, run_cli: RunCli, tmp_path: Path) -> None:
    """And the same bytes as in another process, with as many threads: with more torch adds in another order."""
    run = worked(run_cli(*TINY, env={"PYTHONHASHSEED": "2", "TZ": "UTC+2"}))
    first, *epochs, last = noted(run)
    assert first == "training on 36 texts of sample train, 4 held out; 6,212 parameters"
    found = [EPOCH.fullmatch(line) for line in epochs]
    assert [match and match[1] for match in found] == ["1", "2"]
    assert last == "wrote 6 files to model/ (model.safetensors … learning-curve.png)"
    assert set(content(tmp_path)) == {f"model/{name}" for name in FILES}

    told = json.loads((tmp_path / "model/metrics.json").read_bytes())
    assert run.stdout.startswith("Transformer encoder with 2 heads, trained on sample train\n")
    assert told["weights_sha256"][:8] in run.stdout
    assert f"{told['held_out']['accuracy']['value']:.4f}" in run.stdout
    for epoch, match in zip(told["history"]["epochs"], found, strict=True):
        assert f"held out: loss {epoch['loss']:.4f}, accuracy {epoch['accuracy']:.4f}" in known(match)[0]
    for stream in (run.out, run.err):
        assert RAW.findall(stream.decode()) == []
    worked(attnviz(*TINY, "--out", "again"))
    assert content(tmp_path / "again") == content(tmp_path / "model")


@pytest.mark.usefixtures("few_probes", "drawn_once")
def test_json_is_one_document_and_nothing_else(attnviz: RunHere, tmp_path: Path) -> None:
    """The metrics as they are in the file, so that nobody has to look for it."""
    run = worked(attnviz(*TINY, "--json"))
    metrics = json.loads((tmp_path / "model/metrics.json").read_bytes())
    assert document(run) == {**metrics, "schema": 1}  # of what is printed; the file has one of its own
    assert len(noted(run)) == 4


# Ctrl-C, where it can be sent at one exact step


def press_ctrl_c(_: Training) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def press_ctrl_c_twice(training: Training) -> None:
    press_ctrl_c(training)
    press_ctrl_c(training)


@pytest.fixture
def with_ctrl_c() -> Any:
    """As in a terminal, also where the tests themselves ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "a run gives the signal back"
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("with_ctrl_c", "few_probes", "drawn_once")
def test_ctrl_c_ends_the_step_and_says_what_was_kept(
    attnviz: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left three times and gone on with: each time the truth about the folder, and at last the same bytes."""
    worked(attnviz(*TINY, "--out", "whole"))
    said = []
    for n_done in (3, 7, 8):
        with monkeypatch.context() as patch:
            after_step(patch, n_done, press_ctrl_c)
            run = attnviz(*TINY, "--resume")
        assert (run.exit_code, run.out) == (130, b"")
        *_, what, how = noted(run)
        saved = f"goes on after step {n_done // 5 * 5}" if n_done > 5 else "starts from the beginning"
        assert how == f"the same command with --resume {saved}"
        said.append(what)
        assert (tmp_path / "model/training.safetensors").exists()
        assert (tmp_path / "model/model.safetensors").exists() == (n_done > 5)
    assert said == [f"stopped after step {n} of 10" for n in (3, 7, 8)]
    run = worked(attnviz(*TINY, "--resume"))
    assert noted(run)[1] == "going on after step 5 of 10"
    assert content(tmp_path / "model") == content(tmp_path / "whole")


@pytest.mark.usefixtures("with_ctrl_c", "few_probes", "drawn_once")
def test_ctrl_c_twice_breaks_the_step_off(attnviz: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the last epoch had left is kept."""
    worked(attnviz(*TINY, "--out", "whole"))
    with monkeypatch.context() as patch:
        after_step(patch, 7, press_ctrl_c_twice)
        run = attnviz(*TINY)
    assert (run.exit_code, run.out) == (130, b"")
    assert "error" not in run.stderr
    check_streams(run)
    run = worked(attnviz(*TINY, "--resume"))
    assert "going on after step 5 of 10" in noted(run)
    assert content(tmp_path / "model") == content(tmp_path / "whole")


# The same again


COMMANDS: dict[str, tuple[str, ...]] = {
    "few words": TINY,
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
    given: tuple[str, ...], attnviz: RunHere, tmp_path: Path
) -> None:
    rows = "".join(f'film {n} was good,1,"nor, this"\nfilm {n} was bad,0,"not this"\n' for n in range(20))
    (tmp_path / "a $(touch b) [c] | *d* `e`.csv").write_text(f"my_words <b>,label,text\n{rows}", encoding="utf-8")
    worked(attnviz(*given))
    card = (tmp_path / "model/README.md").read_text(encoding="utf-8")
    (cell,) = re.findall(r"^\| command \| (.*) \|$", card, flags=re.MULTILINE)
    # As a reader of the rendered card copies it, cut as a shell cuts it.
    rendered = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", unescape(re.sub("</?span>", "", cell)))
    program, *words = shlex.split(rendered)
    assert (program, words[0]) == ("attnviz", "train")
    worked(attnviz(*words, "--out", "again"))
    assert content(tmp_path / "again") == content(tmp_path / "model")
    assert {path.name for path in tmp_path.iterdir()} == {"model", "again", "a $(touch b) [c] | *d* `e`.csv"}
