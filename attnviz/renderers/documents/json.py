"""Reports for machines: one JSON document of all texts. Knows `report` only.

The document is `{"schema": 1, "texts": [...]}`, one `Report.data` per text, keys in the order of the data, always
a list. Pure ASCII: controls, bidi and every other script are written as escapes, so that a terminal and any locale can
take it. A lone surrogate, which strict parsers refuse even escaped, becomes U+FFFD. float32 is written with the fewest
digits that give the same float32 again. The same report gives the same bytes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from attnviz.display import replace_surrogates
from attnviz.report import Report

SCHEMA = 1
SEVERAL = (list, tuple, Mapping, np.ndarray)


def render(reports: Iterable[Report]) -> bytes:
    """Write the whole document. For many or large texts take `chunks`."""
    return b"".join(chunks(reports))


def chunks(reports: Iterable[Report]) -> Iterator[bytes]:
    """Yield the document bit by bit: never more than one row of weights as text at a time.

    Raises ValueError for a number that JSON does not have (NaN, infinity) and TypeError for an unknown type.
    """
    yield b'{\n"schema": %d,\n"texts": [' % SCHEMA
    for number, report in enumerate(reports):
        yield b",\n" if number else b"\n"
        for piece in _write(report.data, 1):
            yield piece.encode("ascii")
    yield b"\n]\n}\n"


def write_alone(report: Report) -> Iterator[bytes]:
    """Yield the document of a report on no single one of several texts: `{"schema": 1, ...}` with its data beside."""
    for piece in _write({"schema": SCHEMA, **report.data}, 1):
        yield piece.encode("ascii")
    yield b"\n"


def _write(value: object, depth: int) -> Iterator[str]:
    """Yield `value` as JSON: objects and arrays of arrays over several lines, a row of plain values on one."""
    is_row = isinstance(value, list | tuple) and not any(isinstance(each, SEVERAL) for each in value)
    if isinstance(value, np.ndarray) and value.ndim < 2:
        if value.dtype != np.float32:
            yield _plain(value.tolist())
            return
        if not np.isfinite(value).all():
            raise ValueError("a number that is not finite has no place in JSON")
        yield f"[{', '.join(value.astype('U16').tolist())}]"  # numpy writes the shortest digits of a float32
    elif isinstance(value, SEVERAL) and not is_row:
        yield "{" if isinstance(value, Mapping) else "["
        for number, each in enumerate(value):
            yield ("," if number else "") + "\n" + " " * depth
            if isinstance(value, Mapping):
                if not isinstance(each, str):
                    raise TypeError(f"a key of an object has to be a string, not {each!r}")
                yield f"{_plain(each)}: "
            yield from _write(value[each] if isinstance(value, Mapping) else each, depth + 1)
        yield "}" if isinstance(value, Mapping) else "]"
    else:
        yield _plain(value)


def _plain(value: object) -> str:
    """Write a value, or a list of values, on one line."""
    return json.dumps(_make_plain(value), allow_nan=False)


def _make_plain(value: object) -> object:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, Sequence):
        return [_make_plain(inner) for inner in value]
    return value
