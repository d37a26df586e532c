"""Training on hostile texts, on damaged files, or with no place to write to: one line; what was kept stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from attnviz.commands.train.inputs import STATE
from tests.attacks.endings import RunHere, check_whole, refused, with_disks, worked
from tests.commands.train.runs import CHECKPOINT, FILES, TINY
from tests.made import content
from tests.process import Run

HOSTILE = (
    *("[/]", "[red]", "$$ $_$ ${$", "</script>", "| a | b", "\x1b[31mred\x07", "\u202eevil", "[PAD] [CLS]", "猫 😀"),
)


def test_texts_are_data(run_here: RunHere, tmp_path: Path) -> None:
    """Whatever stands in them, and however long one is."""
    texts = [*HOSTILE, "x" * 100_000, "word " * 20_000]
    rows = [{"text": f"{text} number {n}", "label": n % 2} for n, text in enumerate(texts * 2)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "[red] $x$ <b>.jsonl").write_text(lines, encoding="utf-8")
    run = worked(run_here("train", "--dataset", "[red] $x$ <b>.jsonl", *TINY[3:], "--crop", "64"))
    assert "trained on [red] $x$ <b>.jsonl train" in run.stdout
    check_whole(tmp_path / "model")
    assert content(tmp_path / "model").keys() == {*FILES}


# Places


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
DISKS = ("size=24k", "size=48k", "size=100k")


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


@pytest.mark.slow
@pytest.mark.usefixtures("few_probes", "drawn_once")
@pytest.mark.parametrize(
    ("disk", "refusing", "left"),
    [
        ("size=24k", STATE, set()),
        ("size=48k", "model.safetensors", {STATE, "tokenizer.json", "config.json"}),
        ("size=100k", STATE, {STATE, *CHECKPOINT}),
    ],
    ids=["before the first step", "the first model", "after one epoch"],
)
def test_a_full_disk(
    disk: str, refusing: str, left: set[str], on_disks: Path, run: Path, run_here: RunHere, tmp_path: Path
) -> None:
    """A state takes up to 110 KiB, and for a moment there are two. With more room it goes on to the same bytes."""
    code, out, err = json.loads((on_disks / f"{disk}.json").read_bytes())
    refused(Run(code, out.encode(), err.encode()), f"cannot write {disk}/{refusing}: No space left on device", code=74)
    shutil.copytree(on_disks / "left" / disk, tmp_path / "model")
    assert set(content(tmp_path / "model")) == left
    worked(run_here(*TINY, "--resume"))
    assert content(tmp_path / "model") == content(run)


@pytest.mark.usefixtures("few_probes", "drawn_once")
def test_a_folder_where_a_file_should_go(run: Path, run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "model/metrics.json/mine").mkdir(parents=True)
    refused(run_here(*TINY), "cannot write model/metrics.json: Is a directory", code=74)
    shutil.rmtree(tmp_path / "model/metrics.json")
    check_whole(tmp_path / "model")
    assert content(tmp_path / "model").keys() == {STATE, *CHECKPOINT}
    worked(run_here(*TINY, "--resume"))
    assert content(tmp_path / "model") == content(run)
