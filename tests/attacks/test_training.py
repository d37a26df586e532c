"""Training that is given nonsense, or no place to write to: one line, and what was kept is not lost."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest

from tests.attacks.endings import RunHere, refused, with_disks, worked
from tests.attacks.trainings import CHECKPOINT, FILES, METRICS, STATE, TINY, check_whole, contents
from tests.process import Run

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
    "--size 100000000000000000000": "--size 100000000000000000000 is too large. It is at most 10,000,000.",
    "--size -100000000000000000000": "--size -100000000000000000000 is too small",
    "--tokenizer bpe --size 1000000000000": "--size 1000000000000 is too large",
    "--min-frequency 0": "--min-frequency 0 is too small",
    "--min-frequency 100000000000000000000": "is too large. It is at most 1,000,000,000,000.",
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
    refused(run_here(*TINY, "--d-model", "10000000000", "--heads", "1"), "d_model 10000000000 is too large")
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
    "a blank text": ("a.csv", "text,label\na a,0\na b,0\n ,1\nb b,1\n", "a.csv train[2] has no tokens"),
    "an empty text": ("a.csv", 'text,label\na a,0\na b,0\n"",1\nb b,1\n', "a.csv train[2] has no tokens"),
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


# One process for all of them, since most of its time goes into importing torch.
ON_EACH_DISK = f"""
import contextlib, io, json, sys
from attnviz.cli.app import run
for disk in sys.argv[1:]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([*{TINY!r}, "--out", disk])
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""
DISKS = ("size=24k", "size=60k", "size=100k", "size=250k", "ro")


@pytest.fixture(scope="module")
def on_disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that trained onto disks of their own: copies of what they left there, each beside how it ended."""
    folder = tmp_path_factory.mktemp("disks")
    mount = " && ".join(f"mkdir {disk} && mount -t tmpfs -o {disk} tmpfs {disk}" for disk in DISKS)
    done = with_disks(mount, f"mkdir left && cp -R {' '.join(DISKS)} left", folder, "-c", ON_EACH_DISK, *DISKS)
    assert done.returncode == 0, done.stderr
    for disk, line in zip(DISKS, done.stdout.splitlines(), strict=True):
        (folder / f"{disk}.json").write_bytes(line)
    return folder


def ended_on(disk: str, folder: Path) -> Run:
    code, out, err = json.loads((folder / f"{disk}.json").read_bytes())
    return Run(code, out.encode(), err.encode())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("disk", "refusing", "left"),
    [
        ("size=24k", STATE, set()),
        ("size=60k", "model.safetensors", {STATE, "tokenizer.json", "config.json"}),
        ("size=100k", STATE, {STATE, *CHECKPOINT}),
        ("size=250k", STATE, {STATE, *CHECKPOINT}),
    ],
    ids=["before the first step", "the first model", "after one epoch", "after two epochs"],
)
def test_a_full_disk(
    disk: str, refusing: str, left: set[str], on_disks: Path, whole: Path, run_here: RunHere, tmp_path: Path
) -> None:
    """A state takes up to 140 KiB, and for a moment there are two. With more room it goes on to the same bytes."""
    refused(ended_on(disk, on_disks), f"cannot write {disk}/{refusing}: No space left on device", code=74)
    shutil.copytree(on_disks / "left" / disk, tmp_path / "model")
    assert set(contents(tmp_path / "model")) == left
    worked(run_here(*TINY, "--resume"))
    assert contents(tmp_path / "model") == contents(whole)


@pytest.mark.slow
def test_a_read_only_disk_is_noticed_before_the_work(on_disks: Path) -> None:
    run = refused(ended_on("ro", on_disks), "cannot write to ro: Read-only file system", code=74)
    assert "epoch" not in run.stderr
    assert contents(on_disks / "left/ro") == {}


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
