r"""Reports as LaTeX, read back by a small reader of what we write: every text comes back, and nothing is obeyed.

No TeX is needed. The reader knows which signs TeX prints and which it obeys; an unknown command, a brace that nobody
opened or a bare sign of mathematics outside of it fails.
"""

import re
import string
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attnviz.renderers.cell_text import write_out_hidden
from attnviz.renderers.documents.latex import OTHER_SCRIPTS, escape_latex, fragment
from attnviz.report import Column, Heatmap, Note, Report, Table
from tests.made import HOSTILE, known

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
    r"\ensuremath{\pm}": "±",
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
MARKUP = [
    *re.split(
        r"\s+",
        r"""\ $$ % _ # { } ^ ~ & \\ \\[2pt] \end{tabular} \[ \] \( $x$ {x} [x] [[ * ** \\* } {{ }} ^^M ^^5c ~~ -- ---
        ,, `` '' !` ?` << >> \input{/etc/passwd} \write18{ls} \verb|x| \def\x{\x} \catcode`\%=12 #1 ##""",
    ),
    *("a  b", "   ", "two\nlines", "a\n\nb", "% a", "a\xa0b", "x" * 3000, "é", "猫坐", "سلام"),
    *HOSTILE,
]
TEXTS = st.text(string.punctuation + " a\n") | st.lists(st.sampled_from(MARKUP), max_size=5).map("".join)


def read(source: str) -> str:
    """What TeX prints for a text of ours. It drops spaces at the ends and after another."""
    assert source.strip(" ") == source
    assert not re.search("--|,,|  ", source), source
    printed, at = [], 0
    while at < len(source):
        found = WORD.match(source, at)
        assert found is not None, f"TeX would obey {source[at : at + 20]!r}"
        printed.append(PRINTS.get(found[0], found[0]))
        at = found.end()
    return "".join(printed)


def seen(text: str) -> str:
    """What a reader sees of `text`: what is hidden written out, as in a terminal of ASCII where signs are rare."""
    return write_out_hidden(text).replace("⏎", r"\n").replace("⇥", r"\t")


def parts(source: str) -> list[str]:
    """A fragment in parts: every heading, paragraph and cell, read; displays as they are. Comments are passed over."""
    assert source.endswith("\n")
    body = re.sub("^%.*\n", "", source, flags=re.MULTILINE)
    found: list[str] = []
    for part in re.split(r"\n{2,}|\n(?=\\\[\n)", body.strip("\n")):
        if part.startswith("\\[\n"):
            assert part.endswith("\n\\]")
            found.append(part)
        elif part.startswith(("\\begin{tabular}", "\\begin{longtable}")):
            found += cells(part)
        else:
            found.append(read(part))
    return found


def cells(part: str) -> list[str]:
    first, top, header, rule, *rows, bottom, last = part.splitlines()
    environment = known(re.fullmatch(r"\\begin\{(tabular|longtable)\}\{([lr]+)\}", first))
    assert (top, rule, bottom, last) == ("\\toprule", "\\midrule", "\\bottomrule", f"\\end{{{environment[1]}}}")
    if environment[1] == "longtable":
        assert rows.pop(0) == "\\endhead"
    found = []
    for row in (header, *rows):
        assert row.endswith(" \\\\")
        inner = re.split(r"(?<!\\)&", row[:-3])
        assert len(inner) == len(environment[2])
        found += [read_cell(cell.removeprefix(" ").removesuffix(" ")) for cell in inner]
        assert not row.startswith(("[", "*"))  # which a row's end before it would take for an option
    return found


def read_cell(cell: str) -> str:
    number = re.fullmatch(r"\$(-?(?:[0-9.]+|nan|\\infty))(?: \\pm ([0-9.]+))?\$", cell)
    if number is None:
        return read(cell)
    return number[1].replace(r"\infty", "∞") + (f" ± {number[2]}" if number[2] else "")


def everywhere(text: str) -> Report:
    """The text in every place of a table; title, subtitle and note are comments."""
    table = Table("a", text, "facts", (Column(text), Column("n", digits=2), Column(text)), ((text, -1.5, text),))
    return Report(text, text, (Note(text), table))


def check(text: str) -> None:
    assert read(escape_latex(text)) == seen(text)
    source = fragment(everywhere(text))
    assert all(line.startswith("% ") for line in source.splitlines() if "%" in line.replace("\\%", ""))
    found = parts(source)
    assert found.count(seen(text)) == 4
    assert "-1.50" in found


def test_by_eye() -> None:
    columns = (Column("key"), Column("s", digits=2), Column("over texts"))
    table = Table("a", "", "facts", columns, (("0 a_b", -1.0, "3.2 ± 0.1"), ("1 [/]", -np.inf, "-")))
    report = Report("R&D", "", (Note("50 % of it"), table))
    assert fragment(report) == (
        "% Packages: booktabs\n% R&D\n% 50 % of it\n\n"
        "\\begin{tabular}{lrr}\n\\toprule\nkey & s & over texts \\\\\n\\midrule\n"
        "0 a\\_b & $-1.00$ & $3.2 \\pm 0.1$ \\\\\n1 {[}/{]} & $-\\infty$ & - \\\\\n\\bottomrule\n\\end{tabular}\n"
    )


def test_the_table_of_the_heads_stands_alone_unless_all_are_asked_for() -> None:
    heads, queries, facts = (
        Table(role, f"of {role}", role, (Column("n"),), ((place,),))  # type: ignore[arg-type]
        for place, role in enumerate(("heads", "top", "facts"))
    )
    report = Report("t", "s", (heads, queries, facts, Note("100 % seen")))
    assert parts(fragment(report)) == ["n", "0"]
    assert "% 100 % seen\n" in fragment(report)
    full = fragment(report, full=True)
    assert parts(full) == ["n", "0", "n", "1", "n", "2"]
    assert full.count("\\begin{longtable}") == 1
    assert "longtable" in full.splitlines()[0]
    assert parts(fragment(replace(report, blocks=(queries, facts)))) == ["n", "2"]
    assert parts(fragment(report, report)) == ["n", "0"] * 2


def test_a_text_is_printed_as_it_is_wherever_it_stands() -> None:
    for text in MARKUP:
        if text.strip():  # a paragraph of spaces is none
            check(text)


@given(TEXTS)
def test_any_text_is_printed_as_it_is(text: str) -> None:
    assert read(escape_latex(text)) == seen(text)


def test_other_scripts_are_remarked_on_and_latin_is_not() -> None:
    ours = Note("“a” · b → c × 2 ± 1, √d, Σ, ∞, ∅ …")
    assert OTHER_SCRIPTS not in fragment(Report("a", "猫", (ours,)))
    assert OTHER_SCRIPTS in fragment(Report("a", "", (Table("t", "", "facts", (Column("猫"),), ()),)))


def test_pictures_are_left_out_and_nothing_is_no_error() -> None:
    picture = Heatmap("m", "map", np.eye(2), np.ones((2, 2), dtype=bool), ("a", "b"), ("a", "b"))
    assert fragment(Report("a", "", (picture, Table("t", "", "facts", (), ())))) == "% a\n"
