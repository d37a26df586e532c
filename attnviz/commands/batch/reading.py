"""A YAML or JSON file as plain data, with the place of everything in it. The only module that knows YAML.

Built from PyYAML's events, not from its values: those take a name twice, read `no` as False and 1:30 as 90, and
expand aliases. A scalar without quotes is what YAML 1.2's core schema says (null, true, 12, 1.5e3), less the numbers
that are read differently elsewhere (010, 0x1F, 1_000) or have more than 18 digits: these and everything else are text.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import yaml
from yaml import events as at

from attnviz.bounded import open_input
from attnviz.commands.batch.source_file import Position, Problem, SourceFile, Steps
from attnviz.display import LONE_SURROGATE
from attnviz.option_values import shorten, shorten_name

MAX_BYTES = 1024 * 1024  # bytes
MAX_DEPTH = 20  # levels; a config needs five

CORE = "tag:yaml.org,2002:"
KINDS: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool, "null": type(None)}
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read(path: Path) -> SourceFile:
    """The file at `path`. What is wrong with it is in the document's problems, nothing is raised."""
    document = SourceFile(str(path))
    try:
        with open_input(path) as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        document.tell_of_file(f"cannot be read: {error.strerror}")
        return document
    if len(content) > MAX_BYTES:
        document.tell_of_file("is larger than 1 MiB; split it into several configs")
        return document
    document.sha256 = hashlib.sha256(content).hexdigest()
    text = _decode(content, document)
    if text is not None:
        _Reading(text.replace("\t", " ") if _is_json(text) else text, document).read_document()
    return document


def _is_json(text: str) -> bool:
    """JSON may be indented by tabs, which YAML refuses; within its strings there are none."""
    if "\t" not in text or not text.lstrip().startswith("{"):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _decode(content: bytes, document: SourceFile) -> str | None:
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", errors="replace")
        document.values[()] = _place_after(before)
        document.report((), "is not UTF-8; save it in that encoding")
        return None
    if bad := FORBIDDEN.search(text):
        document.values[()] = _place_after(text[: bad.start()])
        document.report((), f"holds the character {bad[0]!r}; write it as an escape in double quotes")
        return None
    return text


def _place_after(before: str) -> Position:
    lines = re.split(r"\r\n|\r|\n", before)
    return Position(len(lines), len(lines[-1]) + 1)


class _Stop(Exception):
    """The rest of the file is not worth reading."""


class _Reading:
    """One file's events on their way to becoming data. Recursion ends at MAX_DEPTH."""

    def __init__(self, text: str, document: SourceFile) -> None:
        # libyaml refuses "\ud83d\ude00", which is how JSON writes 😀. PyYAML's own reader, which is slow, does not.
        quick = hasattr(yaml, "CSafeLoader") and not ESCAPED_SURROGATE.search(text)
        self.text = text
        self.document = document
        self.events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader if quick else yaml.SafeLoader)

    def read_document(self) -> None:
        try:
            next(self.events)  # the stream begins
            if isinstance(next(self.events), at.StreamEndEvent):
                self.document.tell_of_file("is empty; a config has jobs")
                return
            self.document.data = self.node(next(self.events), ())
            next(self.events)  # the document ends
            if not isinstance(more := next(self.events), at.StreamEndEvent):
                self.report((), more, "a second document begins here; a config is one")
                return
            self.document.complete = True
        except _Stop:
            return
        except yaml.YAMLError as error:
            self.not_yaml(error)

    def node(self, event: Any, steps: Steps) -> Any:
        place = _start(event)
        self.document.values[steps] = place
        if len(steps) > MAX_DEPTH:
            self.too_deep(event, steps)
        if isinstance(event, at.AliasEvent):
            return self.spoil(
                steps, event, f"the alias *{shorten_name(event.anchor)} is not followed; write out what it means"
            )
        if event.anchor is not None:
            self.report(
                steps, event, f"the anchor &{shorten_name(event.anchor)} is not taken; aliases are not followed"
            )
        if isinstance(event, at.ScalarEvent):
            return self.scalar(event, steps)
        kind = "seq" if isinstance(event, at.SequenceStartEvent) else "map"
        if event.tag not in (None, "!", CORE + kind):
            self.spoil(steps, event, f"the tag {_tag(event.tag)} is not taken; leave it out")
        return self.sequence(steps) if kind == "seq" else self.mapping(steps)

    def sequence(self, steps: Steps) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self.events), at.SequenceEndEvent):
            items.append(self.node(event, (*steps, len(items))))
        return items

    def mapping(self, steps: Steps) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not isinstance(event := next(self.events), at.MappingEndEvent):
            key = self.key(event, steps)
            if key is None:
                self.skip(next(self.events), steps)
            elif key in members:
                first = self.document.keys[*steps, key].line
                self.report((*steps, key), event, f"is written twice, first on line {first}")
                self.skip(next(self.events), steps)
            else:
                self.document.keys[*steps, key] = _start(event)
                members[key] = self.node(next(self.events), (*steps, key))
        return members

    def key(self, event: Any, steps: Steps) -> str | None:
        """A member's name. None where it cannot be one, and then that is told."""
        if not isinstance(event, at.ScalarEvent):
            said = "an alias" if isinstance(event, at.AliasEvent) else "a list or a mapping"
            self.report(steps, event, f"{said} cannot be a name")
            self.skip(event, steps)
            return None
        if event.value == "<<" and event.implicit[0]:
            self.report(steps, event, "merge keys (<<) are not followed; write the settings out")
            return None
        n_problems = len(self.document.problems)
        if event.anchor is not None:
            self.report(
                steps, event, f"the anchor &{shorten_name(event.anchor)} is not taken; aliases are not followed"
            )
        key = self.scalar(event, steps)
        if isinstance(key, str) and len(self.document.problems) == n_problems:
            return key
        if len(self.document.problems) == n_problems:
            self.report(steps, event, f"{shorten(key)} cannot be a name; quotes make it one")
        self.document.spoilt.discard(steps)  # it is the name that is spoilt, not the mapping
        return None

    def scalar(self, event: Any, steps: Steps) -> Any:
        text: str = event.value
        if event.tag in (None, "!", CORE + "str"):
            plain = event.implicit[0] and event.tag is None
            return _resolve_scalar(text) if plain else self.text_of(event, steps)
        kind = KINDS.get(event.tag.removeprefix(CORE)) if event.tag.startswith(CORE) else None
        value = _resolve_scalar(text)
        if kind is None:
            return self.spoil(steps, event, f"the tag {_tag(event.tag)} is not taken; leave it out")
        if type(value) is not kind:  # True is an int as well
            return self.spoil(steps, event, f"{shorten(text)} is not {_tag(event.tag)}")
        return value

    def text_of(self, event: Any, steps: Steps) -> Any:
        """What is in quotes, its escapes undone."""
        text: str = event.value
        if "\0" in text:
            return self.spoil(steps, event, "holds a NUL character, which no setting can")
        if not LONE_SURROGATE.search(text):
            return text
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            return self.spoil(steps, event, "holds half a character (\\ud800 to \\udfff alone)")

    def too_deep(self, event: Any, steps: Steps) -> NoReturn:
        """Stops at once: libyaml takes hours over a million brackets."""
        self.report(steps[:3], event, f"is nested more than {MAX_DEPTH} deep")
        raise _Stop

    def skip(self, event: Any, steps: Steps) -> None:
        """Read over a value that belongs nowhere."""
        depth = 0
        while True:
            depth += isinstance(event, at.CollectionStartEvent) - isinstance(event, at.CollectionEndEvent)
            if depth == 0:
                return
            if depth > MAX_DEPTH:
                self.too_deep(event, steps)
            event = next(self.events)

    def spoil(self, steps: Steps, event: Any, text: str) -> None:
        self.report(steps, event, text)
        self.document.spoilt.add(steps)

    def report(self, steps: Steps, event: Any, text: str) -> None:
        self.document.problems.append(Problem(self.document.file, _start(event), steps, text))

    def not_yaml(self, error: yaml.YAMLError) -> None:
        mark = getattr(error, "problem_mark", None)
        said = getattr(error, "problem", None) or "it cannot be read"
        if mark is not None:
            self.document.values[()] = Position(mark.line + 1, mark.column + 1)
            if self.text[mark.index : mark.index + 1] == "\t":
                said = "a tab cannot indent; use spaces"
        self.document.problems.append(Problem(self.document.file, self.document.place(()), (), f"is not YAML: {said}"))


def _start(event: Any) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)


def _resolve_scalar(text: str) -> str | int | float | bool | None:
    """A scalar without quotes."""
    if text in NULLS:
        return None
    if text in BOOLS:
        return BOOLS[text]
    if INTEGER.fullmatch(text):
        return int(text)
    if NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    if FLOAT.fullmatch(text) and not text.lstrip("+-").isdecimal():  # else an integer of too many digits
        return float(text)
    return text


def _tag(tag: str) -> str:
    return shorten_name(tag.replace(CORE, "!!", 1) if tag.startswith(CORE) else tag)
