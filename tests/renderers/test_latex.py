r"""Reports as LaTeX, read back by a small reader of what we write: every text comes back, and nothing is obeyed.

No TeX is needed. The reader knows which signs TeX prints and which it obeys; an unknown command, a brace that nobody
opened or a bare sign of mathematics outside of it fails.
"""

from __future__ import annotations

import re
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.renderers import terminal
from attnviz.renderers.latex import OTHER_SCRIPTS, document, escaped
from attnviz.report import Column, Formula, Heatmap, Note, Report, Section, Table
from tests.made import HOSTILE

PRINTS = {
    r"\textbackslash{}": "\\",
    r"\textasciicircum{}": "^",
    r"\textasciitilde{}": "~",
    r"\textasciigrave{}": "`",
    r"\textquotesingle{}": "'",
    r"\textquotedbl{}": '"',
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\ldots{}": "…",
    r"\textperiodcentered{}": "·",
    r"\textquotedblleft{}": "“",
    r"\textquotedblright{}": "”",
    r"\textquoteright{}": "’",
    r"\textvisiblespace{}": "␣",
    r"\ensuremath{\times}": "×",
    r"\ensuremath{\cdot}": "⋅",
    r"\ensuremath{\to}": "→",
    r"\ensuremath{\infty}": "∞",
    r"\ensuremath{\surd}": "√",
    r"\ensuremath{\Sigma}": "Σ",
    r"\ensuremath{\emptyset}": "∅",
    **{f"\\{sign}": sign for sign in "{}$&#%_"},
    **{f"{{{sign}}}": sign for sign in "[]*"},
    "-{}": "-",
    ",{}": ",",
    r"\ {}": " ",
    "~": "\xa0",
}
WORD = re.compile("|".join([*map(re.escape, sorted(PRINTS, key=len, reverse=True)), r"[^\\{}$&#%_^~`'\"<>|*\[\]]"]))
JOINED = re.compile("--|,,|  ")
MARKUP = [
    *re.split(
        r"\s+",
        r"""\ $$ % _ # { } ^ ~ & \\ \\[2pt] \end{longtable} \[ \] \( $x$ {x} [x] [[ * ** \\* } {{ }} ^^M ^^5c ~~ -- ---
        ,, `` '' !` ?` << >> \input{/etc/passwd} \write18{ls} \verb|x| \def\x{\x} \catcode`\%=12 #1 ##""",
    ),
    *("a  b", "   ", "two\nlines", "a\n\nb", "% a", "a\xa0b", "x" * 3000, "é", "猫坐", "سلام"),
    *HOSTILE,
]
TEXTS = st.text(string.punctuation + " a\n") | st.lists(st.sampled_from(MARKUP), max_size=5).map("".join)


def read(source: str) -> str:
    """What TeX prints for a text of ours. It drops spaces at the ends and after another."""
    assert source.strip(" ") == source
    assert not JOINED.search(source), source
    printed, at = [], 0
    while at < len(source):
        found = WORD.match(source, at)
        assert found is not None, f"TeX would obey {source[at : at + 20]!r}"
        printed.append(PRINTS.get(found[0], found[0]))
        at = found.end()
    return "".join(printed)


def seen(text: str) -> str:
    """What a reader sees of `text`: what is hidden written out, as in a terminal of ASCII where signs are rare."""
    text = terminal.HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    text = re.sub("[\ud800-\udfff]", lambda found: found[0].encode("unicode_escape").decode(), text)
    return text.replace("⏎", r"\n").replace("⇥", r"\t")


def parts(source: str) -> list[str]:
    """The body of a document: every heading, paragraph and cell, read; displays as they are."""
    body = re.fullmatch(r".*?\\begin\{document\}\n\n(.*)\n\n\\end\{document\}\n", source, re.DOTALL)
    assert body is not None
    found: list[str] = []
    for part in body[1].split("\n\n"):
        if part.startswith("\\["):
            assert part.endswith("\n\\]")
            found.append(part)
        elif part.startswith("\\begin{longtable}"):
            found += cells(part)
        elif heading := re.fullmatch(r"\\(?:sub)?section\*\{(.*)\}|\{\\LARGE (.*)\\par\}", part):
            found.append(read(heading[1] or heading[2] or ""))
        else:
            found.append(read(part))
    return found


def cells(part: str) -> list[str]:
    first, top, header, rule, end_of_head, *rows, bottom, last = part.splitlines()
    frame = ("\\toprule", "\\midrule", "\\endhead", "\\bottomrule", "\\end{longtable}")
    assert (top, rule, end_of_head, bottom, last) == frame
    width = re.fullmatch(r"\\begin\{longtable\}\{([lr]+)\}", first)
    assert width is not None
    found = []
    for row in (header, *rows):
        assert row.endswith(" \\\\")
        inner = re.split(r"(?<!\\)&", row[:-3])
        assert len(inner) == len(width[1])
        found += [read_cell(cell.removeprefix(" ").removesuffix(" ")) for cell in inner]
        assert not row.startswith(("[", "*"))  # which a row's end before it would take for an option
    return found


def read_cell(cell: str) -> str:
    number = re.fullmatch(r"\$(-?(?:[0-9.]+|nan|\\infty))\$", cell)
    return number[1].replace(r"\infty", "∞") if number else read(cell)


def everywhere(text: str) -> Report:
    """A report with the text in every place that holds one."""
    table = Table("a", text, "facts", (Column(text), Column("n", digits=2), Column(text)), ((text, -1.5, text),))
    blocks = (Section(text), Section(text, 2), Note(text), table, Formula("x", r"\frac{1}{2}"))
    return Report(text, text, blocks)


def test_by_eye() -> None:
    table = Table("a", "", "facts", (Column("key"), Column("s", digits=2)), (("0 a_b", -1.0), ("1 [/]", -np.inf)))
    report = Report("R&D", "", (Section("Step 1"), Note("50 % of it"), Formula("x = 1", "x = 1"), table))
    source = document(report)
    assert source.startswith("\\documentclass{article}\n")
    assert source[source.index("\\begin{document}") :] == (
        "\\begin{document}\n\n{\\LARGE R\\&D\\par}\n\n\\section*{Step 1}\n\n50 \\% of it\n\n\\[\nx = 1\n\\]\n\n"
        "\\begin{longtable}{lr}\n\\toprule\nkey & s \\\\\n\\midrule\n\\endhead\n0 a\\_b & $-1.00$ \\\\\n"
        "1 {[}/{]} & $-\\infty$ \\\\\n\\bottomrule\n\\end{longtable}\n\n\\end{document}\n"
    )


@pytest.mark.parametrize("text", MARKUP)
def test_a_text_is_printed_as_it_is(text: str) -> None:
    assert read(escaped(text)) == seen(text)


@given(TEXTS)
def test_any_text_is_printed_as_it_is(text: str) -> None:
    assert read(escaped(text)) == seen(text)


@pytest.mark.parametrize("text", [text for text in MARKUP if text.strip()])
def test_wherever_it_stands(text: str) -> None:
    found = parts(document(everywhere(text)))
    assert found.count(seen(text)) == 10
    assert "-1.50" in found
    assert "\\[\n\\frac{1}{2}\n\\]" in found


def test_tables_end_where_they_begin_whatever_their_cells_say() -> None:
    rows = tuple((text, 1.0) for text in MARKUP)
    table = Table("a", "", "facts", (Column("token"), Column("weight")), rows)
    found = parts(document(Report("a", "b", (table,))))
    assert found[4::2] == [seen(text) for text, _ in rows]


def test_other_scripts_are_remarked_on_and_latin_is_not() -> None:
    ours = Note("“a” · b → c × 2, √d, Σ, ∞, ∅ …")
    assert OTHER_SCRIPTS not in document(Report("a", "b", (ours,)))
    assert document(Report("a", "b", (ours,))).isascii()
    assert OTHER_SCRIPTS in document(Report("猫", "", ()))


def test_pictures_are_left_out_and_nothing_is_no_error() -> None:
    picture = Heatmap("m", "map", np.eye(2), np.ones((2, 2), dtype=bool), ("a", "b"), ("a", "b"))
    assert parts(document(Report("a", "", (picture, Table("t", "", "facts", (), ()))))) == ["a"]
