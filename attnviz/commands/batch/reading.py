"""A YAML or JSON file as plain data, with the place of everything in it. The only module that knows YAML.

Built from PyYAML's nodes, not from its values: those take a name twice, read `no` as False and 1:30 as 90, and
expand aliases. A scalar without quotes is what YAML 1.2's core schema says (null, true, 12, 1.5e3), less the numbers
that are read differently elsewhere (010, 0x1F, 1_000) or have more than 18 digits: these and everything else are text.

A `SourceFile` is what a file says and where, and collects what is wrong with it.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import yaml

from attnviz.bounded import open_input
from attnviz.display import LONE_SURROGATE, shorten_name
from attnviz.options import shorten

PLAIN_NAME = re.compile(r"\w[\w-]{0,39}", re.ASCII)

Steps = tuple[str | int, ...]  # the way to a value: ("jobs", 2, "heatmap", "heads")
Place = tuple[int, ...]  # line and column, counted from 1; () is the whole file
Text = str | Callable[[], str]  # a function where the sentence takes a search: of 100,000 problems 20 are told


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: "figures.yaml:12:5: jobs[2].heatmap.heads: write a whole number, not 'many'"."""

    file: str
    place: Place
    steps: Steps
    text: Text

    def __str__(self) -> str:
        where = ":".join(map(str, (self.file, *self.place)))
        plain = (isinstance(step, str) and PLAIN_NAME.fullmatch(step) for step in self.steps)
        written = (f".{step}" if name else f"[{shorten(step)}]" for name, step in zip(plain, self.steps, strict=True))
        path = f"{''.join(written).removeprefix('.')}: " if self.steps else ""
        return f"{where}: {path}{self.text if isinstance(self.text, str) else self.text()}"


@dataclass
class SourceFile:
    """What a file says. `data` holds dict, list, str, int, float, bool and None only, None where it cannot be read."""

    file: str
    sha256: str = ""
    data: Any = None
    values: dict[Steps, Place] = field(default_factory=lambda: {(): (1, 1)})
    keys: dict[Steps, Place] = field(default_factory=dict)
    problems: dict[tuple[Steps, Place], Problem] = field(default_factory=dict)

    def report(self, steps: Steps, text: Text) -> None:
        """Keep a problem where the value is written, or what is around it."""
        around = steps
        while around not in self.values:
            around = around[:-1]
        self.report_at(self.values[around], steps, text)

    def report_name(self, steps: Steps, text: Text) -> None:
        """Keep a problem where the value's name is written."""
        self.report_at(self.keys.get(steps, ()), steps, text)

    def report_at(self, place: Place, steps: Steps, text: Text) -> None:
        """Keep a problem, unless there is one of the same value: the second would only follow from the first."""
        self.problems.setdefault((steps, place), Problem(self.file, place, steps, text))

    def read_value(self, node: Any, steps: Steps) -> Any:
        """Return a node of YAML as data, and note where it stands. What is refused is told, and None there."""
        self.values[steps] = _place(node.start_mark)
        if isinstance(node, yaml.ScalarNode):
            return self._read_scalar(node, steps)
        is_list = isinstance(node, yaml.SequenceNode)
        if node.tag != CORE + ("seq" if is_list else "map"):
            return self._refuse(node, steps)
        if is_list:
            return [self.read_value(item, (*steps, number)) for number, item in enumerate(node.value)]
        members: dict[str, Any] = {}
        for key, value in node.value:
            name = self._read_name(key, steps)
            if name is None:
                continue
            if name in members:
                first = self.keys[*steps, name][0]
                self._refuse(key, (*steps, name), f"is written twice, first on line {first}")
            else:
                self.keys[*steps, name] = _place(key.start_mark)
                members[name] = self.read_value(value, (*steps, name))
        return members

    def _read_name(self, key: Any, steps: Steps) -> Any:
        """Read a member's name, a text. None where it cannot be one, and then that is told."""
        if not isinstance(key, yaml.ScalarNode):
            return self._refuse(key, steps, "a list or a mapping cannot be a name")
        name = self._read_scalar(key, steps)
        if isinstance(name, str):
            return name
        return self._refuse(key, steps, f"{shorten(name)} cannot be a name; quotes make it one")

    def _read_scalar(self, node: Any, steps: Steps) -> Any:
        kind = node.tag.removeprefix(CORE)
        if kind not in SCALARS or not re.fullmatch(SCALARS[kind][0], node.value):
            return self._refuse(node, steps)
        if "\0" in node.value:
            return self._refuse(node, steps, "holds a NUL character, which no setting can")
        try:  # JSON writes 😀 as two surrogates
            return SCALARS[kind][1](node.value.encode("utf-16-le", "surrogatepass").decode("utf-16-le"))
        except UnicodeDecodeError:
            return self._refuse(node, steps, "holds half a character (\\ud800 to \\udfff alone)")

    def _refuse(self, node: Any, steps: Steps, said: str = "") -> Any:
        """Tell why a node is not taken, and give None in its place. Without a reason it is its tag."""
        tag = shorten_name(node.tag.replace(CORE, "!!", 1))
        of_tag = {
            "*": f"the alias {tag} is not followed; write out what it means",
            "&": f"the anchor {tag} is not taken; aliases are not followed",
        }.get(tag[:1], f"the tag {tag} is not taken; leave it out")
        self.report_at(_place(node.start_mark), steps, said or of_tag)
        return None


MAX_BYTES = 1024 * 1024  # bytes
MAX_DEPTH = 20  # levels; a config needs five

CORE = "tag:yaml.org,2002:"
NUMBER = r"(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
SCALARS: dict[str, tuple[str, Callable[[str], Any]]] = {  # how each kind is written, and what it means
    "null": (r"~|null|Null|NULL|", lambda _: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true"),
    "int": (r"[-+]?(?:0|[1-9][0-9]{0,17})", int),
    # An integer of too many digits is no float.
    "float": (
        rf"(?![-+]?[0-9]+\Z)[-+]?{NUMBER}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        lambda text: float(text if text[-1] in ".0123456789" else text.replace(".", "")),
    ),
    "str": (r"(?s:.*)", str),
}


def read(path: Path) -> SourceFile:
    """Read the file at `path`. What is wrong with it is in its problems, nothing is raised."""
    source = SourceFile(str(path))
    try:
        with open_input(path) as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        source.report_at((), (), f"cannot be read: {error.strerror}")
        return source
    source.sha256 = hashlib.sha256(content).hexdigest()
    text = content.decode("utf-8-sig", "surrogateescape")
    if len(content) > MAX_BYTES:
        source.report_at((), (), "is larger than 1 MiB; split it into several configs")
        return source
    try:
        node = yaml.compose(text, Loader=_Loader)
        if node is None:
            source.report_at((), (), "is empty; a config has jobs")
        else:
            source.data = source.read_value(node, ())
    except yaml.reader.ReaderError as error:
        lines = re.split(r"\r\n|\r|\n", text[: error.position])
        said = f"holds the character {chr(error.character)!r}; write it as an escape in double quotes"
        said = "is not UTF-8; save it in that encoding" if LONE_SURROGATE.match(chr(error.character)) else said
        source.report_at((len(lines), len(lines[-1]) + 1), (), said)
    except yaml.MarkedYAMLError as error:
        said = ", ".join(filter(None, (error.context, error.problem)))
        said = "a tab cannot indent; use spaces" if "'\\t'" in said else said
        source.report_at(_place(error.problem_mark), (), f"is not read as YAML: {said}")
    return source


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
    """Composes nodes by the core schema. An alias becomes a node of its own, an anchor stands in its node's tag.

    So nothing is in the tree twice, and where it goes too deep composing stops before Python does.
    """

    yaml_implicit_resolvers: ClassVar[dict[str | None, list[Any]]] = {
        None: [(CORE + kind, re.compile(rf"(?:{pattern})\Z")) for kind, (pattern, _) in SCALARS.items()]
    }
    depth = 0

    def scan_to_next_token(self) -> None:
        """Read over tabs too where they do not indent, as libyaml does; JSON may be indented by them."""
        super().scan_to_next_token()
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        anchor, event.anchor = event.anchor, None
        if isinstance(event, yaml.AliasEvent):
            self.get_event()
            return yaml.ScalarNode(f"*{anchor}", "", event.start_mark, event.end_mark)
        if self.depth > MAX_DEPTH:
            raise yaml.composer.ComposerError(None, None, f"nested more than {MAX_DEPTH} deep", event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        if anchor is not None:
            node.tag = f"&{anchor}"
        return node


def _place(mark: Any) -> Place:
    return mark.line + 1, mark.column + 1
