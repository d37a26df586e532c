"""Terminals, locales, homes and configuration files of every kind: the same numbers, whole, and the same bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import attnviz
from tests.attacks.endings import RunHere, check_whole, environment, notes, worked
from tests.process import Run, RunCli

TEXT = "猫 sat on the ⌘ mat"
DRAW = ("--heads", "2", "--dpi", "40", "--table", "full")
SURROUNDINGS: dict[str, dict[str, str | None]] = {
    "LANG=C TERM=dumb no home": {"LANG": "C", "LC_ALL": "C", "TERM": "dumb", "HOME": None},
    "an ASCII locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "PYTHONIOENCODING=ascii COLUMNS=1": {"PYTHONIOENCODING": "ascii", "COLUMNS": "1"},
    "nonsense": {"COLUMNS": "-5", "LINES": "x", "TERM": "\x1b", "MPLBACKEND": "nonsense", "FORCE_COLOR": ""},
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


def check_numbers(run: Run, folder: Path) -> None:
    """Every weight of both heads of both layers stands in the output with its three digits, in order."""
    expected = [f"{weight:.3f}" for weight in attnviz.load(folder / "attention/attention.safetensors").weights.flat]
    shown = re.findall(r"(?<![\d.])[01]\.\d{3}(?!\d)", run.stdout)
    assert shown[: len(expected)] == expected
    assert len(expected) == 2 * 2 * 6 * 6


@pytest.mark.parametrize("env", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_it_works_and_no_digit_is_cut(env: Mapping[str, str | None], run_cli: RunCli, tmp_path: Path) -> None:
    given: tuple[str, ...] = ("--text", TEXT)
    if "PYTHONUTF8" in env:  # then Python cannot read an argument, but a file is UTF-8 wherever it is read
        (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
        given = ("--text-file", "text.txt")
    # Only so that a run without a home does not write into the home of whoever runs the tests.
    elsewhere = {f"XDG_{kind.upper()}_HOME": f"{environment()['HOME']}/.{kind}" for kind in ("cache", "config")}
    run = worked(run_cli("heatmap", *given, *DRAW, env={**elsewhere, **env}))
    check_numbers(run, tmp_path)
    ascii_only = "PYTHONIOENCODING" in env or "PYTHONUTF8" in env
    for sign in "猫⌘":
        assert (sign.encode("unicode_escape").decode() if ascii_only else sign) in run.stdout
    assert len(check_whole(tmp_path / "attention")) == 5


@pytest.mark.parametrize("encoding", ["ascii", "utf-16-le"])
def test_help_in_every_encoding(encoding: str, run_cli: RunCli) -> None:
    run = run_cli("heatmap", "--help", env={"PYTHONIOENCODING": f"{encoding}:strict"})
    assert (run.exit_code, run.err) == (0, b"")
    assert "--text TEXT" in run.out.decode(encoding)


def test_a_home_that_cannot_be_written(run_cli: RunCli, tmp_path: Path) -> None:
    """Not a word about it: matplotlib takes a temporary folder, and we ask for nothing else."""
    (tmp_path / "file").touch()
    home = str(tmp_path / "file")
    env = {"HOME": home, "MPLCONFIGDIR": home, "HF_HOME": home, "XDG_CACHE_HOME": home}
    run = worked(run_cli("heatmap", "--text", TEXT, *DRAW, env=env))
    check_numbers(run, tmp_path)
    assert notes(run) == []


def test_a_hostile_matplotlibrc(run_cli: RunCli, run_here: RunHere, tmp_path: Path) -> None:
    """In the working folder and in the environment; the pictures are those of a run without it, byte for byte."""
    asked = ("heatmap", "--text", "the $cat$ sat", "--model", "dot", "--format", "png,svg,pdf", "--table", "none")
    worked(run_here(*asked, "--out", "without"))
    (tmp_path / "matplotlibrc").write_text(HOSTILE_SETTINGS, encoding="utf-8")
    env = {"MATPLOTLIBRC": str(tmp_path / "matplotlibrc"), "MPLBACKEND": "tkagg"}
    worked(run_cli(*asked, "--out", "with", env=env))
    expected = {path.name: path.read_bytes() for path in (tmp_path / "without").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "with").iterdir()} == expected
    assert len(expected) == 4
