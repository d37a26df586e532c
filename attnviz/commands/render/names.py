"""Names of tokens, from a file or an option."""

from __future__ import annotations

import json
from collections.abc import Sequence

from attnviz.bounded import expand_path
from attnviz.display import format_count
from attnviz.errors import InvalidSource
from attnviz.text import decode_argument
from attnviz.text.files import decode_strictly, read_content

Names = Sequence[str] | None


def read_token_names(file: str | None, words: str | None = None) -> tuple[Names, tuple[str, ...]]:
    """Return the names in a file or an option, or None, and how they were read.

    Lines are a name each; a single line is words separated by blanks; a .json holds a list. Raises InvalidSource.
    """
    if file is None:
        return (None, ()) if words is None else (decode_argument(words).split(), ())
    path = expand_path(file, InvalidSource)
    text = decode_strictly(read_content(path), file).removeprefix("\ufeff")
    if path.suffix.lower() == ".json":
        names, read_as = _parse_list(text, file), "of its list"
    else:
        names = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
        read_as = "one a line"
        if len(names) == 1:
            names, read_as = text.split(), "separated by blanks in its only line"
    return names, (f"{file}: {format_count(len(names), 'tokens')}, {read_as}",)


def _parse_list(text: str, file: str) -> list[str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSource(f"{file} is not JSON") from error
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise InvalidSource(f"{file} is not a list of texts", hint='Such as ["the", "cat"].')
    return found
