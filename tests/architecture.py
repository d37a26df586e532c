"""What only this house asks of its code, checked with `ast`: nothing is imported.

What may import what, and which library is known where, are contracts of import-linter in pyproject.toml.
`breaches(package)` walks one package folder and says what breaks which rule. The rules, by the name that a breach
carries:

    plugin     a registration line that is not written out, or points into another room
    terminal   printing, the standard streams or leaving the process, outside cli
    file       writing, moving or removing files, outside store
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

TERMINAL = {"builtins.print", "builtins.SystemExit", "sys.exit", "sys.stdout", "sys.stderr"}
WRITING_FUNCTIONS = {
    *(f"os.{name}" for name in ("replace", "rename", "renames", "remove", "unlink", "rmdir", "removedirs", "mkdir")),
    *(f"os.{name}" for name in ("makedirs", "link", "symlink", "truncate")),
    *(f"shutil.{name}" for name in ("copy", "copy2", "copyfile", "copytree", "move", "rmtree", "make_archive")),
    *(f"safetensors.{library}.save_file" for library in ("numpy", "torch")),
}
WRITING_METHODS = {
    "write_text",
    "write_bytes",
    "touch",
    "mkdir",
    "rmdir",
    "unlink",
    "symlink_to",
    "hardlink_to",
    "tofile",
}
IMPORTING = {"importlib.import_module", "builtins.__import__"}
OPEN_MODE = re.compile(r"[rwaxbt+]{1,4}")


class Breach(NamedTuple):
    """One line that breaks one rule."""

    where: str  # "attnviz/views/heads.py:3"
    rule: str
    what: str


@dataclass(frozen=True)
class Module:
    """One source file. `name` is dotted and without the package's own name, so the package itself is "__init__"."""

    name: str
    path: Path
    shown_path: str
    tree: ast.Module

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]

    def breach(self, node: ast.AST, rule: str, what: str) -> Breach:
        return Breach(f"{self.shown_path}:{getattr(node, 'lineno', 1)}", rule, what)


def breaches(package: Path) -> list[Breach]:
    """Everything in the package folder that breaks a rule, in the order of files and lines."""
    found: list[Breach] = []
    for module in read(package):
        found += doing(module, package.name)
        found += registering(module, package.name)
    return list(dict.fromkeys(found))


def read(package: Path) -> Iterator[Module]:
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if parts[-1] == "__init__" and len(parts) > 1:
            parts = parts[:-1]
        shown = path.relative_to(package.parent).as_posix()
        yield Module(".".join(parts), path, shown, ast.parse(path.read_text(encoding="utf-8"), filename=str(path)))


def doing(module: Module, package: str) -> Iterator[Breach]:
    """What only cli may do to the terminal (anybody may ask whether it is one), and only store to files."""
    names = aliases(module.tree)
    nodes = list(ast.walk(module.tree))
    asked = [node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr == "isatty"]  # no harm done
    for node in nodes:
        read = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
        if read and module.room not in {"cli", "__main__"}:
            name = dotted(node, names)
            if name in TERMINAL and node not in asked:
                yield module.breach(node, "terminal", name.removeprefix("builtins."))
        if isinstance(node, ast.Call) and module.room != "store":
            name = dotted(node.func, names)
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if is_within(name, package):
                continue  # our own function, whatever it is called
            if name in WRITING_FUNCTIONS or method in WRITING_METHODS or opens_to_write(node, name, method):
                yield module.breach(node, "file", name.removeprefix("builtins.") or method)


def opens_to_write(call: ast.Call, name: str, method: str) -> bool:
    """Any form of open whose mode is not plainly one for reading; `os.open` has flags, which cli needs for pipes."""
    if name in {"os.open", "os.fdopen"}:
        return False
    if name in {"builtins.open", "io.open", "codecs.open"}:
        given = call.args[1:2]
    elif method == "open":  # path.open(mode) and gzip.open(path, mode) alike
        given = [arg for arg in call.args[:2] if isinstance(arg, ast.Constant) and OPEN_MODE.fullmatch(str(arg.value))]
    else:
        return False
    given = given + [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    return any(not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+") for mode in given)


def registering(module: Module, package: str) -> Iterator[Breach]:
    """A registration line is written out and names code of its own room; only the registry imports by computed name."""
    names = aliases(module.tree)
    plugin = f"{package}.registry.Plugin"
    classes = [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]
    lines = {plugin, *(node.name for node in classes if plugin in [dotted(base, names) for base in node.bases])}
    for call in (node for node in ast.walk(module.tree) if isinstance(node, ast.Call)):
        name = dotted(call.func, names)
        if name in lines:
            where = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "where")]
            if not where or not isinstance(where[0], ast.Constant):
                yield module.breach(call, "plugin", "where the code is has to be written out")
                continue
            place = str(where[0].value)
            if not re.fullmatch(rf"{package}\.{module.room}(\.\w+)*:\w+", place):
                yield module.breach(call, "plugin", f"{place} is not in {module.room}")
        elif name in IMPORTING and module.name != "registry" and not isinstance(call.args[0], ast.Constant):
            yield module.breach(call, "plugin", "only the registry imports by a computed name")


def aliases(tree: ast.Module) -> dict[str, str]:
    """Names that a module's imports bind, anywhere in it, with what they stand for."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def dotted(node: ast.AST, names: dict[str, str]) -> str:
    """The absolute name of an expression such as `os.replace`, "" when it has none."""
    match node:
        case ast.Name(id=name):
            return names.get(name, f"builtins.{name}" if hasattr(builtins, name) else name)
        case ast.Attribute(value=value, attr=attr):
            owner = dotted(value, names)
            return f"{owner}.{attr}" if owner else ""
    return ""


def is_within(name: str, outer: str) -> bool:
    return name == outer or name.startswith(f"{outer}.")
