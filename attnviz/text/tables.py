"""Read data sets in plain text: .csv, .tsv, .jsonl, .ndjson, .txt. Texts are never converted.

The standard library reads them, because errors name the line and no type may be guessed: `NA`, `5` and an empty field
are texts. Must not know splits.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Generator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from attnviz.display import list_first, pluralize
from attnviz.errors import InvalidSource
from attnviz.text.files import read_lines
from attnviz.text.source import MAX_TEXT, Row, as_label, as_text, check_no_columns, find_label_column, find_text_column

LABEL_AT_END = re.compile(r"\S\t[0-9]{1,2}$")
MAX_NAMED = 8  # columns in a notice


def read_txt(path: Path, wanted: str | None, needed: int | None) -> Generator[Row, None, None]:
    """Read one text a line; an empty line is an empty text, so that lines and texts have the same numbers."""
    check_no_columns(wanted, path.name)
    with closing(read_lines(path)) as given:
        for line in islice(given, needed):
            yield line.removesuffix("\n").removesuffix("\r"), None


def read_csv(path: Path, wanted: str | None, needed: int | None) -> Generator[Row, None, None]:
    """Read the rows of a table with commas. Raises InvalidSource with file and line."""
    return _read_separated(path, wanted, needed, ",")


def read_tsv(path: Path, wanted: str | None, needed: int | None) -> Generator[Row, None, None]:
    """Read the rows of a table with tabs. Raises InvalidSource with file and line."""
    return _read_separated(path, wanted, needed, "\t")


def read_jsonl(path: Path, wanted: str | None, needed: int | None) -> Generator[Row, None, None]:
    """Read one object a line. The first one decides which field holds the texts; blank lines are skipped."""
    column = ""
    with closing(_read_objects(path)) as objects:
        for where, record in islice(objects, needed):
            column = column or find_text_column(list(record), wanted, where)
            if column not in record:
                raise InvalidSource(f"{where}: there is no field {column!r}")
            label = find_label_column(list(record))
            yield as_text(record[column], column, where), as_label(record[label]) if label else None


def describe_columns(path: Path, wanted: str | None) -> tuple[str, ...]:
    """Describe what of a file is not used: columns, unknown labels, and text that looks like a label.

    Reads its first row and raises nothing: errors are raised where the file is read.
    """
    with suppress(InvalidSource, StopIteration):
        if path.suffix.lower() == ".txt":
            with closing(read_lines(path)) as given:
                first = next(given).rstrip("\r\n")
            notice = f"{path.name}: lines end in a tab and a number, which are read as text; use .tsv for columns"
            return (notice,) if LABEL_AT_END.search(first) else ()
        columns, values = _read_first_row(path)
        text, label = find_text_column(columns, wanted, str(path)), find_label_column(columns)
        used = [f"texts from {text!r}", *([f"labels from {label!r}"] if label else ["no labels"])]
        others = list_first([column for column in columns if column not in (text, label)], MAX_NAMED, repr)
        notices = [f"{path.name}: {', '.join(used)}; not used: {others}"] if others else []
        value = values.get(label) if label else None
        if value not in (None, "", -1, "-1") and as_label(value) is None:
            known = "0, 1, 2 …, neg, pos, negative and positive"
            notices.append(f"{path.name}: {label!r} holds {value!r:.40}, which is not a label: these are {known}")
        return tuple(notices)
    return ()


def _read_first_row(path: Path) -> tuple[list[str], dict[str, Any]]:
    """Read the names of the columns, and the first row by name."""
    if path.suffix.lower() in (".csv", ".tsv"):
        with closing(_read_records(path, "," if path.suffix.lower() == ".csv" else "\t")) as records:
            (_, header), (_, fields) = next(records), next(records, ("", []))
        return header, dict(zip(header, fields, strict=False))
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        with closing(_read_objects(path)) as objects:
            _, record = next(objects)
        return list(record), record
    raise StopIteration


def _read_objects(path: Path) -> Generator[tuple[str, dict[str, Any]], None, None]:
    with closing(read_lines(path)) as given:
        for number, line in enumerate(given, 1):
            if line.strip():
                yield f"{path}:{number}", _parse_object(line, f"{path}:{number}")


def _parse_object(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line.rstrip("\r\n"))  # columns are counted from the last line break
    except json.JSONDecodeError as error:
        raise InvalidSource(f"{where}: not JSON: {error.msg} at column {error.colno}") from error
    except (RecursionError, ValueError) as error:  # the second for a number of thousands of digits
        raise InvalidSource(f"{where}: JSON that is nested too deeply, or has too long a number") from error
    if not isinstance(record, dict):
        raise InvalidSource(f"{where}: not a JSON object", hint='Write {"text": "…"} in each line.')
    return record


def _read_separated(path: Path, wanted: str | None, needed: int | None, delimiter: str) -> Generator[Row, None, None]:
    with closing(_read_records(path, delimiter)) as records:
        where, header = next(records, (f"{path}:1", []))
        if not header:
            raise InvalidSource(f"{where}: the header names no columns")
        text = header.index(find_text_column(header, wanted, where))
        label_name = find_label_column(header)
        label = header.index(label_name) if label_name is not None else None
        for where, fields in islice(records, needed):
            if len(fields) != len(header):
                raise InvalidSource(
                    f"{where}: {len(fields)} {pluralize(len(fields), 'fields')} where the header has {len(header)}",
                    hint=f"Put a text with {'a comma' if delimiter == ',' else 'a tab'} or a quote in it into quotes.",
                )
            yield fields[text], as_label(fields[label]) if label is not None else None


def _read_records(path: Path, delimiter: str) -> Generator[tuple[str, list[str]], None, None]:
    """Yield each row with the `file:line` where it begins. Blank lines are skipped."""
    csv.field_size_limit(MAX_TEXT)  # its default is 128 KiB, shorter than some texts
    with closing(read_lines(path)) as given:
        reader = csv.reader(given, delimiter=delimiter, strict=True)
        start = 1
        try:
            for fields in reader:
                if fields:
                    yield f"{path}:{start}", fields
                start = reader.line_num + 1
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise InvalidSource(f"{path}:{start}: a quote that opens in this row is never closed") from error
            since = f" (the row begins in line {start})" if start != reader.line_num else ""
            raise InvalidSource(f"{path}:{reader.line_num}: {_describe_error(error)}{since}") from error


def _describe_error(error: csv.Error) -> str:
    if "new-line character" in str(error):
        return "a carriage return outside quotes"
    if "expected after" in str(error):
        return "text follows a closing quote; write a quote inside a text twice"
    return str(error)
