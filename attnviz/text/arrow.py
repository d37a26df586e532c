"""Tables whose columns Arrow holds: Parquet files, folders of `datasets`, what it loads from the hub.

A feature of `datasets` such as Image, Audio, Video, Pdf or Array2D decodes bytes when a row is read, by libraries that
choose a format by content: Pillow starts Ghostscript for PostScript. So a column is read only where its type is plain,
which is checked before any row is, and values are what Arrow stores, never what `datasets` makes of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias

import pyarrow
from pyarrow import parquet, types

from attnviz.bounded import parse_json
from attnviz.document import find_chat
from attnviz.errors import InvalidSource
from attnviz.text.columns import DataTable
from attnviz.text.files import Place, open_file, summarize_error
from attnviz.text.source import MAX_TEXT, OtherKind, Rows, Wanted, name_swapped

BATCH_ROWS = 4096  # rows in memory at a time
MAX_GROUPS = 2**18  # row groups, or parts of them, that a file lists
MESSAGES = ({"role", "content"}, {"from", "value"})  # fields of a message
PLAIN = ("string", "large_string", "string_view", "integer", "floating", "boolean")  # of the kinds of pyarrow.types
Batches: TypeAlias = Callable[[Sequence[str]], Iterator[list[Iterator[object]]]]


def read_rows(
    where: str, kinds: Mapping[str, Any], swapped: Mapping[str, Any], batches: Batches, columns: Sequence[str]
) -> Rows:
    """Yield some columns of each row; of one that is not plain its kind, which is neither a text nor a label.

    `kinds` are Arrow's types, or names of features that would be decoded. `swapped` are names of classes that say other
    than their numbers. `batches` gives the values of some columns, a batch of rows at a time.
    """
    plain = [name for name in columns if _is_plain(kinds[name])]
    unread = {name: OtherKind(kinds[name]) for name in columns if name not in plain}
    if not plain:
        yield where, unread
        return
    chats, row = {name for name in plain if is_chat(kinds[name])}, 0
    for batch in batches(plain):
        for values in zip(*batch, strict=True):
            fields = dict(zip(plain, values, strict=True))
            for name in swapped.keys() & fields.keys() - chats:
                fields[name] = swapped[name].get(fields[name], fields[name])
            yield f"{where}: row {row}", unread | fields | {name: find_chat(fields[name]) for name in chats}
            row += 1


def _is_plain(kind: Any) -> bool:
    if isinstance(kind, str):
        return False
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return is_chat(kind) or any(getattr(types, f"is_{name}")(kind) for name in PLAIN)


def is_chat(kind: Any) -> bool:
    """Return whether a type of Arrow is that of messages: lists of roles and contents, all of them texts."""
    if not types.is_list(kind) or not types.is_struct(kind.value_type):
        return False
    fields = {each.name: each.type for each in kind.value_type}
    return any(form <= {*fields} for form in MESSAGES) and all(map(types.is_string, fields.values()))


def list_columns(batch: Any, names: Sequence[str]) -> list[Iterator[object]]:
    """Return the values of some columns of a batch; repeated texts are one object."""
    found = list[Iterator[object]]()
    for column in map(batch.column, names):
        if hasattr(column, "dictionary"):
            used = column.indices.unique()
            texts = dict(zip(used.to_pylist(), column.dictionary.take(used).to_pylist(), strict=True))
            found.append(map(texts.__getitem__, column.indices.to_pylist()))
        else:  # such as a string view, which is not read as a dictionary
            found.append(iter(column.to_pylist()))
    return found


def open_parquet(path: Place, wanted: Wanted) -> DataTable:
    """Open a Parquet table, which is read a row group at a time. Raises InvalidSource."""
    with _reading(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
    kinds = dict(zip(schema.names, schema.types, strict=True))

    def read_batches(columns: Sequence[str]) -> Iterator[list[Iterator[object]]]:
        texts = [name for name in columns if not types.is_nested(kinds[name])]
        # A text that is repeated stays one text: a small file may repeat a long one millions of times.
        with _reading(path, metadata=metadata, read_dictionary=texts) as file:
            for group in range(metadata.num_row_groups):
                of_group = metadata.row_group(group)
                parts = [of_group.column(place) for place in range(of_group.num_columns)]
                parts = [each for each in parts if each.path_in_schema.split(".")[0] in columns]
                size = sum(each.total_uncompressed_size for each in parts)
                wanted.budget.draw(f"the rows of a group of {path}", size)  # it is read whole
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns):
                    yield list_columns(batch, columns)

    swapped = {}
    with suppress(KeyError, TypeError, ValueError, RecursionError, AttributeError):  # what `datasets` wrote into it
        features = parse_json((schema.metadata or {})[b"huggingface"])["info"]["features"]
        swapped = {name: name_swapped(each["names"]) for name, each in features.items() if "names" in each}
    return DataTable(
        path.name, str(path), schema.names, wanted, partial(read_rows, str(path), kinds, swapped, read_batches)
    )


@contextmanager
def _reading(path: Place, **options: Any) -> Iterator[parquet.ParquetFile]:
    try:
        limits = {"thrift_string_size_limit": MAX_TEXT, "thrift_container_size_limit": MAX_GROUPS}
        with open_file(path) as raw, parquet.ParquetFile(raw, **limits, **options) as file:
            yield file
    except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
        raise InvalidSource(f"{path} is not a readable Parquet file: {summarize_error(error)}") from error
    finally:
        pyarrow.default_memory_pool().release_unused()  # else the memory of a whole row group is never released
