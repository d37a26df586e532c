"""The house, checked: both tables of the architecture, read from the source with `ast`. Imports nothing it checks.

`breaches(package)` walks one package folder and says what breaks which rule. The rules, by the name that a breach
carries:

    unlisted   a room or a library that no table below holds
    name       a module called utils, helpers, common or misc
    layer      a room imports a higher one, or a sibling that it must not know
    fence      a library outside the rooms that may name it
    banned     a library, or a part of one, that nobody may name
    relative   a relative import
    plugin     a registration line that is not written out, or points into another room
    terminal   printing, the standard streams or leaving the process, outside cli
    file       writing, moving or removing files, outside store
    cycle      modules that import each other when they are first imported
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

LAYERS = (  # lowest first; a room imports earlier lines and itself
    {"errors", "shapes"},
    {"records", "registry", "selection", "hub", "inputs", "cache"},
    {"options"},  # which names the tables of later rooms, as the registry does
    {"specs"},
    {"report", "store", "outcomes", "worked"},
    {"comparison", "differences", "jobs", "manifest"},  # made of what stands above
    {"text", "models", "measures", "configs"},
    {"views"},
    {"renderers"},
    {"workflows"},
    {"cli"},
    {"__main__", "__init__"},
)
RANKS = {room: rank for rank, layer in enumerate(LAYERS) for room in layer}
KNOWN_TO = {"renderers": {"report", "errors", "shapes", "registry", "specs"}}  # narrower than the layers

FIGURES = ("renderers.figure",)
FENCES = {  # library: the modules, without the package's name, that may import it
    "torch": ("models",),
    "transformers": ("models",),
    "tokenizers": ("models",),
    "safetensors": ("models", "store"),
    "datasets": ("text",),
    "pyarrow": ("text",),
    "huggingface_hub": ("hub", "text", "models"),
    "matplotlib": FIGURES,
    "mpl_toolkits": FIGURES,
    "seaborn": FIGURES,
    "pandas": FIGURES,
    "PIL": FIGURES,
    "fontTools": FIGURES,
    "yaml": ("configs",),
    "pydantic": ("configs",),
    "rich": ("renderers.terminal*", "cli"),
    "typer": ("cli",),
}
EVERYWHERE = {"numpy", "jaxtyping"}
BANNED = ("click", "matplotlib.pyplot", "pylab", "matplotlib.pylab")
BAD_NAMES = {"util", "utils", "helper", "helpers", "common", "misc"}

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


class Import(NamedTuple):
    """One thing imported by its absolute name; `at_once` when importing the module is enough to run the line."""

    node: ast.AST
    target: str
    at_once: bool


def breaches(package: Path) -> list[Breach]:
    """Everything in the package folder that breaks a rule, in the order of files and lines."""
    modules = {module.name: module for module in read(package)}
    found: list[Breach] = []
    for module in modules.values():
        found += placing(module)
        found += importing(module, package.name, modules)
        found += doing(module, package.name)
        found += registering(module, package.name)
    found += cycles(package.name, modules)
    return list(dict.fromkeys(found))


def read(package: Path) -> Iterator[Module]:
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if parts[-1] == "__init__" and len(parts) > 1:
            parts = parts[:-1]
        shown = path.relative_to(package.parent).as_posix()
        yield Module(".".join(parts), path, shown, ast.parse(path.read_text(encoding="utf-8"), filename=str(path)))


def placing(module: Module) -> Iterator[Breach]:
    if module.room not in RANKS:
        yield module.breach(module.tree, "unlisted", f"no layer holds {module.room}")
    for part in module.name.split("."):
        if part in BAD_NAMES:
            yield module.breach(module.tree, "name", f"{part} says nothing about what is inside")


def importing(module: Module, package: str, modules: dict[str, Module]) -> Iterator[Breach]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield module.breach(node, "relative", "." * node.level + (node.module or ""))
    for node, target, _ in imports(module):
        top = target.partition(".")[0]
        if top == package:
            yield from knowing(module, node, target, package, modules)
            continue
        if any(is_within(target, banned) for banned in BANNED):
            yield module.breach(node, "banned", target)
        elif top in FENCES:
            if not any(is_listed(module.name, pattern) for pattern in FENCES[top]):
                yield module.breach(node, "fence", f"{top} is only for {', '.join(FENCES[top])}")
        elif top not in sys.stdlib_module_names | EVERYWHERE:
            yield module.breach(node, "unlisted", f"no fence holds the library {top}")


def knowing(module: Module, node: ast.AST, target: str, package: str, modules: dict[str, Module]) -> Iterator[Breach]:
    """The layers. The version is a constant that is there before any other module, so everybody may read it."""
    other = resolve(target, package, modules).partition(".")[0]
    if module.room == other or target == f"{package}.__version__" or module.room not in RANKS:
        return
    too_high = other in RANKS and RANKS[other] >= RANKS[module.room]
    if too_high or other not in KNOWN_TO.get(module.room, {other}):
        yield module.breach(node, "layer", f"{module.room} may not know {other}")


def doing(module: Module, package: str) -> Iterator[Breach]:
    """What only cli may do to the terminal (anybody may ask whether it is one), and only store to files."""
    names = aliases(module.tree)
    nodes = list(ast.walk(module.tree))
    asked = [node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr == "isatty"]  # no harm done
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and module.room not in {"cli", "__main__"}:
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


def cycles(package: str, modules: dict[str, Module]) -> Iterator[Breach]:
    """One cycle of the imports that run when a module is first imported, if there is any."""
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for module in modules.values():
        for _, target, at_once in imports(module):
            if at_once and is_within(target, package):
                imported = resolve(target, package, modules)
                outer = {name for name in modules if is_within(imported, name) and not is_within(module.name, name)}
                graph[module.name] |= {imported, *outer} & modules.keys() - {module.name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        around = error.args[1]
        first = modules[min(around)]
        yield first.breach(first.tree, "cycle", " - ".join(sorted(set(around))))


def imports(module: Module) -> Iterator[Import]:
    """Every import of a module, lazy ones too; not those for type checkers only."""
    names = aliases(module.tree)

    def walk(node: ast.AST, at_once: bool) -> Iterator[Import]:
        match node:
            case ast.Import():
                yield from (Import(node, alias.name, at_once) for alias in node.names)
            case ast.ImportFrom(module=str(source), level=0):
                yield from (Import(node, f"{source}.{alias.name}", at_once) for alias in node.names)
            case ast.Call(args=[ast.Constant(value=str(target)), *_]) if dotted(node.func, names) in IMPORTING:
                yield Import(node, target, at_once)
        inner = at_once and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for_checkers = isinstance(node, ast.If) and dotted(node.test, names) == "typing.TYPE_CHECKING"
        for child in node.orelse if for_checkers and isinstance(node, ast.If) else ast.iter_child_nodes(node):
            yield from walk(child, inner)

    return walk(module.tree, True)


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


def resolve(target: str, package: str, modules: dict[str, Module]) -> str:
    """The module that an absolute name inside the package belongs to."""
    name = target.removeprefix(package).removeprefix(".")
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or "__init__"


def is_within(name: str, outer: str) -> bool:
    return name == outer or name.startswith(f"{outer}.")


def is_listed(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")
