"""The cells of a table as text, with the same digits in every renderer, and the addresses that its rows lead to.

Knows `report` only. A link is a path below or beside the document. What could lead to another host, or be run, never
becomes one.

`write_out_hidden` is the last door of documents and terminals: views have written out what is hidden, another report
may not have.
"""

import re
from math import isinf
from urllib.parse import quote

from attnviz.report import Column, Table


def write_cell(cell: str | int | float, column: Column) -> str:
    """Write a float with the column's digits after the point; anything else as it is."""
    if isinstance(cell, float) and isinf(cell):
        return "∞" if cell > 0 else "-∞"
    return f"{cell:z.{column.digits}f}" if isinstance(cell, float) else str(cell)


def heading(column: Column) -> str:
    """Write a column's heading, "entropy (nats)"."""
    return f"{column.header} ({column.unit})" if column.unit else column.header


def numeric(table: Table) -> list[bool]:
    """Check for each column whether it holds numbers only, so that it is aligned on the right.

    An ellipsis stands for numbers that are not shown, an empty cell for none: beside numbers, both are no text.
    """
    columns = [[row[n] for row in table.rows] for n in range(len(table.columns))]
    texts = [[cell for cell in cells if isinstance(cell, str)] for cells in columns]
    return [
        not found or (len(found) < len(cells) and set(found) <= {"", "…"})
        for cells, found in zip(columns, texts, strict=True)
    ]


ELSEWHERE = re.compile(r"[\x00-\x20]*([A-Za-z][A-Za-z0-9+.-]*:|[/\\])")  # a scheme, another host, the root of this one


def addresses(table: Table) -> tuple[str, ...]:
    """Return an address for each row, percent-encoded; "" where there is none, and for whatever is not relative."""
    # Every sign but letters, digits and _.-~/ is encoded, a colon too: an address with a scheme cannot come of it.
    encoded = ("" if ELSEWHERE.match(link) else quote(link, safe="/", errors="replace") for link in table.links)
    return tuple(encoded) or ("",) * len(table.rows)


HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")


def write_out_hidden(text: str) -> str:
    """Write controls, and what draws nothing or turns its neighbours around, as escapes: `\\u202e`."""
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
