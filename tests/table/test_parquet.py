"""Tables as files: the same rows give the same bytes, and what is wrong with somebody else's is said in a line."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from attnviz.errors import InvalidRecord
from attnviz.table.parquet import encode_table, read_table

COLUMNS = {"text": pa.int64(), "name": pa.string()}
TABLE = pa.table({"text": [0, 1], "name": ["a", "b"], "entropy 0.1": pa.array([0.5, None], pa.float32())})


def read(path: Path) -> tuple[pa.Table, dict[str, str]]:
    return read_table(path, COLUMNS, pa.float32())


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(encode_table(TABLE, {"model": "multi:8"}))
    table, about = read(path)
    assert table.equals(TABLE)
    assert about == {"model": "multi:8"}


def test_the_same_rows_give_the_same_bytes_however_they_came() -> None:
    parts = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])
    assert encode_table(parts, {}) == encode_table(TABLE, {})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (TABLE.drop_columns(["name"]), "has no column 'name'"),
        (TABLE.set_column(0, "text", pa.array(["0", "1"])), "column 'text' holds string, not int64"),
        (TABLE.append_column("more", pa.array([1, 2])), "column 'more' holds int64, not float"),
        (TABLE.append_column("text", pa.array([1, 2])), "has two columns of one name"),
        (
            TABLE.append_column("x", pa.array([1.0, float("inf")], pa.float32())),
            "'x' holds a number that is not finite",
        ),
        (
            TABLE.append_column("x", pa.array([1.0, float("nan")], pa.float32())),
            "'x' holds a number that is not finite",
        ),
    ],
)
def test_a_table_of_somebody_else_is_checked(table: pa.Table, said: str, tmp_path: Path) -> None:
    path = tmp_path / "theirs.parquet"
    parquet.write_table(table, path)
    with pytest.raises(InvalidRecord, match=re.escape(said)):
        read(path)


@pytest.mark.parametrize("content", [b"", b"text,label\n", encode_table(TABLE, {})[:-9], b"PAR1" * 9])
def test_what_is_no_parquet_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "theirs.parquet"
    path.write_bytes(content)
    with pytest.raises(InvalidRecord, match=r"theirs\.parquet is not a readable Parquet file"):
        read(path)


def test_a_string_that_is_repeated_is_counted_as_often_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of a few kilobytes whose one name would take 1 GB."""
    monkeypatch.setattr("attnviz.table.parquet.MAX_UNPACKED", 2**28)
    path = tmp_path / "bomb.parquet"
    names = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["a" * 2**20]))
    parquet.write_table(pa.table({"text": range(1000), "name": names}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    with pytest.raises(InvalidRecord, match=r"unpacks to .* at most"):
        read(path)
