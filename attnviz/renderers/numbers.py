"""The cells of a table as text, with the same digits in every renderer. Knows `report` only."""

from __future__ import annotations

from attnviz.report import Column, Table


def shown(cell: str | int | float, column: Column) -> str:
    """A float with the column's digits after the point; anything else as it is."""
    return f"{cell:.{column.digits}f}" if isinstance(cell, float) else str(cell)


def numeric(table: Table) -> list[bool]:
    """For each column, whether it holds numbers only, so that it is aligned on the right."""
    return [not any(isinstance(row[n], str) for row in table.rows) for n in range(len(table.columns))]
