"""Texts from the command line, from files and from standard input, each as it is. Knows no data sets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from attnviz.errors import InvalidOption, InvalidSource
from attnviz.inputs import is_folder, user_path
from attnviz.text.document import Corpus, Document
from attnviz.text.files import BOM, MAX_TEXT, bounded, content
from attnviz.text.unicode import mended, without_surrogates

STANDARD_INPUT = "-"
MAX_EXCERPT_LENGTH = 40


def given_texts(texts: Sequence[str], files: Sequence[str]) -> Corpus:
    """First the texts, then the files.

    Raises InvalidOption where `-` comes twice, InvalidSource for unreadable files.
    """
    if files.count(STANDARD_INPUT) > 1:
        raise InvalidOption("--text-file - can be given once", hint="Standard input has ended when it was read.")
    named = [(_excerpt(without_surrogates(text)), text) for text in map(typed, texts)]
    replaced = []
    for file in files:
        name, raw = ("standard input", _standard_input()) if file == STANDARD_INPUT else _file(file)
        text, whole = _decoded(raw)
        named.append((name, text))
        if not whole:
            replaced.append(name)
    documents, notices = mended((Document(t, n, f"text-{i}") for i, (n, t) in enumerate(named)), replaced)
    return Corpus(documents[0].name if len(documents) == 1 else f"{len(documents)} texts", documents, notices)


def typed(text: str) -> str:
    """An argument as it was typed: in a locale of ASCII, Python hands on valid UTF-8 as stray bytes."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        return text


def _excerpt(text: str) -> str:
    """A text that has no name is called by how it begins: “the film was not good but…”."""
    words = " ".join(text.split())
    return f"“{words}”" if len(words) <= MAX_EXCERPT_LENGTH else f"“{words[:MAX_EXCERPT_LENGTH].rstrip()}…”"


def _file(name: str) -> tuple[str, bytes]:
    path = user_path(name, InvalidSource)
    if is_folder(path):
        raise InvalidSource(f"{name} is a folder, not a text file", hint=f"For the texts in it use --dataset {name}.")
    return without_surrogates(Path(name).name), content(path)


def _standard_input() -> bytes:
    if sys.stdin is None:  # closed by the caller, as in `attnviz … <&-`
        raise InvalidSource("standard input is closed", hint="Pipe a text into it, or name a file.")
    try:
        return bounded(sys.stdin.buffer.read(MAX_TEXT + 1), "standard input")
    except OSError as error:  # a folder, as in `attnviz … < .`
        raise InvalidSource(f"standard input cannot be read: {error.strerror}") from error


def _decoded(raw: bytes) -> tuple[str, bool]:
    """The text, and whether every byte of it was UTF-8."""
    raw = raw.removeprefix(BOM)
    try:
        return raw.decode("utf-8"), True
    except UnicodeDecodeError:
        return raw.decode("utf-8", errors="replace"), False
