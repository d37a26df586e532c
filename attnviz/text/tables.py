"""Read data sets in plain text: .csv, .tsv, .jsonl, .ndjson, .json, .txt. Texts are never converted.

The standard library reads them, because errors name the line and no type may be guessed: `NA`, `5` and an empty field
are texts. Must not know splits.
"""

import csv
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from attnviz.bounded import GIB, UTF_8, find_mark
from attnviz.display import list_first, pluralize
from attnviz.document import CHATS, find_chat
from attnviz.errors import InvalidSource
from attnviz.text import columns
from attnviz.text.columns import NAMES_OF_SEPARATORS, DataTable, Layout
from attnviz.text.files import Place, check_size, decode, find_ending, open_file, read_lines
from attnviz.text.source import LOOKED_AT, MAX_COLUMNS, MAX_TEXT, Fields, Rows, Wanted, take_first

SEPARATORS = {".csv": ",", ".tsv": "\t"}
_LABEL = r"(?P<label>-?[0-9]{1,2}|neg|pos|negative|positive)"
BARE_LABEL = re.compile(r"(?P<label>[01]) (?P<text>.+)")  # both of them: else 1 may be a text's first word
LINES = {  # of a .txt, which is the first of these that all of its first lines are
    re.compile(rf"(?P<text>[^\t]*\S *)\t *{_LABEL}\s*", re.IGNORECASE): "a text, a tab and a label a line",
    re.compile(rf"{_LABEL}\t(?P<text>[^\t]+)", re.IGNORECASE): "a label, a tab and a text a line",
    re.compile(r"(?P<label>__label__\S+) (?P<text>.+)"): "a label and a text a line, as fastText has them",
    BARE_LABEL: "a label and a text a line",
    re.compile("(?s)(?P<text>.*)"): "",  # an empty line is an empty text, so that lines and texts have one number
}
FOR_EXCEL = re.compile(r'"?sep=.?"?\s*')  # a first line that says to it what separates columns, and is no row
NEVER_CLOSED = "a quote that opens in this row is never closed"
SAID = {  # by what the library says
    "unexpected end of data": NEVER_CLOSED,
    "new-line character": "a carriage return outside quotes",
    "expected after": "text follows a closing quote; write a quote inside a text twice",
}


def open_table(path: Place, wanted: Wanted) -> DataTable:
    """Open a file by its ending. Raises InvalidSource, and InvalidOption where a file without columns is to have some.

    A byte order mark that is not that of UTF-8 is said, as is all else that the ending does not.
    """
    ending = find_ending(path)
    if ending in SEPARATORS:
        table = _open_separated(path, wanted, SEPARATORS[ending])
    elif ending in (".jsonl", ".ndjson"):
        table = _open_objects(path, wanted, lambda _: _read_objects(path, wanted))
    elif ending == ".json":
        table = _open_json(path, wanted)
    else:
        table = _open_lines(path, wanted)
    if wanted.encoding is None:
        with open_file(path) as file:
            encoding = find_mark(file.read(4))
        said = () if encoding == UTF_8 else (encoding.upper(),)
        table = replace(table, layout=(*table.layout, *said))
    return table


def _open_lines(path: Place, wanted: Wanted) -> DataTable:
    """Open a .txt: a table, where its first line names columns; lines with labels, where all have one; else texts."""
    with closing(read_lines(path, wanted.encoding)) as lines:
        first, _ = take_first(lines)
    for separator, kind in NAMES_OF_SEPARATORS.items():
        names = [name.strip().strip('"') for name in first[0].split(separator)]
        # A column of texts and one of labels, as a first line of plain text hardly names.
        if {columns.is_text_name(name) for name in names if columns.is_known_name(name)} == {True, False}:
            table = _open_separated(path, wanted, separator)
            return replace(table, layout=(f"a table with {kind}", *table.layout))
    first = [line.rstrip("\r\n") for line in first]
    for form in LINES:
        found = [form.fullmatch(line) for line in first]
        if all(found) and (form is not BARE_LABEL or len({each["label"] for each in found if each}) > 1):
            break
    layout = (LINES[form],) if LINES[form] else ()

    def rows(_: Sequence[str]) -> Rows:
        with closing(read_lines(path, wanted.encoding)) as given:
            for number, line in enumerate(given, 1):
                found = form.fullmatch(line.rstrip("\r\n"))
                if found is None:
                    raise InvalidSource(f"{path}:{number}: the line has no label, as those before it have")
                yield f"{path}:{number}", found.groupdict()

    return DataTable(path.name, str(path), [*form.groupindex], wanted, rows, layout=layout)


def _open_separated(path: Place, wanted: Wanted, usual: str) -> DataTable:
    with closing(_read_table(path, wanted.encoding)) as lines:
        first, is_whole = take_first(lines)
    layout = columns.choose_layout(first, is_whole=is_whole, usual=usual, wanted=wanted, where=str(path))
    with closing(_read_records(path, layout, wanted.encoding)) as records:
        where, header = next(records, (f"{path}:1", []))
    if not header:
        raise InvalidSource(f"{where}: the header names no columns")
    names = header if layout.has_header else [str(place) for place in range(len(header))]

    def rows(_: Sequence[str]) -> Rows:
        with closing(_read_records(path, layout, wanted.encoding)) as records:
            for where, fields in islice(records, 1 if layout.has_header else 0, None):
                if len(fields) != len(names):
                    first = "header" if layout.has_header else "first row"
                    found = f"{len(fields)} {pluralize(len(fields), 'fields')} where the {first} has {len(names)}"
                    between = "a tab" if layout.separator == "\t" else repr(layout.separator)
                    problem = f"{where}: {found}"
                    raise InvalidSource(problem, hint=f"Put a text with {between} or a quote in it into quotes.")
                yield where, dict(zip(names, fields, strict=True))

    said = layout.describe(usual)
    return DataTable(path.name, where, names, wanted, rows, is_named=layout.has_header, layout=said)


def _read_table(path: Place, encoding: str | None) -> Generator[str, None, None]:
    """Yield the lines of a table, a blank one in the place of what is written for Excel."""
    with closing(read_lines(path, encoding)) as lines:
        yield from ("\n" if not number and FOR_EXCEL.fullmatch(line) else line for number, line in enumerate(lines))


def _read_records(path: Place, layout: Layout, encoding: str | None) -> Generator[tuple[str, list[str]], None, None]:
    """Yield each row with the `file:line` where it begins. Blank lines are skipped."""
    csv.field_size_limit(MAX_TEXT)  # its default is 128 KiB, shorter than some texts
    with closing(_read_table(path, encoding)) as given:
        start, size = 1, 0

        def read_row() -> Iterator[str]:
            nonlocal size
            for line in given:
                size += len(check_size(line, f"{path}:{start}", size))
                yield line

        reader = layout.parse(read_row())
        try:
            for fields in reader:
                if fields:
                    yield f"{path}:{start}", fields
                start, size = reader.line_num + 1, 0
        except csv.Error as error:
            said = next((SAID[sign] for sign in SAID if sign in str(error)), str(error))
            line = start if said == NEVER_CLOSED else reader.line_num
            since = f" (the row begins in line {start})" if start != line else ""
            raise InvalidSource(f"{path}:{line}: {said}{since}") from error


def _open_objects(path: Place, wanted: Wanted, rows: Callable[[Sequence[str]], Rows], *said: str) -> DataTable:
    """Open objects of JSON. The first ones decide which field holds the texts: some lack a field that others have."""
    with closing(rows(())) as objects:
        where, first = next(objects, (f"{path}:1", {}))
        names = dict.fromkeys(first)
        with suppress(InvalidSource):  # raised where the rows are read
            for _, fields in islice(objects, LOOKED_AT):
                names.update(dict.fromkeys(fields))
                if len(names) > MAX_COLUMNS:
                    break
    if not first:
        raise InvalidSource(f"{where}: there is no object with fields")
    if {"role", "content"} <= {*first} and wanted.text is None and not wanted.keep_markup:

        def one_chat(_: Sequence[str]) -> Rows:
            messages, size = list[Fields](), 0
            with closing(rows(())) as objects:
                for at, fields in objects:
                    messages.append(fields)
                    size += len(check_size(str(fields), at, size))
            if (chat := find_chat(messages)) is None:
                raise InvalidSource(f"{where}: the messages hold more than words, such as pictures")
            yield where, {CHATS[0]: chat}

        return DataTable(path.name, where, [CHATS[0]], wanted, one_chat, layout=("a chat, a message a line",))
    return DataTable(path.name, where, list(names), wanted, rows, layout=said)


def _read_objects(path: Place, wanted: Wanted) -> Rows:
    with closing(read_lines(path, wanted.encoding)) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                record = _parse_json(line.rstrip("\r\n"), path, number, wanted)
                yield f"{path}:{number}", _read_fields(record, f"{path}:{number}", wanted)


def _read_fields(record: Any, where: str, wanted: Wanted) -> Fields:
    """Return the fields of an object, or of messages as one text. What is nested is neither a text nor a label."""
    if not isinstance(record, dict):
        chat = None if wanted.keep_markup else find_chat(record)
        if chat is None:
            raise InvalidSource(f"{where}: not a JSON object", hint='Write {"text": "…"} for each.')
        return {CHATS[0]: chat}
    nested = {name: value for name, value in record.items() if isinstance(value, list | dict) and "role" not in record}
    chats = {} if wanted.keep_markup else {name: find_chat(value) for name, value in nested.items()}
    return record | {name: chats.get(name) or type(value)() for name, value in nested.items()}


def _parse_json(content: str, path: Place, first_line: int, wanted: Wanted) -> Any:
    wanted.budget.draw_json(f"the objects in {path}", content)
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        where = f"{path}:{first_line + error.lineno - 1}"
        raise InvalidSource(f"{where}: not JSON: {error.msg} at column {error.colno}") from error
    except (RecursionError, ValueError) as error:  # the second for a number of thousands of digits
        where = f"{path}:{first_line}"
        raise InvalidSource(f"{where}: JSON that is nested too deeply, or has too long a number") from error


def _open_json(path: Place, wanted: Wanted) -> DataTable:
    """Open a .json: an object a line, an array of objects, or an object that holds one or columns of equal length."""
    with closing(read_lines(path, wanted.encoding)) as lines:
        first, *others = [line for line in take_first(lines)[0] if line.strip()] or [""]
    if others:
        with suppress(InvalidSource):
            _read_fields(_parse_json(first, path, 1, wanted), f"{path}:1", wanted)
            return _open_objects(path, wanted, lambda _: _read_objects(path, wanted), "an object a line")
    with open_file(path) as file:
        raw = file.read(int(wanted.budget.max_gib * GIB) // 4 + 1)  # of which there will be copies
    wanted.budget.draw(f"the objects in {path}", 4 * len(raw))
    content = _parse_json(decode(raw, str(path), wanted.encoding), path, 1, wanted)
    chat = None if wanted.keep_markup else find_chat(content)
    records, said = _list_records(content, path) if chat is None else ([{CHATS[0]: chat}], ("a chat",))

    def rows(_: Sequence[str]) -> Rows:
        for number, record in enumerate(records):
            yield f"{path}: item {number}", _read_fields(record, f"{path}: item {number}", wanted)

    return _open_objects(path, wanted, rows, *said)


def _list_records(content: Any, path: Place) -> tuple[Iterable[Any], tuple[str, ...]]:
    """Find the rows of a data set in what a .json holds, and say how. Raises InvalidSource where that is not clear."""
    if isinstance(content, list):
        return content, ("an array",)
    if isinstance(content, dict):
        found = [name for name, value in content.items() if isinstance(value, list)]
        found = [name for name in found if content[name] and isinstance(content[name][0], dict)]
        if len(found) > 1:
            problem = f"{path}: the rows may be in {list_first(found, columns.MAX_NAMED, repr)}"
            raise InvalidSource(problem, hint="Keep one of them.")
        if found:
            return content[found[0]], (f"the array {found[0]!r}",)
        # Columns of equal length, lists or objects by number as pandas writes them.
        members = list(content.values())
        if members and all(isinstance(each, (list, dict)) and len(each) == len(members[0]) for each in members):
            keys = [list(each) if isinstance(each, dict) else list(range(len(each))) for each in members]
            if all(of == keys[0] for of in keys):
                return [{name: content[name][key] for name in content} for key in keys[0]], ("columns",)
        return [content], ("one object",)
    problem = f"{path} holds no rows"
    raise InvalidSource(problem, hint='Write [{"text": "…", "label": 0}, …], {"data": […]}, or an object a line.')
