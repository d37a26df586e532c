"""From `--text`, `--text-file`, `--dataset` and `--split` to named texts. Knows no file format and no library."""

from __future__ import annotations

from dataclasses import replace

from attnviz.cache import cached
from attnviz.errors import InvalidOption
from attnviz.specs.text import TextOptions
from attnviz.text.document import Corpus
from attnviz.text.given import given_texts


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
