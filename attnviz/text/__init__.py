"""Where texts come from: `--text`, `--text-file` and standard input, or `--dataset` and `--split`.

Each text has a name and a position. Knows files and data sets; must not know tokens, models or pictures.

Importing this room imports neither datasets nor pyarrow, which take a second: each source does so when it is opened.
"""

import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from attnviz.bounded import UTF_8, Budget, describe_os_error, exists, expand_path, find_mark, is_folder
from attnviz.display import REPLACEMENT, list_first, quote_beginning, replace_surrogates
from attnviz.document import Document, parse_chat
from attnviz.errors import InvalidOption, InvalidSource, raising, refuse_several
from attnviz.registry import Plugin
from attnviz.selection import select_numbers
from attnviz.specs import TextOptions
from attnviz.store.cache import remember
from attnviz.text.files import WORDLESS, check_encoding, check_kind, check_size, decode, read_content
from attnviz.text.markup import WORDY_ENDINGS, find_words
from attnviz.text.source import MAX_TEXT

__all__ = ["ENDINGS", "NAMES", "SOURCES", "Corpus", "Document", "load_corpus"]

# Each is called with a Wanted and returns a Source.
NAMES: tuple[Plugin, ...] = (
    Plugin("sample", "attnviz.text.local:open_sample", "sixty short reviews that come with attnviz"),
    Plugin("imdb", "attnviz.text.hub:open_imdb", "the Large Movie Review Dataset, stanfordnlp/imdb on the hub"),
)

# Each is called with a path, also within an archive, and a Wanted; it returns a DataTable, which yields rows as needed.
ENDINGS: tuple[Plugin, ...] = (
    Plugin(".parquet", "attnviz.text.arrow:open_parquet", "a Parquet table"),
    Plugin(".jsonl", "attnviz.text.tables:open_table", "one JSON object a line"),
    Plugin(".ndjson", "attnviz.text.tables:open_table", "one JSON object a line"),
    Plugin(".json", "attnviz.text.tables:open_table", "an array of JSON objects, or one a line"),
    Plugin(".csv", "attnviz.text.tables:open_table", "a table with commas or semicolons"),
    Plugin(".tsv", "attnviz.text.tables:open_table", "a table with tabs"),
    Plugin(".txt", "attnviz.text.tables:open_table", "one text a line, perhaps with a label"),
)

SOURCES = (*NAMES, *ENDINGS)
MAX_NAMED = 3  # in a notice; the rest is counted
ARCHIVE_ENDINGS = (".gz", ".zip", ".tar", ".tgz", ".bz2", ".xz")
STANDARD_INPUT = "-"
FROM_THE_END = re.compile(r"(?:^|[,-])\s*-")  # a number in --index
NUMBER = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, eq=False)
class Corpus:
    """The texts of one split or of one command line, in order.

    A document's name holds its place in the whole split: the first text of `train[10:20]` is called `train[10]`.
    """

    name: str
    documents: Sequence[Document]
    notices: tuple[str, ...] = ()  # what the user has to know, such as replaced bytes

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Return the texts as one object per corpus, so that a model made from them can be cached by it."""
        return tuple(document.text for document in self.documents)

    def choose(self, index: Sequence[str], *, every: bool) -> list[Document]:
        """Return the texts that `--index` names, else all if `every`, else the first. Raises InvalidSelection."""
        places = select_numbers(index, len(self.documents), "text") if index or every else (0,)
        return [self.documents[place] for place in places]


def mend_surrogates(documents: Iterable[Document], already: Sequence[str] = ()) -> tuple[list[Document], list[str]]:
    """Replace lone surrogates (an argument's stray bytes, JSON's "\\ud800"); return the documents and one notice.

    `already` names texts whose bytes were replaced when they were read.
    """
    clean: list[Document] = []
    names = list(already)
    for document in documents:
        text = replace_surrogates(document.text)
        if text != document.text:
            names.append(document.name)
            document = replace(document, text=type(document.text)(text))
        clean.append(document)
    listed = list_first(list(dict.fromkeys(names)), MAX_NAMED)
    notice = f"{listed}: invalid Unicode was replaced by {REPLACEMENT} (U+FFFD)"
    return clean, [notice] if names else []


def resolve_argument(spec: TextOptions) -> TextOptions:
    """Return the options with the argument among them: as the file or folder of that name, else as a text.

    Raises InvalidOption for a file of many texts beside another data set, InvalidSource for what is written as a path
    is, or is one word that is called as files are, and names none.
    """
    given = spec.inline_text
    if given is None or given in (*spec.text[:1], *spec.text_file[:1], spec.dataset):  # it was resolved before
        return spec
    path = Path(given)
    if given != STANDARD_INPUT and not (given and exists(path)):
        is_word = len(given.split()) == 1
        is_file_name = path.suffix.lower() in WORDY_ENDINGS or WORDLESS.fullmatch(given) or _holds_many_texts(path)
        is_path = is_file_name or (given.isascii() and "/" in given)
        if (is_word and is_path) or given.startswith(("./", "../", "~/", "/")):
            raise InvalidSource(f"no file {given}", hint=f"--text {shlex.quote(given)} takes its name as words.")
        return replace(spec, text=(given, *spec.text))
    if path.suffix.lower() == ".txt" or not (is_folder(path) or _holds_many_texts(path)):
        return replace(spec, text_file=(given, *spec.text_file))
    refuse_several({given: True, f"--dataset {spec.dataset}": spec.dataset})
    return replace(spec, dataset=given)


def _holds_many_texts(path: Path) -> bool:
    return path.suffix.lower() in (*(plugin.name for plugin in ENDINGS), *ARCHIVE_ENDINGS)


def describe_argument(spec: TextOptions) -> tuple[str, ...]:
    """Say that the argument was taken for a file, where it was."""
    given = spec.inline_text
    if given is None or given in (STANDARD_INPUT, *spec.text):
        return ()
    kind = "data set" if given == spec.dataset else "text in the file"
    return (f"reading the {kind} {given}; --text {shlex.quote(given)} takes its name as words",)


def load_corpus(spec: TextOptions, max_memory: float = 4.0, *, only_index: bool = False) -> Corpus:
    """Load the texts of `spec` in order, cached, within `max_memory` GiB. `--index` is applied by the caller.

    With `only_index` no more of a data set is read than the texts up to the last that `--index` names. Raises
    InvalidOption for options that contradict each other, InvalidSource for what cannot be read, TooLarge.
    """
    n_needed = None
    numbers = NUMBER.findall(",".join(spec.index))
    if only_index and numbers and not FROM_THE_END.search(",".join(spec.index)):
        n_needed = 1 + max(map(int, numbers))  # whether these are numbers of texts, the caller says
    key = replace(spec, index=()), max_memory, n_needed
    return remember(key, lambda: _read(spec, Budget(max_memory), n_needed))


def _read(spec: TextOptions, budget: Budget, n_needed: int | None) -> Corpus:
    if spec.text or spec.text_file:
        given = "--text" if spec.text else "--text-file"
        refuse_several({given: True, "--dataset": spec.dataset})
        for what in ("split", "text_column", "label_column"):
            if getattr(spec, what) is not None:
                option = f"--{what.replace('_', '-')}"
                hint = f"Leave out {option} (--index picks among several texts), or use --dataset."
                raise InvalidOption(f"{option} is for data sets, and {given} was given", hint=hint)
        corpus = read_inline_texts(spec, budget)
    else:
        from attnviz.text.dataset import read_dataset  # it makes a Corpus, and so imports this module

        corpus = read_dataset(spec, budget, n_needed)
    return replace(corpus, notices=(*describe_argument(spec), *corpus.notices))


def read_inline_texts(spec: TextOptions, budget: Budget) -> Corpus:
    """Read the texts, then the files, as one corpus.

    Raises InvalidOption where `-` is given twice or the encoding is unknown, InvalidSource for unreadable files.
    """
    encoding = spec.encoding
    check_encoding(encoding)
    if spec.text_file.count(STANDARD_INPUT) > 1:
        raise InvalidOption("--text-file - can be given once", hint="Standard input can be read only once.")
    named = [(quote_beginning(replace_surrogates(text)), text) for text in spec.text]
    replaced, read_as = [], list[str]()
    for file in spec.text_file:
        name, raw = _read_bytes(file)
        check_kind(raw, name, encoding)
        if encoding is None and find_mark(raw) != UTF_8:
            read_as.append(f"{name} was read as {find_mark(raw).upper()}, as its byte order mark says")
        try:
            text = decode(raw, name, encoding)
        except InvalidSource:
            if encoding is not None:
                raise
            text = decode(raw, name, errors="replace")
            replaced.append(name)
        if not spec.keep_markup:
            text, said = find_words(text.replace("\r\n", "\n").removesuffix("\n"), name, budget)
            read_as += [said] if said else []
        named.append((name, text))
    if not spec.keep_markup:
        named = [(name, parse_chat(text, budget) or text) for name, text in named]
    documents, notices = mend_surrogates((Document(t, n, f"text-{i}") for i, (n, t) in enumerate(named)), replaced)
    name = documents[0].name if len(documents) == 1 else f"{len(documents)} texts"
    return Corpus(name, documents, (*read_as, *notices))


def _read_bytes(file: str) -> tuple[str, bytes]:
    """Read a file or standard input; return what it is called, and its bytes. Raises InvalidSource."""
    if file != STANDARD_INPUT:
        path = expand_path(file, InvalidSource)
        if is_folder(path):
            hint = f"For the texts in it use --dataset {file}."
            raise InvalidSource(f"{file} is a folder, not a text file", hint=hint)
        return replace_surrogates(Path(file).name), read_content(path)
    if sys.stdin is None:  # closed by the caller, as in `attnviz … <&-`
        raise InvalidSource("standard input is closed", hint="Pipe a text into it, or name a file.")
    told = (OSError,)  # a folder, as in `attnviz … < .`
    with raising(InvalidSource, "standard input cannot be read:", told=told, say=describe_os_error):
        return "standard input", check_size(sys.stdin.buffer.read(MAX_TEXT + 1), "standard input")
