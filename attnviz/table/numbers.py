"""The table that every number is a row of: key columns say what a row is of, the other columns hold its values.

A table is Arrow's, so that files, pandas and polars take it as it is. There is one way to do each thing that used to be
written for each kind of number anew: tables merge by putting rows under one another, and split into classes by a group.
They are compared as all facts are: see `attnviz.records.differences`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64, Int64

from attnviz.errors import InvalidOption

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Numbers:
    """Rows with key columns, in the order of the tuple, and columns of values. A value may be missing (null)."""

    table: pa.Table
    keys: tuple[str, ...]

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Mapping[str, object]],
        keys: Sequence[str],
        types: Mapping[str, pa.DataType | None] | None = None,
    ) -> Self:
        """Make a table of rows; a column that a row lacks is null there. Columns come in the order they are met in.

        Columns of given `types`, None for any, come first and are there without a row, too. What UTF-8 cannot hold of a
        string, as of the name of a file, is written as escapes.
        """
        given, known = list(rows), types or {}
        names = dict.fromkeys([*keys, *known, *(name for row in given for name in row)])
        columns = {name: _make_column([row.get(name) for row in given], known.get(name)) for name in names}
        return cls(pa.table(columns), tuple(keys))

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, object], keys: Sequence[str], types: Mapping[str, pa.DataType] | None = None
    ) -> Self:
        """Make a table of whole columns: arrays or lists of one length, or one value that stands in every row.

        NaN is a value that is missing. Columns of given `types` come first; those that are not given are null.
        """
        lengths = [len(column) for column in columns.values() if isinstance(column, list | np.ndarray)]
        known = dict(types or {})
        found = {}
        for name in dict.fromkeys([*known, *columns]):
            column = columns.get(name)
            values = column if isinstance(column, list | np.ndarray) else [column] * lengths[0]
            found[name] = pa.array(values, known.get(name), from_pandas=True)
        return cls(pa.table(found), tuple(keys))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def values(self) -> tuple[str, ...]:
        """Return the names of the columns that are no keys."""
        return tuple(name for name in self.table.column_names if name not in self.keys)

    def array(self, name: str) -> np.ndarray:
        """Return one column: numbers as float64 with NaN where there is none, anything else as objects."""
        column = self.table[name]
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or pa.types.is_null(column.type):
            return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]  # else numpy makes one array of equal lists

    def integers(self, names: Sequence[str]) -> Int64[np.ndarray, "row column"]:
        """Return columns of whole numbers side by side, of any size. Raises ValueError where one is missing."""
        if any(self.table[name].null_count for name in names):
            raise ValueError(f"a number of {', '.join(names[:3])} is missing")
        columns = [self.table[name].to_numpy() for name in names]
        return np.stack(columns, axis=1) if columns else np.zeros((len(self), 0), np.int64)

    def matrix(self, names: Sequence[str] | None = None) -> Float64[np.ndarray, "row column"]:
        """Return columns of numbers side by side, all values unless named; NaN where there is none."""
        names = self.values if names is None else names
        columns = [self.array(name) for name in names]
        return np.stack(columns, axis=1) if columns else np.zeros((len(self), 0))

    def rows(self) -> list[dict[str, Any]]:
        """Return each row by the names of its columns."""
        return list(self.table.to_pylist())

    def cells(self) -> Iterator[Sequence[Any]]:
        """Yield the names of the columns, then the values of each row."""
        yield self.table.column_names
        yield from zip(*(column.to_pylist() for column in self.table.columns), strict=True)

    def list_keys(self) -> list[Key]:
        """Return the key of each row."""
        return list(zip(*(self.table[name].to_pylist() for name in self.keys), strict=True))

    def select(self, **wanted: object) -> Self:
        """Return the rows whose columns hold these values, or one of these where a list is given."""
        kept = np.ones(len(self), dtype=bool)
        for name, value in wanted.items():
            column = self.table[name]
            several = value if isinstance(value, list) else [value]
            kept &= pc.is_in(column, value_set=pa.array(several, column.type)).to_numpy(zero_copy_only=False)
        return replace(self, table=self.table.filter(pa.array(kept)))

    def having(self, name: str) -> Self:
        """Return the rows that have a value in this column."""
        return replace(self, table=self.table.filter(pc.is_valid(self.table[name])))

    def choose(self, names: Sequence[str]) -> Self:
        """Return these columns, keys included."""
        return replace(self, table=self.table.select(list(names)))

    def take(self, places: np.ndarray) -> Self:
        """Return the rows at these places, in this order."""
        return replace(self, table=self.table.take(pa.array(places, pa.int64())))

    def sort(self) -> Self:
        """Return the rows in the order of their keys."""
        order = [(name, "ascending") for name in self.keys]
        return replace(self, table=self.table.sort_by(order)) if order else self

    def aggregate(self, how: Literal["mean", "sum"], *names: str) -> Self:
        """Return the mean or sum of each value for each combination of values in these columns, which become the keys.

        Values are numbers; a row that lacks one does not count, and the mean of none is null. Sorted by the new keys.
        """
        # In one thread: sums of floats depend on the order of their rows, and the same rows are to give the same bits.
        found = self.table.group_by(names, use_threads=False).aggregate([(name, how) for name in self.values])
        columns = {name: found[name] for name in names} | {name: found[f"{name}_{how}"] for name in self.values}
        return replace(self, table=pa.table(columns), keys=names).sort()

    def group(self, *names: str) -> Iterator[tuple[Key, Self]]:
        """Yield the rows of each combination of values in these columns, in the order in which they are met."""
        places: dict[Key, list[int]] = {}
        for place, key in enumerate(zip(*(self.table[name].to_pylist() for name in names), strict=True)):
            places.setdefault(key, []).append(place)
        for key, rows in places.items():
            yield key, replace(self, table=self.table.take(rows))

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a DataFrame, its keys as columns like any other."""
        frame: pd.DataFrame = self.table.to_pandas()
        return frame


def _make_column(values: list[object], kind: pa.DataType | None) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        mended = [v.encode("utf-8", "backslashreplace").decode() if isinstance(v, str) else v for v in values]
        return pa.array(mended, kind)


def concat(parts: Sequence[Numbers]) -> Numbers:
    """Put tables of the same keys under one another in their order. Columns that only some have are null elsewhere."""
    whole = pa.concat_tables([part.table for part in parts], promote_options="permissive")
    return Numbers(whole.combine_chunks(), parts[0].keys)


def stack(parts: Sequence[Numbers]) -> Numbers:
    """Put tables of the same keys under one another and sort the rows by key, so that the order of parts says nothing.

    Columns that only some parts have are null in the others. Raises InvalidOption where a key stands in two rows.
    """
    keys = parts[0].keys
    assert all(part.keys == keys for part in parts), "parts of one table have the same keys"
    # Shards of a survey end in any order. Sorted by key, they give one table whichever came first; and the same row
    # twice, as of a shard that was named twice, stands side by side.
    whole = concat(parts).sort()
    found = whole.list_keys()
    if len(set(found)) < len(found):
        twice = next(one for one, other in pairwise(found) if one == other)
        named = ", ".join(f"{name} {value}" for name, value in zip(keys, twice, strict=True))
        raise InvalidOption(f"two parts hold the same row ({named})", hint="Name each part once.")
    return whole


def add_up(parts: Sequence[Numbers]) -> Numbers:
    """Add the values of rows of one key over tables of the same keys, and sort by key.

    Of whole numbers the sums are the same in any order of the parts; a column that a part lacks counts as 0 there.
    """
    whole = concat(parts)
    return whole.aggregate("sum", *whole.keys)
