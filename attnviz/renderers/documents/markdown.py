"""Reports as GitHub-flavoured Markdown, for model cards and summaries. Knows `report` only.

Text is data: a reader of the document gets every string back as it was, and nothing else. What cannot be seen, such as
a line end or a bidi control, is written out, as in a terminal. The same report gives the same bytes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from attnviz.renderers import cell_text
from attnviz.report import Column, Note, Report, Table

SIGNS = re.compile(
    r"""
      (?P<late> [@$] | \#(?=[0-9]) | :(?=[\w+-]+:) | /(?=/) | (?i:(?<=www)\.) | \\(?=[(\[]) )
    | (?P<space> (?<!\S)\s | \s(?!\S) )  # at the ends, where it is dropped, and next to another
    | [\\`*_\[\]<>\#|~!&]
    """,
    re.VERBOSE,
)
OPENING = re.compile(r"[-+=]|[0-9]+[.)](?=\s|\Z)")  # what makes a list or an underline of a line that begins with it
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}  # a row is cut at \| by some readers
ENTITY = "&#{};"
# Mentions, issues, emoji, addresses and formulas are looked for in the finished page, where an escape or an entity is
# long gone (github/cmark-gfm#181), but within one text node: a tag keeps the sign apart from what follows.
APART = f"<span>{ENTITY}</span>"


def document(report: Report, pictures: Mapping[str, str] | None = None) -> str:
    """Write the title, the subtitle, the notes that lead and the other blocks, ending with one newline.

    `pictures` gives for a block's name the file that it was drawn to, relative to the document; pictures without a
    file are left out.
    """
    return "\n\n".join(part for part in _parts(report, pictures or {}) if part) + "\n"


def inline(text: str) -> str:
    """Escape `text` for the middle of a line or the whole: a paragraph, a heading, a cell, between one's own marks."""
    return _escape(text, APART)


def _parts(report: Report, pictures: Mapping[str, str]) -> Iterator[str]:
    """Yield blocks of Markdown, "" where there is nothing to say."""
    yield _heading("#", report.title)
    yield inline(report.subtitle)
    for block in sorted(report.blocks, key=lambda block: not (isinstance(block, Note) and block.leads)):
        if isinstance(block, Table):
            yield _heading("##", block.title)
            yield "\n".join(_table(block))
        elif isinstance(block, Note):
            yield inline(block.text)
        elif block.name in pictures:  # in an attribute a tag would be shown, and nobody looks for mentions
            yield f"![{_escape(block.title or block.name, ENTITY)}]({quote(pictures[block.name])})"


def _heading(level: str, title: str) -> str:
    return f"{level} {inline(title)}" if title else ""


def _table(table: Table) -> Iterator[str]:
    if not table.columns:
        return
    yield _row([inline(cell_text.heading(column)) for column in table.columns])
    yield _row(["---:" if is_numeric else "---" for is_numeric in cell_text.numeric(table)])
    for row, address in zip(table.rows, cell_text.addresses(table), strict=True):
        first, *others = (_cell(cell, column) for cell, column in zip(row, table.columns, strict=True))
        yield _row([f"[{first}]({address})" if first and address else first, *others])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: str | int | float, column: Column) -> str:
    return inline(cell) if isinstance(cell, str) else cell_text.write_cell(cell, column)


def _escape(text: str, late: str) -> str:
    """Escape every character of `text` that has a meaning; `late` replaces those that a backslash does not help."""

    def escape_sign(found: re.Match[str]) -> str:
        sign = found[0]
        if found.lastgroup == "late":
            return late.format(ord(sign))
        if found.lastgroup == "space":
            return ENTITY.format(ord(sign))
        return ENTITIES.get(sign, f"\\{sign}")

    text = SIGNS.sub(escape_sign, cell_text.write_out_hidden(text))
    opening = OPENING.match(text)
    return f"{text[: opening.end() - 1]}\\{text[opening.end() - 1 :]}" if opening else text
