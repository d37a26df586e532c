"""Tokens that are markup as a whole, as a vocabulary from elsewhere may hold them: literal, or written out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.attacks.endings import RunHere, check_whole, cut_at_bars, document, drawn_texts, in_svg, worked

LITERAL = (
    *("[/]", "[red]", "[/red]", "[unk]", "[mask]", ":smile:", "$$", "$_$", "${$", r"$\frac$", "$5$", "</script>"),
    *("<!-- a -->", "]]>", "&lt;", "a_b", "[PAD]", "[UNK]", "<unk>", "##ing", "=1+1", "::error::x", "%(x)s", r"\n"),
)
WRITTEN_OUT = {
    "\x1b[31mred": r"\x1b[31mred",
    "\x1b]0;title\x07": r"\x1b]0;title\x07",
    "\x00": r"\x00",
    "\x7f\x85\x9b": r"\x7f\x85\x9b",
    "\u202eevil\u2066": r"\u202eevil\u2066",
    "a\u200bb\ufeff": r"a\u200bb\ufeff",
    "\n": "⏎",
    "\t": "⇥",
    " ": "␣",
    "two\nlines": "two⏎lines",
    "\r\n": r"\x0d⏎",
    "\u2028": r"\u2028",
    "x" * 5000: "x" * 23 + "…",
    "Z" + "\u0351" * 50: "Z" + "\u0351" * 6 + "…",
}
TOKENS = [*LITERAL, *WRITTEN_OUT]
LABELS = [*LITERAL, *WRITTEN_OUT.values()]


@pytest.fixture
def asked(tmp_path: Path) -> tuple[str, ...]:
    """Options for a text of all those tokens and a vocabulary that cuts it at the bars."""
    return (*cut_at_bars(tmp_path, *TOKENS), "--model", "dot")


def test_a_name_of_padding_is_a_word_like_any_other(asked: tuple[str, ...], run_here: RunHere) -> None:
    """In the text, [PAD] can be attended to; only what fills up behind the text cannot."""
    n = len(TOKENS)
    padded = ("--show-padding", "--max-tokens", str(n + 2))
    (text,) = document(worked(run_here("heatmap", *asked, "--json", *padded)))["texts"]
    assert text["queries"]["special"] == [False] * n + [True] * 2
    attendable = np.array(text["attendable"])
    assert attendable[:, :n].all()
    assert not attendable[:, n:].any()
    assert np.array(text["weights"])[..., TOKENS.index("[PAD]")].min() > 0


def test_pictures(asked: tuple[str, ...], run_here: RunHere, tmp_path: Path) -> None:
    worked(run_here("heatmap", *asked, "--format", "png,svg,pdf", "--table", "none", "--out", "drawn"))
    assert len(check_whole(tmp_path / "drawn")) == 3
    (drawn,) = drawn_texts(tmp_path / "drawn")
    for label in LABELS:
        assert drawn.count(in_svg(label)) >= 2
