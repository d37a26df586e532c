"""Characters that no file can hold. Knows texts, not where they come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from attnviz.text.document import Document

REPLACEMENT = "\ufffd"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # in a Python string a surrogate is always a lone one
_NAMED = 3  # in a notice; the rest is counted


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which no encoding has."""
    return _LONE_SURROGATE.sub(REPLACEMENT, text)


def mended(documents: Iterable[Document], already: Sequence[str] = ()) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """The documents without lone surrogates (an argument's stray bytes, JSON's "\\ud800") and one notice about all.

    `already` names texts whose bytes were replaced when they were read.
    """
    clean: list[Document] = []
    names = list(already)
    for document in documents:
        text = without_surrogates(document.text)
        if text != document.text:
            names.append(document.name)
            document = replace(document, text=text)
        clean.append(document)
    return tuple(clean), _notice(list(dict.fromkeys(names)))


def _notice(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return (f"{listed}: what is not valid Unicode was replaced by {REPLACEMENT} (U+FFFD)",)
