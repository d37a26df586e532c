r"""Reports as a small LaTeX article, to be compiled or cut from. Knows `report` only.

Text is data: every sign that TeX would obey is written as one that it prints, and what cannot be seen, such as a bidi
control, is written out, as in a terminal. The same report gives the same bytes. Pictures are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from attnviz.renderers import numbers
from attnviz.report import (
    Charts,
    Column,
    Formula,
    Heatmap,
    HeatmapGrid,
    Note,
    Report,
    Section,
    Table,
)

# The last door: a view has written these out already, another report may not have.
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")
# Signs of TeX; [ and *, which a row's end takes for an option of its own; and the typographic signs of our own reports,
# so that these need no more than pdfLaTeX.
SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    '"': r"\textquotedbl{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "\xa0": "~",
    "…": r"\ldots{}",
    "·": r"\textperiodcentered{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "’": r"\textquoteright{}",
    "⋅": r"\ensuremath{\cdot}",
    "×": r"\ensuremath{\times}",
    "→": r"\ensuremath{\to}",
    "∞": r"\ensuremath{\infty}",
    "√": r"\ensuremath{\surd}",
    "Σ": r"\ensuremath{\Sigma}",
    "∅": r"\ensuremath{\emptyset}",
    "␣": r"\textvisiblespace{}",
    "⏎": r"\textbackslash{}n",
    "⇥": r"\textbackslash{}t",
}
# Only beside their like, or a space at an end: TeX makes a dash of -- and a quote of ,, and one space of several.
BESIDE = {"-": "-{}", ",": ",{}", " ": r"\ {}"}
SIGN = re.compile(rf"-(?=-)|,(?=,)|(?<!\S) | (?!\S)|[{re.escape(''.join(SIGNS))}]")
PREAMBLE = r"""\documentclass{article}
\usepackage[margin=2cm]{geometry}
\usepackage{amsmath,amssymb,booktabs,longtable,textcomp,iftex}
\ifPDFTeX
  \usepackage[T1]{fontenc}
  \usepackage[utf8]{inputenc}
\else
  \usepackage{fontspec}
\fi
\setlength{\parindent}{0pt}
\setlength{\parskip}{0.6\baselineskip}
\allowdisplaybreaks
"""
OTHER_SCRIPTS = r"""% Some characters are not ASCII. Where pdfLaTeX or the font lacks one, compile with XeLaTeX
% or LuaLaTeX and name a font that has it here, for example: \setmainfont{Noto Serif CJK SC}
"""


def document(*reports: Report) -> str:
    """Title, subtitle and blocks of each in their order, as one whole document that ends with one newline."""
    body = "\n\n".join(part for report in reports for part in _parts(report) if part)
    scripts = "" if body.isascii() else OTHER_SCRIPTS
    return f"{PREAMBLE}{scripts}\\begin{{document}}\n\n{body}\n\n\\end{{document}}\n"


def escaped(text: str) -> str:
    """`text` for the middle of a line, a heading or a cell."""
    text = HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return SIGN.sub(lambda found: SIGNS.get(found[0]) or BESIDE[found[0]], text)


def _parts(report: Report) -> Iterator[str]:
    yield f"{{\\LARGE {escaped(report.title)}\\par}}" if report.title else ""
    yield escaped(report.subtitle)
    for block in report.blocks:
        match block:
            case Section():
                yield f"\\{'section' if block.level == 1 else 'subsection'}*{{{escaped(block.title)}}}"
            case Formula():
                yield f"\\[\n{block.latex}\n\\]"
            case Table():
                yield f"\\subsection*{{{escaped(block.title)}}}" if block.title else ""
                yield "\n".join(_table(block))
            case Note():
                yield escaped(block.text)
            case Heatmap() | HeatmapGrid() | Charts():
                pass
            case _:
                assert_never(block)


def _table(table: Table) -> Iterator[str]:
    """One that goes on overleaf where a page ends."""
    if not table.columns:
        return
    yield f"\\begin{{longtable}}{{{''.join('r' if numeric else 'l' for numeric in numbers.numeric(table))}}}"
    yield "\\toprule"
    yield _row([escaped(numbers.heading(column)) for column in table.columns])
    yield "\\midrule\n\\endhead"
    for row in table.rows:
        yield _row([_cell(cell, column) for cell, column in zip(row, table.columns, strict=True)])
    yield "\\bottomrule"
    yield "\\end{longtable}"


def _row(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _cell(cell: str | int | float, column: Column) -> str:
    """Numbers stand in mathematics, where a minus is no hyphen."""
    shown = numbers.shown(cell, column)
    return escaped(shown) if isinstance(cell, str) else f"${shown.replace('∞', chr(92) + 'infty')}$"
