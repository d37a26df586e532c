"""From `--text`, `--text-file` and standard input, each as it is, or `--dataset` and `--split` to named texts.

Knows no file format and no library.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from attnviz.cache import cached
from attnviz.errors import InvalidOption, InvalidSource
from attnviz.inputs import is_folder, user_path
from attnviz.specs import TextOptions
from attnviz.text import Corpus, Document, mended, without_surrogates

STANDARD_INPUT = "-"
MAX_EXCERPT_LENGTH = 40


def load_corpus(spec: TextOptions) -> Corpus:
    """The texts that `spec` asks for, in order, cached; which of them `--index` picks is for the caller.

    Raises InvalidOption for options that contradict each other, InvalidSource for what cannot be read.
    """
    return cached(replace(spec, index=()), lambda: _read(spec))


def _read(spec: TextOptions) -> Corpus:
    if spec.text or spec.text_file:
        _refuse_beside_texts(spec)
        return given_texts(spec.text, spec.text_file)
    from attnviz.text.dataset import read_dataset

    return read_dataset(spec)


def _refuse_beside_texts(spec: TextOptions) -> None:
    given = "--text" if spec.text else "--text-file"
    if spec.dataset is not None:
        raise InvalidOption(f"{given} and --dataset exclude each other", hint="Leave one of them out.")
    for option, value in (("--split", spec.split), ("--text-column", spec.text_column)):
        if value is not None:
            raise InvalidOption(
                f"{option} is about data sets and there is {given}",
                hint=f"Leave out {option} (--index picks among several texts), or use --dataset.",
            )


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
    from attnviz.text.files import content

    return without_surrogates(Path(name).name), content(path)


def _standard_input() -> bytes:
    if sys.stdin is None:  # closed by the caller, as in `attnviz … <&-`
        raise InvalidSource("standard input is closed", hint="Pipe a text into it, or name a file.")
    from attnviz.text.files import MAX_TEXT, bounded

    try:
        return bounded(sys.stdin.buffer.read(MAX_TEXT + 1), "standard input")
    except OSError as error:  # a folder, as in `attnviz … < .`
        raise InvalidSource(f"standard input cannot be read: {error.strerror}") from error


def _decoded(raw: bytes) -> tuple[str, bool]:
    """The text, and whether every byte of it was UTF-8."""
    raw = raw.removeprefix(codecs.BOM_UTF8)
    try:
        return raw.decode("utf-8"), True
    except UnicodeDecodeError:
        return raw.decode("utf-8", errors="replace"), False
