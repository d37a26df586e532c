"""Walk-throughs of texts that want to be obeyed: in a terminal, as Markdown, as LaTeX and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnviz.display import escape_for_display
from tests.attacks.endings import RunHere, cut_at_bars, worked

HOSTILE = (
    *("\\", "$$", "%", "_", "#", "{", "}", "^", "~", "&", "[", "*", "`", "```", "--", "\\\\", "\\end{tabular}"),
    *("[/]", "[red]x[/red]", ":smile:", "<b>", "<!--", "@x", "#1", "$x$", "\\input{x}", "^^M", "猫", "سلام", "é"),
    *("\x1b[31mred", "\x00", "\u202eevil\u2066", "a\u200bb", "\n", "\t", " ", "two\nlines", "x" * 500),
    *("👨\u200d👩\u200d👧", "e\u0301", "Z" + "\u0351" * 50, "\U0010ffff"),
)


@pytest.fixture
def asked(tmp_path: Path) -> tuple[str, ...]:
    """Options for a text of all those tokens, and a vocabulary that cuts it at the bars."""
    return ("explain", *cut_at_bars(tmp_path, *HOSTILE), "--model", "random:2", "--top-k", "99")


@pytest.mark.parametrize("query", [0, HOSTILE.index("\n")])
def test_in_a_terminal(query: int, asked: tuple[str, ...], run_here: RunHere) -> None:
    run = worked(run_here(*asked, "--query", str(query)))
    rows = [line.strip() for line in run.stdout.splitlines()]
    for place, token in enumerate(HOSTILE):
        beginning = f"{place} {escape_for_display(token)} "
        assert sum(row.startswith(beginning) for row in rows) == (5 if place == query else 4)


@pytest.mark.parametrize("model", ["multi", "dot"])
@pytest.mark.parametrize("causal", [(), ("--causal",)])
def test_a_text_of_one_token(model: str, causal: tuple[str, ...], run_here: RunHere) -> None:
    asked = ("explain", "--text", "good", "--model", model, "--by-hand", *causal)
    found = json.loads(worked(run_here(*asked, "--json")).out)
    assert all(head["weights"] == [1.0] for head in found["heads"])
    assert "sum over 1 key " in worked(run_here(*asked)).stdout


@pytest.mark.parametrize(
    "asked", [("--max-tokens", "5", "--show-padding"), ("--max-tokens", "1"), ("--keep", "head-tail")]
)
def test_nothing_is_not_a_number(asked: tuple[str, ...], run_here: RunHere) -> None:
    for writing in ((), ("--print", "markdown"), ("--print", "latex"), ("--json",)):
        text = worked(run_here("explain", "--text", "a fine film", "--query", "-1", "--model", "dot", *asked, *writing))
        assert "nan" not in text.stdout.lower()
