"""What would take more memory than there is, or more than allowed, is refused before it is taken."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attnviz import store
from attnviz.cli import show
from attnviz.commands.batch.manifests import to_bytes
from attnviz.commands.batch.workers import describe_file
from attnviz.commands.survey.measure import BLOCK
from attnviz.models.encoder_model import EncoderModel
from attnviz.running import Progress
from attnviz.store.manifest import Entry, Manifest
from tests.attacks.endings import RunHere, environment, refused, run_in_shell, worked
from tests.made import known, record

ADDRESSES = 16 * 2**20  # KiB: enough for every library, and less than half of what is asked for below
# The kernel counts those that are waited for; workers outlive who started them for a moment, and are then this one's.
COUNT = """
import contextlib, ctypes, os, resource, subprocess, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
code = subprocess.call(sys.argv[1:])
with contextlib.suppress(ChildProcessError):
    while True:
        os.wait()
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""
LONG = " ".join(f"w{number % 500}" for number in range(20_000))


def test_what_the_hint_says_is_true(run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text(LONG, encoding="utf-8")
    asked = ("heatmap", "--text-file", "long.txt", "--heads", "8", "--max-memory", "0.5", "--table", "none")
    said = refused(run_here(*asked)).stderr
    fitting = known(re.search(r"--max-tokens (\d+) fits; --max-memory (\S+) allows", said))
    worked(run_here(*(fitting[2] if each == "0.5" else each for each in asked), "--head", "0"))
    fits, beyond = int(fitting[1]), str(int(fitting[1]) + 1)
    refused(run_here(*asked, "--max-tokens", beyond, "--rollout"), f"--max-tokens {fits} fits")
    assert "no room in --max-memory" in worked(run_here(*asked, "--max-tokens", beyond, "--head", "0")).stderr
    assert "no room" not in worked(run_here(*asked, "--max-tokens", str(fits), "--head", "0")).stderr


@pytest.mark.slow
def test_max_memory_bounds_the_process(run_here: RunHere, tmp_path: Path) -> None:
    """As the kernel counts, of the most tokens that fit: all measures and rollout, and the record drawn again."""
    (tmp_path / "long.txt").write_text(LONG, encoding="utf-8")
    drawn = ("--max-memory", "0.6", "--measure", "all", "--rollout", "--table", "none", "--head", "0")
    asked = ("heatmap", "--text-file", "long.txt", "--heads", "8", "--layers", "4", *drawn)
    fitting = known(re.search(r"--max-tokens (\d+) fits", refused(run_here(*asked)).stderr))
    assert int(fitting[1]) > 500
    more = ("--max-tokens", fitting[1], "--weigh", "values", "--merge", "words")
    assert peak(tmp_path, *asked, *more) < 0.6 * 2**30
    assert peak(tmp_path, "render", "attention/attention.safetensors", *drawn) < 0.6 * 2**30


@pytest.mark.slow
def test_no_process_of_a_survey_takes_more_than_500_mb(tmp_path: Path) -> None:
    """Of a whole block of the longest texts that are read where nothing is said, with all that can be measured; 504 MB
    were seen, of the process that draws.
    """
    line = json.dumps({"text": LONG[: 6 * 512]}) + "\n"
    (tmp_path / "long.jsonl").write_text(line * BLOCK, encoding="utf-8")
    asked = ("--measure", "all,to_own_bracket", "--probe", "repeat", "--ablate", "zero,mean,uniform,queries")
    survey = ("survey", "--model", "multi", "--dataset", "long.jsonl", "--workers", "2", *asked, "--null", "shuffled")
    assert peak(tmp_path, *survey) < 500e6


def peak(folder: Path, *args: str) -> int:
    """How many bytes `attnviz *args`, or the largest process of its own, had at once, by a small process: the kernel
    counts what is there before `exec`.
    """
    if sys.platform == "win32":
        pytest.skip("this system does not say what a process took")
    command = [sys.executable, "-c", COUNT, sys.executable, "-m", "attnviz", *args]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, check=True)
    return int(done.stdout.splitlines()[-1]) * (1 if sys.platform == "darwin" else 1024)


@pytest.mark.slow
def test_what_answers_take_grows_with_the_texts_by_little(shared: Path, tmp_path: Path) -> None:
    """By the text and its numbers, which are printed: 2.4 to 2.5 kB. What a process takes strays by 10 MB."""
    asked = ("predict", "--dataset", str(shared / "data/imdb"), "--max-tokens", "16", "--print", "csv", "--split")
    few, many = (peak(tmp_path, *asked, f"test[:{n_texts}]") for n_texts in (500, 5_000))
    assert (many - few) / 4_500 < 6_000
    assert many < 500e6


def test_all_records_of_a_comparison_are_counted_together(
    run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them fits; and before the first forward pass, though another text comes first."""
    (tmp_path / "long.txt").write_text(LONG, encoding="utf-8")
    drawn = ("--text-file", "long.txt", "--max-tokens", "600", "--max-memory", "0.66")
    worked(run_here("heatmap", "--heads", "8", *drawn, "--head", "0", "--table", "none"))
    monkeypatch.delattr(EncoderModel, "attention")
    both = ("compare", "multi:8", "multi:4", "--text", "a b", *drawn)
    refused(run_here(*both), "600 tokens × 24 heads × 1 layer need 0.67 GiB, allowed are 0.66")


def test_what_is_compared_or_classified_is_counted_before_it_is_read(run_here: RunHere, tmp_path: Path) -> None:
    """Two records, the files of two batches, and texts side by side; each fits into what the others would take."""
    for name in ("a", "b"):
        store.save(record(np.full((1, 2, 500, 500), 1 / 500)), tmp_path / f"{name}.safetensors")
        made = tmp_path / name / "job/attention.safetensors"
        made.parent.mkdir(parents=True)
        shutil.copy(tmp_path / f"{name}.safetensors", made)
        entry = Entry("job", "heatmap", {}, "", {}, (), (), (describe_file(made, tmp_path / name),))
        (tmp_path / name / "manifest.json").write_bytes(to_bytes(Manifest({}, {}, (entry,))))
    (tmp_path / "long.txt").write_text(LONG, encoding="utf-8")
    for run, needed, what in (
        (("diff", "a.safetensors", "b.safetensors"), 0.46, "b.safetensors on both sides need 0.46 GiB"),
        (("diff", "a", "b"), 0.46, "job/attention.safetensors on both sides need 0.46 GiB"),
        (("predict", "--text-file", "long.txt", "--max-tokens", "10000"), 0.54, "texts of 10,000 tokens, 1 at a time"),
    ):
        refused(run_here(*run, "--max-memory", f"{needed - 0.01}"), what)
        worked(run_here(*run, "--max-memory", f"{needed}"))


def test_what_has_no_end_is_read_up_to_a_bound(run_here: RunHere, tmp_path: Path) -> None:
    zeros = Path("/dev/zero")
    if not zeros.exists():
        pytest.skip("no such device on this machine")
    (tmp_path / "zeros.csv").symlink_to(zeros)
    refused(run_here("heatmap", "--text-file", zeros), "/dev/zero is longer than the 16 MiB of one text")
    refused(run_here("heatmap", "--dataset", "zeros.csv"), "zeros.csv is not a text: it holds bytes")
    refused(run_here("render", zeros), "cannot read /dev/zero: not a regular file")
    refused(run_here("heatmap", "--text", "a", "--heads", "2", "--vocab", zeros), "not a regular file")


def test_a_small_parquet_of_many_texts(run_here: RunHere, tmp_path: Path) -> None:
    """One text of 20 kB, 400,000 times: 40 kB as a file, 8 GB as texts."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    places = pyarrow.array(np.zeros(400_000, dtype=np.int32))
    texts = pyarrow.DictionaryArray.from_arrays(places, pyarrow.array(["x " * 10_000]))
    parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "many.parquet", compression="zstd")
    before = pyarrow.total_allocated_bytes()
    refused(
        run_here("heatmap", "--dataset", "many.parquet"), "the texts that --split chooses need 4 GiB, allowed are 4"
    )
    assert pyarrow.default_memory_pool().max_memory() - before < 500e6
    few = ("--index", "1", "--max-tokens", "5", "--head", "0", "--table", "none")
    worked(run_here("heatmap", "--dataset", "many.parquet", *few))


def test_very_many_heads_are_drawn_only_when_they_are_chosen(run_here: RunHere, tmp_path: Path) -> None:
    store.save(record(np.eye(2)[None, None].repeat(30, 0).repeat(20, 1)), tmp_path / "many.safetensors")
    said = ("--all-heads would draw 600 pictures, at most 500 are drawn at once", "--head 0-19 draws all")
    refused(run_here("render", "many.safetensors", "--table", "none", "--all-heads"), *said)
    worked(run_here("render", "many.safetensors", "--table", "none", "--out", "small"))
    assert [file.name for file in (tmp_path / "small").iterdir()] == ["overview.png"]
    worked(run_here("render", "many.safetensors", "--layer", "3", "--head", "7", "--table", "none"))
    assert [file.name for file in (tmp_path / "attention").iterdir()] == ["layer-3-head-7.png"]


def test_long_work_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(show, "LOG_INTERVAL", -1.0)
    log = show.ProgressLog()
    log.show(Progress(1, show.MIN_LOGGED_TOTAL, "pictures", "a.png"))
    log.show(Progress(2, show.MIN_LOGGED_TOTAL + 1, "pictures", "b.png"))
    assert capsys.readouterr().err == f"note: 2 of {show.MIN_LOGGED_TOTAL + 1} pictures: b.png\n"


def test_memory_that_is_not_there(tmp_path: Path) -> None:
    """A width that the option allows and a process of 16 GiB cannot have: refused before it is taken, not after."""
    asked = ("heatmap", "--text", "a b", "--d-model", "65536", "--max-memory", "1000")
    run = run_in_shell(tmp_path, f'ulimit -v {ADDRESSES} && exec "$@"', *asked)
    refused(run, "not enough memory", code=1)
