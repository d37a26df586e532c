"""Bytes and files that are not what they should be: mended with one warning where a text is given, else named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.endings import RunHere, document, notes, refused, worked
from tests.process import RunCli

REPLACED = "invalid Unicode was replaced by \ufffd (U+FFFD)"
DOT = ("--model", "dot", "--json", "--dpi", "40")

# File name, content, and what the refusal says.


def test_arguments_files_and_standard_input_that_are_not_utf8(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "latin1.txt").write_bytes("Größe café".encode("latin-1"))
    given = ("--text", b"caf\xe9 \xff", "--text", b"good", "--text-file", "latin1.txt", "--text-file", "-")
    run = worked(run_cli("heatmap", *given, *DOT, stdin=b"\x80 b"))
    assert [text["queries"]["pieces"] for text in document(run)["texts"]] == [
        ["caf", "\ufffd", "\ufffd"],
        ["good"],
        ["Gr", "\ufffd", "\ufffd", "e", "caf", "\ufffd"],
        ["\ufffd", "b"],
    ]
    (warning,) = [note for note in notes(run) if "U+FFFD" in note]
    assert set(warning.removesuffix(f": {REPLACED}").split(", ")) == {
        "“caf\ufffd \ufffd”",
        "latin1.txt",
        "standard input",
    }


@pytest.mark.parametrize(
    "given",
    [
        ("heatmap", "--text-file", "no\x1b[31m such\u202e.txt"),
        ("heatmap", "--dataset", "./no\nsuch\x07.csv"),
        ("heatmap", "--model", "\x1b]0;x\x07"),
        ("heatmap", "--split", "train\u2028[:5"),
        ("heatmap", "--device", "cpu\ufeff", "--text", "a"),
        ("heatmap", "--no-such\x1b[31m"),
        ("heatmap", "--head", "x" * 100_000, "--text", "a"),
        ("render", "no\x1b such"),
        ("vocab", "--dataset", "x" * 100_000),
        ("\x1b[31m",),
    ],
    ids=ascii,
)
def test_names_reach_the_terminal_written_out(given: tuple[str, ...], run_here: RunHere) -> None:
    assert len(refused(run_here(*given)).err) < 2000


def test_a_hostile_title_folder_and_file_name(run_here: RunHere, tmp_path: Path) -> None:
    name = "re\x1b[31mview\u202e\n.txt"
    (tmp_path / name).write_bytes(b"a b")
    title = "[/] $\\frac$ \x1b[31m\u202e\n" + "x" * 5000
    given = ("heatmap", "--text-file", name, "--model", "dot", "--format", "png,svg,pdf")
    for more in ((), ("--title", title), ("--title", title, "--json")):
        worked(run_here(*given, *more, "--out", "a\x1b[31m\u202eb"))
