"""Training that is given nonsense, interrupted, killed or without a disk: one line, and what was kept is not lost."""

from __future__ import annotations

import json
import os
import pty
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from attnviz.workflows.train import train
from tests.attacks import endings
from tests.attacks.endings import RunHere, check_streams, environment, notes, refused, worked
from tests.attacks.test_checkpoints import DAMAGES, TRACE, Damage, missing
from tests.process import Run, RunCli

SIZES = ("--batch-size", "8", "--d-model", "16", "--heads", "2", "--bigrams", "50", "--size", "300")
TINY = ("train", "--dataset", "sample", "--epochs", "2", *SIZES)
LONG = ("train", "--dataset", "sample", "--epochs", "60", "--patience", "60", *SIZES)  # some seconds
ENDLESS = ("train", "--dataset", "sample", "--epochs", "1000000", "--patience", "1000000", *SIZES)
STATE, METRICS = "training.safetensors", "metrics.json"
CHECKPOINT = {"model.safetensors", "tokenizer.json", "config.json"}
FILES = {*CHECKPOINT, METRICS, "README.md", "learning-curve.png"}
STOPPED = (130, -signal.SIGINT)  # a shell says 130 for both
PATIENCE = 120.0  # seconds


def surroundings() -> dict[str, str]:
    """With as many threads as here: torch adds in another order where they are more or fewer."""
    return {**environment(), "OMP_NUM_THREADS": str(torch.get_num_threads())}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_whole(folder: Path) -> set[str]:
    """Every file opens; what is half-written is hidden. Gives the others' names."""
    names = {path.name for path in folder.iterdir() if not (path.name.startswith(".") and path.suffix == ".part")}
    assert names <= {*FILES, STATE}
    for name in names:
        match Path(name).suffix:
            case ".safetensors":
                assert load_file(folder / name)
            case ".json":
                json.loads((folder / name).read_bytes())
            case ".png":
                endings.png(folder / name)
            case ".md":
                assert (folder / name).read_text(encoding="utf-8").endswith(".\n")
    return names


# Nonsense


BAD: dict[str, str] = {
    "--epochs 0": "--epochs 0 is too small. It is at least 1.",
    "--epochs -5": "--epochs -5",
    "--epochs 1e3": "Invalid value for '--epochs'",
    "--batch-size 0": "--batch-size 0 is too small. It is at least 1.",
    "--d-model 32 --heads 3": "d_model 32 is not divisible by 3 (try 1, 2, 4, 8 …)",
    "--heads 0": "d_model 16 is not divisible by 0",
    "--d-model 0": "d_model 0 is not a size",
    "--dropout 1": "--dropout 1 is no share. It is 0 to below 1.",
    "--dropout nan": "--dropout nan is no share",
    "--dropout half": "Invalid value for '--dropout'",
    "--word-dropout -1": "--word-dropout -1 is no share",
    "--label-smoothing inf": "--label-smoothing inf is no share",
    "--learning-rate 0": "--learning-rate 0 is no rate. It is above 0 and at most 1.",
    "--learning-rate nan": "--learning-rate nan is no rate",
    "--learning-rate 1e300": "--learning-rate 1e+300 is no rate",
    "--validation 0.9": "--validation 0.9 is no share. It is 0 to below 0.5.",
    "--max-tokens 1": "--max-tokens 1 is too small. It is at least 2.",
    "--crop 1": "--crop 1 is too small. It is at least 2.",
    "--seed -1": "--seed -1 is out of range",
    "--seed 9223372036854775808": "is out of range",
    "--bigrams -1": "--bigrams -1 is too small. It is at least 0.",
    "--size 2": "--size 2 is too small. 3 entries are special tokens.",
    "--min-frequency 0": "--min-frequency 0 is too small",
    "--min-frequency 1000000": "no word of it occurs often enough for --min-frequency",
    "--layers 0": "--layers 0 is too small. It is at least 1.",
    "--layers 1000000000": "--layers 1000000000 is too large. It is at most 1,000.",
    "--max-tokens 1000000000": "--max-tokens 1000000000 is too large. It is at most 1,000,000.",
    "--patience 0": "--patience 0 is too small. It is at least 1.",
    "--norm none": "'pre', 'post'",
    "--pool max": "'mean', 'cls', 'attention'",
    "--storage int4": "'float32', 'float16', 'int8'",
    "--keep tail": "'head', 'head-tail'",
    "--tokenizer wordpiece": "'word', 'bpe'",
    "--device cuda:99": "no device 'cuda:99' on this machine",
    "--split train[:0]": "sample train[:0] selects no texts",
    "--split train[:1]": "every text has the label 1",
    "--split train[:2]": "only one text has the label 0",
    "--dataset sampel": "Did you mean 'sample'?",
    "--dataset missing.csv": "no file or folder missing.csv",
    "--text-column words": "has no column 'words'",
}


@pytest.mark.parametrize(("given", "said"), BAD.items(), ids=BAD)
def test_numbers_and_names_that_cannot_be(given: str, said: str, run_here: RunHere, tmp_path: Path) -> None:
    run = refused(run_here(*TINY, *given.split()), said)
    assert run.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_width_beyond_all_memory(run_here: RunHere, tmp_path: Path) -> None:
    refused(run_here(*TINY, "--d-model", "10000000000", "--heads", "1"), "not enough memory", code=1)
    assert list(tmp_path.iterdir()) == []


DATA: dict[str, tuple[str, str, str]] = {
    "texts without labels": ("a.txt", "good\nbad\nfine\n", "a.txt train[0] has no label. Training needs a label"),
    "a column that is no label": ("a.csv", "text,stars\ngood,1\nbad,0\n", "a.csv train[0] has no label"),
    "a label that is none": ("a.csv", "text,label\na,0\nb,1\nc,\n", "a.csv train[2] has no label"),
    "a label in words": ("a.csv", "text,label\na,neg\nb,lukewarm\n", "a.csv train[1] has no label"),
    "one label": ("a.csv", "text,label\na,1\nb,1\n", "every text has the label 1"),
    "a label of one text": ("a.csv", "text,label\na,1\nb,1\nc,0\n", "only one text has the label 0"),
    "a gap": ("a.csv", "text,label\na,0\nb,0\nc,2\nd,2\n", "the labels are 0, 2. They have to be 0, 1, 2 and so on."),
    "counted from 1": ("a.csv", "text,label\na,1\nb,1\nc,2\nd,2\n", "the labels are 1, 2."),
    "a label beyond counting": ("a.csv", "text,label\na,0\nb,0\nc,12345678\nd,12345678\n", "are 0, 12345678"),
    "a blank text": ("a.csv", "text,label\na a,0\na b,0\n ,1\nb b,1\n", "text 2 of the split has no tokens"),
    "an empty text": ("a.csv", 'text,label\na a,0\na b,0\n"",1\nb b,1\n', "text 2 of the split has no tokens"),
    "nothing but blanks": ("a.csv", "text,label\n ,0\n ,0\n ,1\n ,1\n", "no tokens in the text"),
    "no texts": ("a.csv", "text,label\n", "a.csv train selects no texts"),
    "an empty file": ("a.csv", "", "a.csv:1: the file is empty"),
    "no csv": ("a.csv", "text,label\na,1,2\n", "a.csv:2: 3 fields where the header has 2"),
    "no text column": ("a.csv", "words,label\na,1\n", "a.csv:1 has no column called text"),
}


@pytest.mark.parametrize(("name", "content", "said"), DATA.values(), ids=DATA)
def test_data_that_nothing_can_be_learned_from(
    name: str, content: str, said: str, run_here: RunHere, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    run = refused(run_here("train", "--dataset", name, *TINY[3:], "--min-frequency", "1"), said)
    assert run.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]


HOSTILE = (
    "[/]",
    "[red]",
    "$$ $_$ ${$",
    "</script>",
    "| a | b",
    "\x1b[31mred\x07",
    "\u202eevil",
    "[PAD] [CLS]",
    "猫 😀",
)


def test_texts_are_data(run_here: RunHere, tmp_path: Path) -> None:
    """Whatever stands in them, and however long one is."""
    texts = [*HOSTILE, "x" * 100_000, "word " * 20_000]
    rows = [{"text": f"{text} number {n}", "label": n % 2} for n, text in enumerate(texts * 2)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "[red] $x$ <b>.jsonl").write_text(lines, encoding="utf-8")
    run = worked(run_here("train", "--dataset", "[red] $x$ <b>.jsonl", *TINY[3:], "--crop", "64"))
    assert "trained on [red] $x$ <b>.jsonl train" in run.stdout
    assert check_whole(tmp_path / "model") == FILES


# Places


NO_FOLDERS = {
    "a file": ("file", "file is not a folder. Choose another --out.", 2),
    "below a file": ("file/below", "file is not a folder. Choose another --out.", 2),
    "a device": ("/dev/null", "/dev/null is not a folder. Choose another --out.", 2),
    "300 characters": ("a" * 300, "File name too long", 74),
    "a folder of the system": ("/proc/attention", "cannot make the folder /proc/attention", 74),
}


@pytest.mark.parametrize("more", [(), ("--resume",)], ids=["", "--resume"])
@pytest.mark.parametrize(("out", "said", "code"), NO_FOLDERS.values(), ids=NO_FOLDERS)
def test_no_folder(out: str, said: str, code: int, more: tuple[str, ...], run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    run = refused(run_here(*TINY, "--out", out, *more), said, code=code)
    assert "epoch" not in run.stderr
    assert contents(tmp_path) == {"file": b"mine"}
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def on_disk(options: str, folder: Path, *more: str) -> tuple[Run, Path]:
    """A run that trains onto a disk of its own, and a copy of what it left there."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare on this machine")
    (folder / "disk").mkdir()
    script = f'mount -t tmpfs -o {options} tmpfs disk || exit 99; "$@"; code=$?; cp -R disk left; exit $code'
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"),
            *(sys.executable, "-m", "attnviz", *TINY, "--out", "disk", *more),
        ],
        cwd=folder,
        env=surroundings(),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode == 99 or done.stderr.startswith(b"unshare"):
        pytest.skip("this machine lets no user mount a disk")
    return Run(done.returncode, done.stdout, done.stderr), folder / "left"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "refusing", "left"),
    [
        ("24k", STATE, set()),
        ("60k", "model.safetensors", {STATE, "tokenizer.json", "config.json"}),
        ("100k", STATE, {STATE, *CHECKPOINT}),
        ("250k", STATE, {STATE, *CHECKPOINT}),
    ],
    ids=["before the first step", "the first model", "after one epoch", "after two epochs"],
)
def test_a_full_disk(size: str, refusing: str, left: set[str], run_here: RunHere, tmp_path: Path) -> None:
    """A state takes up to 140 KiB, and for a moment there are two. With more room it goes on to the same bytes."""
    run, disk = on_disk(f"size={size}", tmp_path)
    refused(run, f"cannot write disk/{refusing}: No space left on device", code=74)
    assert set(contents(disk)) == left
    worked(run_here(*TINY, "--out", "whole"))
    worked(run_here(*TINY, "--out", disk, "--resume"))
    assert contents(disk) == contents(tmp_path / "whole")


def test_a_read_only_disk_is_noticed_before_the_work(tmp_path: Path) -> None:
    run, disk = on_disk("ro", tmp_path)
    refused(run, f"cannot write disk/{STATE}: Read-only file system", code=74)
    assert "epoch" not in run.stderr
    assert contents(disk) == {}


def test_a_folder_where_a_file_should_go(run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "model/metrics.json/mine").mkdir(parents=True)
    refused(run_here(*TINY), "cannot write model/metrics.json: Is a directory", code=74)
    assert check_whole_but(tmp_path / "model", METRICS) == {STATE, *CHECKPOINT}
    (tmp_path / "model/metrics.json/mine").rmdir()
    (tmp_path / "model/metrics.json").rmdir()
    worked(run_here(*TINY, "--resume"))
    assert check_whole(tmp_path / "model") == FILES


def check_whole_but(folder: Path, name: str) -> set[str]:
    (folder / name).rename(folder.parent / name)
    found = check_whole(folder)
    (folder.parent / name).rename(folder / name)
    return found


def test_devices_stay_devices(run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/README.md").symlink_to("/dev/null")
    worked(run_here(*TINY))
    assert (tmp_path / "model/README.md").readlink() == Path("/dev/null")
    (tmp_path / "model" / STATE).symlink_to("/dev/null")
    refused(run_here(*TINY, "--resume"), f"model/{STATE} is no training run to go on with")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


# Files that are damaged


@pytest.fixture
def unfinished(run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was left after seven steps of ten."""
    from attnviz.models.training import TrainingStep
    from attnviz.specs import TrainSpec

    sizes = {"batch_size": 8, "d_model": 16, "heads": 2, "bigrams": 50, "size": 300}
    events = train(TrainSpec(dataset="sample", epochs=2, out=str(tmp_path / "model"), **sizes))  # type: ignore[arg-type]
    for event in events:
        if isinstance(event, TrainingStep) and event.number == 7:
            events.close()
    assert check_whole(tmp_path / "model") == {STATE, *CHECKPOINT}
    return tmp_path / "model"


def told(**changed: object) -> Damage:
    """Other words beside the tensors; None takes one away."""

    def change(file: Path) -> None:
        with safe_open(file, "pt") as opened:
            ((key, words),) = opened.metadata().items()
        found = {name: value for name, value in {**json.loads(words), **changed}.items() if value is not None}
        save_file(load_file(file), file, {key: json.dumps(found)})

    return change


def garbled(file: Path) -> None:
    with safe_open(file, "pt") as opened:
        save_file(load_file(file), file, dict.fromkeys(opened.metadata(), "{"))


def without_the_model(file: Path) -> None:
    with safe_open(file, "pt") as opened:
        metadata = opened.metadata()
    save_file(
        {name: tensor for name, tensor in load_file(file).items() if not name.startswith("model.")}, file, metadata
    )


def no_metadata(file: Path) -> None:
    save_file(load_file(file), file)


STATES: dict[str, Damage] = {
    **{damage.__name__: damage for damage in DAMAGES if damage is not missing},
    "no metadata": no_metadata,
    "words that are no JSON": garbled,
    "no identity": told(identity=None),
    "an identity of another kind": told(identity=[1]),
    "a rest of another kind": told(rest=[1]),
    "a rest without a history": told(rest={"done": 7}),
    "no model": without_the_model,
}


@pytest.mark.parametrize("damage", STATES.values(), ids=STATES)
def test_a_damaged_state(damage: Damage, unfinished: Path, run_here: RunHere, tmp_path: Path) -> None:
    damage(unfinished / STATE)
    run = refused(run_here(*TINY, "--resume"), f"model/{STATE} is no training run to go on with")
    assert run.stderr.count("\n") == 1
    assert not (tmp_path / TRACE).exists()
    (unfinished / STATE).unlink(missing_ok=True) if (unfinished / STATE).is_file() else (unfinished / STATE).rmdir()
    worked(run_here(*TINY, "--resume"))
    worked(run_here(*TINY, "--out", "whole"))
    assert contents(unfinished) == contents(tmp_path / "whole")


@pytest.mark.parametrize("damage", [damage for damage in DAMAGES if damage is not missing], ids=lambda d: d.__name__)
def test_damaged_metrics(damage: Damage, run_here: RunHere, tmp_path: Path) -> None:
    worked(run_here(*TINY))
    damage(tmp_path / "model" / METRICS)
    refused(run_here(*TINY, "--resume"), f"model/{METRICS} holds no metrics of ours")
    assert not (tmp_path / TRACE).exists()


def test_a_model_that_was_changed_is_not_vouched_for(run_here: RunHere, tmp_path: Path) -> None:
    worked(run_here(*TINY))
    weights = tmp_path / "model/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x55")
    refused(run_here(*TINY, "--resume"), "model/model.safetensors is not what metrics.json tells of")


@pytest.mark.slow
@pytest.mark.parametrize("file", [STATE, METRICS])
def test_a_pickle_in_a_process(file: str, unfinished: Path, run_cli: RunCli, tmp_path: Path) -> None:
    if file == METRICS:
        (unfinished / STATE).unlink()
    (damage,) = (damage for damage in DAMAGES if damage.__name__ == "pickled")
    damage(unfinished / file)
    refused(run_cli(*TINY, "--resume"), f"model/{file}")
    assert not (tmp_path / TRACE).exists()


def test_another_run_in_the_folder(unfinished: Path, run_here: RunHere) -> None:
    before = contents(unfinished)
    refused(run_here(*TINY), "model holds an unfinished training run. Go on with it by --resume, or choose another")
    refused(run_here(*TINY, "--resume", "--seed", "3"), "the run in model has --seed 0, not 3")
    refused(run_here(*TINY, "--resume", "--split", "test"), "the run in model has other texts")
    assert contents(unfinished) == before


# Ctrl-C and kill -9, of real processes


def started(folder: Path, *args: str, **more: int) -> subprocess.Popen[bytes]:
    """A run that can be stopped as from a terminal, also where the tests themselves ignore Ctrl-C."""
    return subprocess.Popen(
        [sys.executable, "-m", "attnviz", *args],
        cwd=folder,
        env=surroundings(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=more.get("stderr", subprocess.PIPE),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def told_until(process: subprocess.Popen[bytes], wanted: str) -> list[str]:
    """The lines on standard error up to the first one that holds `wanted`; all where none does."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.decode())
        if wanted in lines[-1]:
            break
    return lines


def ended(process: subprocess.Popen[bytes], lines: list[str]) -> Run:
    out, err = process.communicate(timeout=PATIENCE)
    return Run(process.returncode, out, "".join(lines).encode() + err)


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_epoch_and_the_state(run_here: RunHere, tmp_path: Path) -> None:
    process = started(tmp_path, *LONG)
    lines = told_until(process, "epoch 3/60 ")
    process.send_signal(signal.SIGINT)
    run = ended(process, lines)
    assert (run.exit_code, run.out) == (130, b"")
    check_streams(run)
    *_, what, how = notes(run)
    stopped = re.fullmatch(r"stopped after step (\d+) of 300; model holds epoch \d+, held-out accuracy \d\.\d{4}", what)
    assert stopped is not None
    assert how == "the same command with --resume goes on"
    assert check_whole(tmp_path / "model") == {STATE, *CHECKPOINT}
    worked(run_here("heatmap", "--text", "a good film", "--model", "model", "--table", "none"))

    again = worked(run_here(*LONG, "--resume"))
    assert notes(again)[1] == f"going on after step {stopped[1]} of 300"
    worked(run_here(*LONG, "--out", "whole"))
    assert contents(tmp_path / "model") == contents(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.005])
def test_ctrl_c_twice(seconds: float, run_here: RunHere, tmp_path: Path) -> None:
    """Ends the run at the latest now; whatever was at work, the folder holds a run to go on with."""
    process = started(tmp_path, *ENDLESS)
    lines = told_until(process, "epoch 2/")
    process.send_signal(signal.SIGINT)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    run = ended(process, lines)
    assert run.exit_code in STOPPED
    assert run.out == b""
    check_streams(run)
    assert "error" not in run.stderr
    assert check_whole(tmp_path / "model") == {STATE, *CHECKPOINT}


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.1, 0.5, 1.5])
def test_ctrl_c_before_the_first_step(seconds: float, tmp_path: Path) -> None:
    """While libraries are imported and texts are read: silent."""
    process = started(tmp_path, *ENDLESS)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    run = ended(process, [])
    assert run.exit_code in STOPPED
    assert run.out == b""
    if seconds > 0.2:  # before, Python itself is starting
        check_streams(run)
        assert "error" not in run.stderr


@pytest.mark.slow
def test_killed_ten_times_and_gone_on_with(run_here: RunHere, tmp_path: Path) -> None:
    """`kill -9` at random moments: what is there is whole each time, and at last every byte is that of a whole run."""
    moments = random.Random(0)
    epoch = 0
    for _ in range(10):
        process = started(tmp_path, *LONG, "--resume")
        lines = told_until(process, f"epoch {epoch + moments.randint(1, 4)}/" if epoch else "training on")
        time.sleep(moments.uniform(0, 0.05))
        process.kill()
        run = ended(process, lines)
        assert run.exit_code == -signal.SIGKILL, run.stderr
        assert "error" not in run.stderr
        names = check_whole(tmp_path / "model")
        assert names <= {STATE, *CHECKPOINT}
        (tmp_path / "model/.model.safetensors.999999999.part").write_bytes(b"half")
        found = re.findall(r"epoch (\d+)/", run.stderr)
        epoch = max(int(found[-1]) if found else 0, epoch, 1)
    again = worked(run_here(*LONG, "--resume"))
    assert any(note.startswith("going on after step ") for note in notes(again))
    worked(run_here(*LONG, "--out", "whole"))
    assert contents(tmp_path / "model") == contents(tmp_path / "whole")
    assert set(contents(tmp_path / "model")) == FILES


# Streams


@pytest.mark.slow
def test_standard_error_that_nobody_reads(tmp_path: Path) -> None:
    """A model is worth more than what is said about it."""
    reading, writing = os.pipe()
    os.close(reading)
    process = started(tmp_path, *TINY, "--json", stderr=writing)
    os.close(writing)
    out, _ = process.communicate(timeout=PATIENCE)
    assert json.loads(out) == json.loads((tmp_path / "model" / METRICS).read_bytes())
    assert check_whole(tmp_path / "model") == FILES
    assert process.returncode == 0


@pytest.mark.slow
def test_a_reader_that_leaves(tmp_path: Path) -> None:
    """All is written before it is shown."""
    reading, writing = os.pipe()
    os.close(reading)
    program = [sys.executable, "-m", "attnviz", *TINY]
    done = subprocess.run(
        program, cwd=tmp_path, env=environment(), stdout=writing, stderr=subprocess.PIPE, check=False, timeout=PATIENCE
    )
    os.close(writing)
    run = Run(done.returncode, b"", done.stderr)
    assert run.exit_code == 1
    check_streams(run)
    assert "error" not in run.stderr
    assert check_whole(tmp_path / "model") == FILES


@pytest.mark.slow
def test_streams_that_are_closed(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "attnviz", *TINY]
    done = subprocess.run(
        ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *program],
        cwd=tmp_path,
        env=environment(),
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0
    assert check_whole(tmp_path / "model") == FILES


def on_terminal(folder: Path, *args: str, env: Mapping[str, str], keys: bytes = b"") -> tuple[int, str]:
    """A run whose standard error is a terminal; `keys` are typed when the first epoch was told."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "attnviz", *args],
        cwd=folder,
        env={**surroundings(), "TERM": "xterm", **env},
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=terminal_of_ours,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            read = os.read(ours, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not read:
            break
        shown += read
        if keys and b"held out: loss" in shown:
            os.write(ours, keys)
            keys = b""
    os.close(ours)
    return process.wait(timeout=PATIENCE), shown.decode()


def terminal_of_ours() -> None:
    """In the new process: Ctrl-C on the terminal is a signal to it."""
    import fcntl
    import termios

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)


CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
TOLD = re.compile(r"epoch (\d)/2  loss \d\.\d{3}  accuracy \d\.\d{3}  \d+ texts/s; held out: loss \d\.\d{4}, accuracy ")
TERMINALS: dict[str, dict[str, str]] = {
    "80 columns": {"COLUMNS": "80"},
    "NO_COLOR in ASCII": {"NO_COLOR": "1", "PYTHONIOENCODING": "ascii"},
    "TERM=dumb": {"TERM": "dumb"},
    "COLUMNS=1": {"COLUMNS": "1"},
}


@pytest.mark.slow
@pytest.mark.parametrize("env", TERMINALS.values(), ids=TERMINALS)
def test_on_a_terminal(env: Mapping[str, str], tmp_path: Path) -> None:
    """A bar that is gone at the end, and a line per epoch that stays, with no number cut in two."""
    code, shown = on_terminal(tmp_path, *TINY, env=env)
    assert code == 0, shown
    assert "Traceback" not in shown
    plain = CONTROL.sub("", shown)
    assert "\x1b" not in plain
    assert TOLD.findall(plain) == ["1", "2"]
    if env.get("TERM") == "dumb":
        assert plain == shown
        assert [line for line in shown.splitlines() if not line.startswith("note: ")] == []
        return
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1, "the cursor is shown again"
    bar, after = shown[shown.index("\x1b[?25l") :].split("\x1b[?25h")
    assert after.startswith("\r\x1b[1A\x1b[2Knote: wrote 6 files to model/"), "and the bar is taken away"
    if env.get("COLUMNS") != "1":
        assert ("---" if "PYTHONIOENCODING" in env else "━━━") in bar
        assert " %" in bar
    colours = re.findall(r"\x1b\[[0-9;]*m", shown)
    assert bool(colours) == ("NO_COLOR" not in env and env.get("COLUMNS") != "1")


@pytest.mark.slow
def test_ctrl_c_on_a_terminal(tmp_path: Path) -> None:
    code, shown = on_terminal(tmp_path, *ENDLESS, env={}, keys=b"\x03")
    assert code == 130
    assert "Traceback" not in shown
    *_, what, how = CONTROL.sub("", shown).splitlines()
    assert "note: stopped after step " in what
    assert "; model holds epoch " in what
    assert how == "note: the same command with --resume goes on"
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1
    assert check_whole(tmp_path / "model") == {STATE, *CHECKPOINT}
