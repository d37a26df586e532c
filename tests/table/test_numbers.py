"""Tables of numbers, and the files that they are written to."""

import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.table.numbers import Numbers, add_up, stack
from attnviz.table.parquet import encode_table, read_table

ROWS: list[dict[str, object]] = [
    {"text": text, "head": head, "entropy": text + head / 10 if (text, head) != (2, 1) else None}
    for text in range(4)
    for head in range(2)
]


def numbers(rows: list[dict[str, object]]) -> Numbers:
    return Numbers.from_rows(rows, ("text", "head"))


def test_any_string_can_be_a_key() -> None:
    """As of a file whose name is no UTF-8."""
    table = Numbers.from_rows([{"text": "a\udc80"}, {"text": None}, {"text": "猫"}], ("text",))
    assert table.list_keys() == [("a\\udc80",), (None,), ("猫",)]


def test_means_are_of_the_rows_that_have_a_number() -> None:
    means = numbers(ROWS).aggregate("mean", "head")
    assert means.keys == ("head",)
    assert means.list_keys() == [(0,), (1,)]
    assert means.array("entropy").tolist() == pytest.approx([1.5, np.mean([0.1, 1.1, 3.1])])


def test_a_row_that_two_parts_hold_is_refused_by_its_key() -> None:
    with pytest.raises(InvalidOption, match=r"two parts hold the same row \(text 1, head 1\)"):
        stack([numbers(ROWS[:4]), numbers(ROWS[3:])])


def test_a_column_of_one_part_only_is_missing_in_the_other() -> None:
    whole = stack([numbers(ROWS[:1]), numbers([ROWS[1] | {"peak": 0.5}])])
    assert whole.values == ("entropy", "peak")
    assert np.isnan(whole.array("peak")).tolist() == [True, False]


def test_columns_are_arrays_with_nan_where_there_is_no_number() -> None:
    values = numbers(ROWS).matrix(["entropy", "head"])
    assert values[5].tolist()[1] == 1
    assert np.isnan(values[:, 0]).tolist() == [row["entropy"] is None for row in ROWS]
    assert numbers([{"text": 1, "head": None, "name": ["a", "b"]}]).array("name").tolist() == [["a", "b"]]


def test_rows_are_selected_by_one_value_or_one_of_several() -> None:
    assert numbers(ROWS).select(head=1, text=[1, 3]).rows() == [ROWS[3], ROWS[7]]
    assert len(numbers(ROWS).select(text=9)) == 0


def test_whole_numbers_of_any_size_add_up_to_the_same_in_any_order() -> None:
    parts = [
        Numbers.from_columns({"word": ["b", "a"], "n": [2**60, 1]}, ["word"]),
        Numbers.from_columns({"word": ["a"], "n": [2]}, ["word"]),
        Numbers.from_columns({"word": ["c", "b"], "n": [5, 3]}, ["word"]),
    ]
    for order in permutations(parts):
        found = add_up(order)
        assert found.list_keys() == [("a",), ("b",), ("c",)]
        assert found.integers(["n"]).ravel().tolist() == [3, 2**60 + 3, 5]
    with pytest.raises(ValueError, match="a number of n is missing"):
        numbers([{"text": 0, "head": 0, "n": None}]).integers(["n"])


# --- Tables as files: the same rows give the same bytes, and what is wrong with somebody else's is said in a line ---


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
        (TABLE.append_column("x", pa.array([1.0, float("inf")], pa.float32())), "'x' holds a number that is not"),
        (TABLE.append_column("x", pa.array([1.0, float("nan")], pa.float32())), "'x' holds a number that is not"),
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


def test_a_string_is_counted_as_often_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a few kilobytes whose one name would take 1 GB."""
    monkeypatch.setattr("attnviz.table.parquet.MAX_UNPACKED", 2**28)
    path = tmp_path / "bomb.parquet"
    names = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["a" * 2**20]))
    parquet.write_table(pa.table({"text": range(1000), "name": names}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    with pytest.raises(InvalidRecord, match=r"unpacks to .* at most"):
        read(path)
