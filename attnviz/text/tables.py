"""Read data sets in plain text: .csv, .tsv, .jsonl, .ndjson, .json, .txt. Texts are never converted.

The standard library reads them, because errors name the line and no type may be guessed: `NA`, `5` and an empty field
are texts. Must not know splits.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

from attnviz.bounded import format_bytes
from attnviz.display import list_first, pluralize
from attnviz.errors import InvalidSource
from attnviz.text.archives import Place
from attnviz.text.columns import MAX_NAMED, Columns, DataTable, is_known_name, is_text_name
from attnviz.text.files import UTF_8, decode, find_mark, open_file, read_lines
from attnviz.text.layout import LOOKED_AT, NAMES_OF_SEPARATORS, Layout, choose_layout, take_first_lines
from attnviz.text.source import MAX_TEXT, Wanted, check_no_columns

SEPARATORS = {".csv": ",", ".tsv": "\t"}
MAX_JSON = 2**28  # bytes of a .json, which is read whole; of .jsonl a line is
_LABEL = r"(?P<label>-?[0-9]{1,2}|neg|pos|negative|positive)"
BARE_LABEL = re.compile(r"(?P<label>[01]) (?P<text>.+)")  # both of them: else 1 may be a text's first word
LINES = {  # of a .txt, which is the first of these that all of its first lines are
    re.compile(rf"(?P<text>[^\t]*\S *)\t *{_LABEL}\s*", re.IGNORECASE): "a text, a tab and a label a line",
    re.compile(rf"{_LABEL}\t(?P<text>[^\t]+)", re.IGNORECASE): "a label, a tab and a text a line",
    re.compile(r"(?P<label>__label__\S+) (?P<text>.+)"): "a label and a text a line, as fastText has them",
    BARE_LABEL: "a label and a text a line",
    re.compile(
        "(?P<text>.*)", re.DOTALL
    ): "",  # an empty line is an empty text, so that lines and texts have one number
}
TABS = "tabs are read as part of the texts; use .tsv for columns"

Fields = Mapping[str, Any]  # of a row, by the names of its columns
Rows = Generator[tuple[str, Fields], None, None]  # each with the `file:line` where it begins


@dataclass(frozen=True, eq=False, kw_only=True)
class TextTable(DataTable):
    """A table in plain text by its rows, each with the `file:line` where it begins."""

    rows: Callable[[], Rows]

    def list_rows(self, columns: Columns) -> Iterator[tuple[str, object, object]]:
        """Yield the rows. Raises InvalidSource with file and line."""
        with closing(self.rows()) as rows:
            for where, fields in rows:
                if columns.text not in fields:
                    raise InvalidSource(f"{where}: there is no field {columns.text!r}")
                yield where, fields[columns.text], None if columns.label is None else fields.get(columns.label)

    def list_values(self, column: str) -> Iterator[object]:
        """Yield the values of a column up to the first row that cannot be read, which reading names."""
        first = self._first_rows
        rest = islice(self._list_readable_rows(), LOOKED_AT, None) if len(first) == LOOKED_AT else ()
        return (fields.get(column) for fields in chain(first, rest))

    @cached_property
    def _first_rows(self) -> list[Fields]:
        """Read the rows that columns are guessed from, once for all columns."""
        return list(islice(self._list_readable_rows(), LOOKED_AT))

    def _list_readable_rows(self) -> Iterator[Fields]:
        with suppress(InvalidSource), closing(self.rows()) as rows:
            for _, fields in rows:
                yield fields


def open_table(path: Place, wanted: Wanted) -> TextTable:
    """Open a file by its ending. Raises InvalidSource, and InvalidOption where a file without columns is to have some.

    A byte order mark that is not that of UTF-8 is said, as is all else that the ending does not.
    """
    ending = path.suffix.lower()
    if ending in SEPARATORS:
        table = _open_separated(path, wanted, SEPARATORS[ending])
    elif ending in (".jsonl", ".ndjson"):
        table = _open_objects(path, wanted, lambda: _read_objects(path, wanted.encoding))
    elif ending == ".json":
        table = _open_json(path, wanted)
    else:
        table = _open_lines(path, wanted)
    if wanted.encoding is None:
        with open_file(path) as file:
            encoding = find_mark(file.read(3))
        said = () if encoding == UTF_8 else (encoding.upper(),)
        table = replace(table, layout=(*table.layout, *said))
    return table


def _open_lines(path: Place, wanted: Wanted) -> TextTable:
    """Open a .txt: a table, where its first line names columns; lines with labels, where all have one; else texts."""
    with closing(read_lines(path, wanted.encoding)) as lines:
        first, _ = take_first_lines(lines)
    for separator, kind in NAMES_OF_SEPARATORS.items():
        names = [name.strip().strip('"') for name in first[0].split(separator)]
        # A column of texts and one of labels, as a first line of plain text hardly names.
        if {is_text_name(name) for name in names if is_known_name(name)} == {True, False}:
            table = _open_separated(path, wanted, separator)
            return replace(table, layout=(f"a table with {kind}", *table.layout))
    first = [_strip_end(line) for line in first]
    for form in LINES:
        found = [form.fullmatch(line) for line in first]
        if all(found) and (form is not BARE_LABEL or len({each["label"] for each in found if each}) > 1):
            break
    layout, note = (LINES[form],) if LINES[form] else (), ""
    if not layout:
        check_no_columns(wanted, path.name)
        note = TABS if 2 * sum("\t" in line.rstrip() for line in first) > len(first) else ""

    def rows() -> Rows:
        with closing(read_lines(path, wanted.encoding)) as given:
            for number, line in enumerate(given, 1):
                found = form.fullmatch(_strip_end(line))
                if found is None:
                    raise InvalidSource(f"{path}:{number}: the line has no label, as those before it have")
                yield f"{path}:{number}", found.groupdict()

    return TextTable(path.name, str(path), [*form.groupindex], wanted, layout=layout, note=note, rows=rows)


def _strip_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _open_separated(path: Place, wanted: Wanted, usual: str) -> TextTable:
    with closing(read_lines(path, wanted.encoding)) as lines:
        first, is_whole = take_first_lines(lines)
    layout = choose_layout(first, is_whole=is_whole, usual=usual, wanted=wanted, where=str(path))
    with closing(_read_records(path, layout, wanted.encoding)) as records:
        where, header = next(records, (f"{path}:1", []))
    if not header:
        raise InvalidSource(f"{where}: the header names no columns")
    names = header if layout.has_header else [str(place) for place in range(len(header))]

    def rows() -> Rows:
        with closing(_read_records(path, layout, wanted.encoding)) as records:
            for where, fields in islice(records, 1 if layout.has_header else 0, None):
                if len(fields) != len(names):
                    raise InvalidSource(
                        f"{where}: {len(fields)} {pluralize(len(fields), 'fields')} where the "
                        f"{'header' if layout.has_header else 'first row'} has {len(names)}",
                        hint=f"Put a text with {'a tab' if layout.separator == chr(9) else repr(layout.separator)} "
                        "or a quote in it into quotes.",
                    )
                yield where, dict(zip(names, fields, strict=True))

    said = layout.describe(usual)
    return TextTable(path.name, where, names, wanted, is_named=layout.has_header, layout=said, rows=rows)


def _read_records(path: Place, layout: Layout, encoding: str | None) -> Generator[tuple[str, list[str]], None, None]:
    """Yield each row with the `file:line` where it begins. Blank lines are skipped."""
    csv.field_size_limit(MAX_TEXT)  # its default is 128 KiB, shorter than some texts
    with closing(read_lines(path, encoding)) as given:
        reader = layout.parse(given)
        start = 1
        try:
            for fields in reader:
                if fields:
                    yield f"{path}:{start}", fields
                start = reader.line_num + 1
        except csv.Error as error:
            said = str(error)
            if "unexpected end of data" in said:
                raise InvalidSource(f"{path}:{start}: a quote that opens in this row is never closed") from error
            if "new-line character" in said:
                said = "a carriage return outside quotes"
            elif "expected after" in said:
                said = "text follows a closing quote; write a quote inside a text twice"
            since = f" (the row begins in line {start})" if start != reader.line_num else ""
            raise InvalidSource(f"{path}:{reader.line_num}: {said}{since}") from error


def _open_objects(path: Place, wanted: Wanted, rows: Callable[[], Rows], *said: str) -> TextTable:
    """Open objects of JSON. The first ones decide which field holds the texts: some lack a field that others have."""
    with closing(rows()) as objects:
        where, first = next(objects, (f"{path}:1", {}))
        names = dict.fromkeys(first)
        with suppress(InvalidSource):  # raised where the rows are read
            for _, fields in islice(objects, LOOKED_AT):
                names.update(dict.fromkeys(fields))
    if not first:
        raise InvalidSource(f"{where}: there is no object with fields")
    return TextTable(path.name, where, list(names), wanted, layout=said, rows=rows)


def _read_objects(path: Place, encoding: str | None) -> Rows:
    with closing(read_lines(path, encoding)) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield f"{path}:{number}", _parse_object(line, path, number)


def _parse_object(line: str, path: Place, number: int) -> dict[str, Any]:
    record = _parse_json(line.rstrip("\r\n"), path, number)
    if not isinstance(record, dict):
        raise InvalidSource(f"{path}:{number}: not a JSON object", hint='Write {"text": "…"} in each line.')
    return record


def _parse_json(content: str, path: Place, first_line: int) -> Any:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        where = f"{path}:{first_line + error.lineno - 1}"
        raise InvalidSource(f"{where}: not JSON: {error.msg} at column {error.colno}") from error
    except (RecursionError, ValueError) as error:  # the second for a number of thousands of digits
        where = f"{path}:{first_line}"
        raise InvalidSource(f"{where}: JSON that is nested too deeply, or has too long a number") from error


def _open_json(path: Place, wanted: Wanted) -> TextTable:
    """Open a .json: an object a line, an array of objects, or an object that holds one or columns of equal length."""
    with closing(read_lines(path, wanted.encoding)) as lines:
        first, *others = list(islice((line for line in lines if line.strip()), 2)) or ("",)
    if others:
        with suppress(InvalidSource):
            _parse_object(first, path, 1)
            return _open_objects(path, wanted, lambda: _read_objects(path, wanted.encoding), "an object a line")
    with open_file(path) as file:
        raw = file.read(MAX_JSON + 1)
    if len(raw) > MAX_JSON:
        raise InvalidSource(
            f"{path} is longer than the {format_bytes(MAX_JSON)} of a .json", hint="Write an object a line, as .jsonl."
        )
    records, said = _list_records(_parse_json(decode(raw, str(path), wanted.encoding), path, 1), path)

    def rows() -> Rows:
        for number, record in enumerate(records):
            if not isinstance(record, dict):
                raise InvalidSource(f"{path}: item {number} is not a JSON object", hint='Write {"text": "…"} for each.')
            yield f"{path}: item {number}", record

    return _open_objects(path, wanted, rows, *said)


def _list_records(content: Any, path: Place) -> tuple[Iterable[Any], tuple[str, ...]]:
    """Find the rows of a data set in what a .json holds, and say how. Raises InvalidSource where that is not clear."""
    if isinstance(content, list):
        return content, ("an array",)
    if isinstance(content, dict):
        found = [name for name, value in content.items() if isinstance(value, list)]
        found = [name for name in found if content[name] and isinstance(content[name][0], dict)]
        if len(found) > 1:
            raise InvalidSource(
                f"{path}: the rows may be in {list_first(found, MAX_NAMED, repr)}", hint="Keep one of them."
            )
        if found:
            return content[found[0]], (f"the array {found[0]!r}",)
        # Columns of equal length, lists or objects by number as pandas writes them.
        columns = list(content.values())
        if columns and all(isinstance(each, (list, dict)) and len(each) == len(columns[0]) for each in columns):
            keys = [list(each) if isinstance(each, dict) else list(range(len(each))) for each in columns]
            if all(of == keys[0] for of in keys):
                return [{name: content[name][key] for name in content} for key in keys[0]], ("columns",)
        return [content], ("one object",)
    raise InvalidSource(
        f"{path} holds no rows", hint='Write [{"text": "…", "label": 0}, …], {"data": […]}, or an object a line.'
    )
