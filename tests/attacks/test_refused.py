"""What cannot be is refused at once in one line; and whatever surrounds a run, its numbers and bytes are the same."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from attnviz import store
from attnviz.store.manifest import Entry, Manifest
from tests.attacks.endings import RunHere, check_streams, check_whole, environment, notes, refused, run_in_shell, worked
from tests.commands.batch import batches
from tests.made import random_maps
from tests.process import RunCli

LONG = "x" * 300


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
        (("diff", "made", "--again"), 3),  # of which a job has such a vocabulary
    ],
    ids=lambda given: " ".join(given).replace(LONG, "xxx") if isinstance(given, tuple) else str(given),
)
def test_a_name_that_no_file_can_have(args: tuple[str, ...], code: int, run_here: RunHere, tmp_path: Path) -> None:
    entry = Entry("job", "heatmap", {"vocab": LONG}, "", {}, (), (), ())
    batches.write(tmp_path / "made", Manifest({}, {}, (entry,)))
    run = run_here(*args)
    assert run.exit_code == code, run.stderr
    check_streams(run)


@pytest.mark.parametrize("n_files", [8, 12])
def test_too_few_open_files(n_files: int, tmp_path: Path) -> None:
    store.save(random_maps(), tmp_path / "attention.safetensors")
    run = run_in_shell(tmp_path, f'ulimit -n {n_files} && exec "$@"', "render", "attention.safetensors")
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


# --- Terminals, locales, homes and configuration files of every kind: the same numbers, whole, and the same bytes ---


PIECES = ["猫", "sat", "on", "the", "⌘", "mat"]
DRAW = ("--dpi", "40", "--table", "full")
NO_HOME = dict.fromkeys(("HOME", "MPLCONFIGDIR", "HF_HOME", "XDG_CACHE_HOME"), "/dev/null")
SURROUNDINGS: dict[str, dict[str, str | None]] = {
    "LANG=C TERM=dumb no home": {"LANG": "C", "LC_ALL": "C", "TERM": "dumb", "HOME": None},
    "PYTHONIOENCODING=ascii COLUMNS=1": {"PYTHONIOENCODING": "ascii", "COLUMNS": "1"},
    "nonsense": {"COLUMNS": "-5", "LINES": "x", "TERM": "\x1b", "MPLBACKEND": "nonsense", "FORCE_COLOR": "", **NO_HOME},
}
HOSTILE_SETTINGS = """
text.usetex: True
font.size: 40
savefig.bbox: tight
savefig.dpi: 10
figure.dpi: 10
image.cmap: gray
svg.fonttype: none
pdf.compression: 0
backend: nonsense
no.such.key: 1
axes.facecolor: ][
\x00
"""


@pytest.mark.parametrize("env", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_it_works_and_no_digit_is_cut(env: Mapping[str, str | None], run_cli: RunCli, tmp_path: Path) -> None:
    maps = random_maps(PIECES, n_layers=2)
    store.save(maps, tmp_path / "attention.safetensors")
    # Only so that a run without a home does not write into the home of whoever runs the tests.
    elsewhere = {f"XDG_{kind.upper()}_HOME": f"{environment()['HOME']}/.{kind}" for kind in ("cache", "config")}
    run = worked(run_cli("render", "attention.safetensors", *DRAW, env={**elsewhere, **env}))
    # Every weight of both heads of both layers stands in the output with its three digits, in order.
    expected = [f"{weight:.3f}" for weight in maps.weights.flat]
    shown = re.findall(r"(?<![\d.])[01]\.\d{3}(?!\d)", run.stdout)
    assert shown[: len(expected)] == expected
    assert len(expected) == 2 * 2 * 6 * 6
    assert notes(run) == []  # of a home that cannot be written, too
    ascii_only = "PYTHONIOENCODING" in env
    for sign in "猫⌘":
        assert (sign.encode("unicode_escape").decode() if ascii_only else sign) in run.stdout
    assert len(check_whole(tmp_path / "attention")) == 5


@pytest.mark.parametrize("encoding", ["ascii", "utf-16-le"])
def test_help_in_every_encoding(encoding: str, run_cli: RunCli) -> None:
    run = run_cli("heatmap", "--help", env={"PYTHONIOENCODING": f"{encoding}:strict"})
    assert (run.exit_code, run.err) == (0, b"")
    assert "--text TEXT" in run.out.decode(encoding)


def test_a_hostile_matplotlibrc(run_cli: RunCli, run_here: RunHere, tmp_path: Path) -> None:
    """In the working folder and in the environment; the pictures are those of a run without it, byte for byte."""
    asked = ("heatmap", "--text", "the $cat$ sat", "--model", "dot", "--format", "png,svg,pdf", "--table", "none")
    worked(run_here(*asked, "--out", "without"))
    (tmp_path / "matplotlibrc").write_text(HOSTILE_SETTINGS, encoding="utf-8")
    env = {**NO_HOME, "MATPLOTLIBRC": str(tmp_path / "matplotlibrc"), "MPLBACKEND": "tkagg"}
    worked(run_cli(*asked, "--out", "with", env=env))
    expected = {path.name: path.read_bytes() for path in (tmp_path / "without").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "with").iterdir()} == expected
    assert len(expected) == 4
