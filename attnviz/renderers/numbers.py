"""The cells of a table as text, with the same digits in every renderer. Knows `report` only."""

from math import isinf

from attnviz.report import Column, Table


def write_cell(cell: str | int | float, column: Column) -> str:
    """Write a float with the column's digits after the point; anything else as it is."""
    if isinstance(cell, float) and isinf(cell):
        return "∞" if cell > 0 else "-∞"
    return f"{cell:z.{column.digits}f}" if isinstance(cell, float) else str(cell)


def heading(column: Column) -> str:
    """Write a column's heading, "entropy (nats)"; without the unit if the header says it, as in "effective keys"."""
    return f"{column.header} ({column.unit})" if column.unit and column.unit not in column.header else column.header


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
