"""What cannot be is refused at once: exit 2, one line that says the problem and the next move, and no files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from attnviz.commands.batch.manifests import to_bytes
from attnviz.store.manifest import Entry, Manifest
from tests.attacks.endings import RunHere, check_streams, refused, run_in
from tests.process import PROGRAM, RunCli

LONG = "x" * 300
OPTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "an index that is no number": (("--index", "x"), "'x' does not say which text"),
    "a seed below zero": (("--text", "a", "--seed", "-1"), "--seed -1"),
    "no keys": (("--text", "a", "--top-k", "0"), "--top-k 0"),
    "no tokens wanted": (("--text", "a", "--max-tokens", "0"), "--max-tokens 0"),
    "padding up to nothing": (("--text", "a", "--show-padding"), "Give both."),
    "heads of 5,000 digits": (("--text", "a", "--model", "multi:" + "9" * 5_000), "Write the number of heads"),
    "a long name": (("--text", "a", "--model", "x" * 300), "no model or checkpoint folder 'xxx"),
    "nobody's home": (("--text", "a", "--model", "~nouser/x"), "no model or checkpoint folder '~nouser/x'"),
    "weights beyond all": (("--text", "a", "--d-model", "65536"), "the weights of 1 layers of 65536 need"),
}


def test_no_tokens_on_standard_input_or_in_a_file(run_here: RunHere, run_cli: RunCli, tmp_path: Path) -> None:
    refused(run_cli("heatmap", "--text-file", "-", "--json", stdin=b"\n"), "no tokens in the text")
    (tmp_path / "empty.txt").write_bytes(b"")
    refused(run_here("heatmap", "--text-file", "empty.txt"), "no tokens in the text")
    refused(run_here("vocab", "--text", " "), "no tokens in the text")


@pytest.mark.parametrize("device", ["cuda", "cuda:7", "foo"])
def test_a_device_that_is_not_here(device: str, run_here: RunHere) -> None:
    from attnviz.models.device import available

    here = available()
    if device in here or (device == "cuda" and len(here) > 1):
        pytest.skip(f"this machine has {device}")
    said = f"no device {device!r} on this machine. There is {', '.join(['auto', *here])}."
    refused(run_here("heatmap", "--text", "a b", "--device", device), said)


@pytest.mark.parametrize(("given", "said"), OPTIONS.values(), ids=OPTIONS)
def test_options(given: tuple[str, ...], said: str, run_here: RunHere, tmp_path: Path) -> None:
    refused(run_here("heatmap", *given), said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "args",
    [
        ("heatmap", "--text", "a", "--model", "./loop"),
        ("heatmap", "--text", "a", "--heads", "2", "--vocab", "loop"),
        ("heatmap", "--text-file", "loop"),
        ("heatmap", "--dataset", "./loop"),
        ("render", "loop"),
        ("diff", "loop", "loop"),
        ("batch", "loop"),
        ("diff", "loop", "--again"),
        ("heatmap", "--text", "a", "--out", "loop"),
        ("vocab", "--out", "loop/below"),
    ],
    ids=" ".join,
)
def test_a_loop_of_links(args: tuple[str, ...], run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    refused(run_here(*args), "loop")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("diff", LONG, "made"), 2),
        (("diff", LONG, "--again"), 2),
        (("diff", "made", "--again"), 3),  # of which a job has such a vocabulary
    ],
    ids=lambda given: " ".join(given).replace(LONG, "xxx") if isinstance(given, tuple) else str(given),
)
def test_a_name_that_no_file_can_have(args: tuple[str, ...], code: int, run_here: RunHere, tmp_path: Path) -> None:
    entry = Entry("job", "heatmap", {"vocab": LONG}, "", {}, (), (), ())
    (tmp_path / "made").mkdir()
    (tmp_path / "made/manifest.json").write_bytes(to_bytes(Manifest({}, {}, (entry,))))
    run = run_here(*args)
    assert run.exit_code == code, run.stderr
    check_streams(run)


@pytest.mark.parametrize("n_files", [8, 12])
def test_too_few_open_files(n_files: int, tmp_path: Path) -> None:
    if shutil.which("sh") is None:
        pytest.skip("no shell on this machine")
    limited = ("sh", "-c", f'ulimit -n {n_files} && exec "$@"', "sh", *PROGRAM)
    run = run_in(tmp_path, *limited, "heatmap", "--text", "a b")
    assert run.exit_code in (0, 1)
    assert run.exit_code == 0 or run.stderr.startswith("error: too many open files")


@pytest.mark.parametrize(
    "given",
    [
        ("heatmap", "--text-file", "no\x1b[31m such\u202e.txt"),
        ("heatmap", "--model", "\x1b]0;x\x07"),
        ("heatmap", "--device", "cpu\ufeff", "--text", "a"),
        ("heatmap", "--no-such\x1b[31m"),
        ("heatmap", "--head", "x" * 100_000, "--text", "a"),
        ("render", "no\x1b such"),
        ("\x1b[31m",),
    ],
    ids=ascii,
)
def test_names_reach_the_terminal_written_out(given: tuple[str, ...], run_here: RunHere) -> None:
    assert len(refused(run_here(*given)).err) < 2000
