r"""Reports as LaTeX to take in with \input: tables. Knows `report` only.

Text is data: every sign that TeX would obey is written as one that it prints, and what cannot be seen, such as a bidi
control, is written out, as in a terminal. The same report gives the same bytes. Pictures are left out.
"""

import re
from collections.abc import Iterator, Sequence

from attnviz.renderers import cell_text
from attnviz.report import Column, Note, Report, Table

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
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "⋅": r"\ensuremath{\cdot}",
    "×": r"\ensuremath{\times}",
    "±": r"\ensuremath{\pm}",
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
INTERVAL = re.compile(r"(-?\d*\.?\d+) ±\s?(\d*\.?\d+)")  # a mean and half of its interval
PACKAGES = {  # by what needs them
    "\\toprule": "booktabs",
    "\\begin{longtable}": "longtable",
    "\\textquotedbl": "[T1]{fontenc}",
}
OTHER_SCRIPTS = "% Some characters are not ASCII: where pdfLaTeX or the font lacks one, try XeLaTeX or LuaLaTeX."


def fragment(*reports: Report, full: bool = False) -> str:
    """Write the table of the heads where there is one, else every table but those of queries.

    `full`: all tables, those of queries as a `longtable`. What a reader has to know of the tables, and the packages
    that they need, stand in comments.
    """
    lines = [line for report in reports for line in _lines(report, full)]
    body = "\n".join(line for line in lines if not line.startswith("%"))
    packages = ", ".join(package for sign, package in PACKAGES.items() if sign in body)
    head = [_comment(f"Packages: {packages}")] if packages else []
    return "\n".join([*head, *([] if body.isascii() else [OTHER_SCRIPTS]), *lines, ""])


def escape_latex(text: str) -> str:
    """Escape `text` for the middle of a line, a heading or a cell."""
    return SIGN.sub(lambda found: SIGNS.get(found[0]) or BESIDE[found[0]], cell_text.write_out_hidden(text))


def _comment(text: str) -> str:
    return f"% {cell_text.write_out_hidden(text)}"


def _lines(report: Report, full: bool) -> Iterator[str]:
    has_heads = any(table.role == "heads" for table in report.tables)
    yield from (_comment(text) for text in (report.title, report.subtitle) if text)
    for block in report.blocks:
        if isinstance(block, Table):
            if full or block.role == "heads" or not (has_heads or block.role == "top"):
                yield from _table(block)
        elif isinstance(block, Note):
            yield _comment(block.text)


def _table(table: Table) -> Iterator[str]:
    if not table.columns:
        return
    kind = "longtable" if table.role == "top" else "tabular"  # there may be more queries than a page has lines
    rows = [[_cell(cell, column) for cell, column in zip(row, table.columns, strict=True)] for row in table.rows]
    sides = "".join(  # on the right are numbers, and means with their intervals
        "r" if numeric or (rows and all(row[place][:1] in "$-" for row in rows)) else "l"
        for place, numeric in enumerate(cell_text.numeric(table))
    )
    yield ""
    yield from [_comment(table.title)] if table.title else []
    yield f"\\begin{{{kind}}}{{{sides}}}"
    yield "\\toprule"
    yield _row([escape_latex(cell_text.heading(column)) for column in table.columns])
    yield "\\midrule\n\\endhead" if kind == "longtable" else "\\midrule"
    yield from map(_row, rows)
    yield "\\bottomrule"
    yield f"\\end{{{kind}}}"


def _row(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _cell(cell: str | int | float, column: Column) -> str:
    """Write a cell; numbers in math mode, where a minus is not a hyphen."""
    shown = cell_text.write_cell(cell, column)
    if not isinstance(cell, str):
        return f"${shown.replace('∞', chr(92) + 'infty')}$"
    interval = INTERVAL.fullmatch(shown)
    return f"${interval[1]} \\pm {interval[2]}$" if interval else escape_latex(shown)
