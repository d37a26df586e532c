"""The house keeps its rules, and each rule is able to fail."""

import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

import pytest

import attnviz
from attnviz.commands import COMMANDS
from attnviz.registry import Plugin, load
from tests.process import ROOT, bare_environment

HEAVY = {"torch", "transformers", "tokenizers", "safetensors", "datasets", "pyarrow", "huggingface_hub", "matplotlib"}
HEAVY |= {"seaborn", "pandas", "PIL", "yaml", "pydantic", "rich", "numpy", "jaxtyping", "regex", "typer"}
LIGHT = ["attnviz", "attnviz.errors", "attnviz.registry", *(each.spec.partition(":")[0] for each in COMMANDS)]
LIGHT += ["attnviz.text", "attnviz.models", "attnviz.measures", "attnviz.renderers"]

# Where alone it may stand, what it looks like, and lines that have to be found. What may import what, and which library
# is known where, are contracts of import-linter in pyproject.toml.
RULES = {
    "the terminal": (
        "cli/|__main__|monitor/watch",
        r"(?<![\w.\"'-])print\(|\(print[,)]|\bsys\.(stdout|stderr|exit)\b(?!\.isatty)|from sys import|\bSystemExit\b",
        ["print(1)", "train(print)", "f(sys.stdout)", "from sys import stderr", "raise SystemExit(2)", "sys.exit(1)"],
    ),
    "files": (
        "store/",
        r"\bos\.(replace|rename|renames|remove|unlink|rmdir|removedirs|mkdir|makedirs|link|symlink|truncate)\b"
        r"|from (os|shutil) import|\bshutil\.(?!get_terminal_size)|\bsave_file\b"
        r"|\.(write_text|write_bytes|touch|mkdir|rmdir|unlink|symlink_to|hardlink_to|tofile)\("
        r"|\bopen\([^)]*[\"'][rbt]*[wax+][rbt+]*[\"']|\bopen\([^\"')]*, \w+\)|\bopen\([^)]*mode=",
        ["os.replace('a', 'b')", "from os import replace as mv", "shutil.rmtree('a')", "p.write_text(a)", "open(a, b)",
         "path.open('w')", "gzip.open(a, 'wt')", "open('a', mode='a')", "open(a, 'wb')", "save_file({}, 'a')"],
    ),
    "imports by a computed name": (
        "registry",
        r"\bimport_module\((?![\"'])|import_module as|__import__\(",
        ["import_module(name)", "from importlib import import_module as load", "__import__(name)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_only_one_room_does_it(name: str) -> None:
    places, pattern, broken = RULES[name]
    assert [line for line in broken if not re.search(pattern, line)] == []
    package = ROOT / "attnviz"
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in sorted(package.rglob("*.py"))
        if not re.match(places, file.relative_to(package).as_posix())
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert found == []


def test_listing_names_imports_nothing_heavy(tmp_path: Path) -> None:
    assert heavy_imports(", ".join(LIGHT), tmp_path) == set()
    assert heavy_imports("attnviz.shapes", tmp_path) == {"jaxtyping", "numpy"}


def test_what_worker_processes_are_forked_from_draws_nothing(tmp_path: Path) -> None:
    preloads = {module for command in COMMANDS for module in command.preloads}
    found = heavy_imports(", ".join(preloads), tmp_path)
    assert "torch" in found
    assert "matplotlib" not in found


def test_what_is_refused_is_refused_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    """The checks of `render` are those of drawing, and matplotlib comes with them; seaborn not even with drawing."""
    inputs = {each.name: each.inputs.partition(":")[0] for each in COMMANDS if each.inputs}
    of_drawing = heavy_imports(f"{inputs.pop('render')}, attnviz.renderers.figure.files", tmp_path)
    assert of_drawing - {"numpy", "jaxtyping"} == {"matplotlib", "PIL"}
    assert heavy_imports(", ".join(inputs.values()), tmp_path) <= {"numpy", "jaxtyping"}
    work = {each.name: each.where.partition(":")[0] for each in COMMANDS}  # which checks where there are no inputs
    checking = ", ".join(where for name, where in work.items() if name not in {*inputs, "render"})
    assert {"torch", "matplotlib"}.isdisjoint(heavy_imports(checking, tmp_path))
    assert "torch" not in heavy_imports(f"{work['attribute']}, {work['heatmap']}", tmp_path)


def heavy_imports(module: str, home: Path) -> set[str]:
    """The libraries that are there once a fresh Python has imported the module."""
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=bare_environment(home))
    return {name.partition(".")[0] for name in done.stdout.decode().split()} & HEAVY


def tables() -> dict[str, tuple[Plugin, ...]]:
    """Every table of names that a user can type, found where tables live: in a room itself, and in the command line."""
    homes = [f"attnviz.{module.name}" for module in iter_modules(attnviz.__path__) if module.ispkg]
    if find_spec("attnviz.cli.app"):
        homes.append("attnviz.cli.app")
    return {
        f"{home}.{name}": value
        for home in homes
        for name, value in vars(import_module(home)).items()
        if isinstance(value, tuple) and value and all(isinstance(line, Plugin) for line in value)
    }


def test_every_table_is_found() -> None:
    names = {name.rpartition(".")[2] for name in tables()}
    assert names >= {"MODELS", "SOURCES", "MEASURES", "RENDERERS", "COMMANDS"}


def test_every_plugin_loads(subtests: pytest.Subtests) -> None:
    for table, plugins in tables().items():
        assert len({plugin.name for plugin in plugins}) == len(plugins), f"a name stands twice in {table}"
        for plugin in plugins:
            with subtests.test(table=table, name=plugin.name):
                assert plugin.help
                room = table.rpartition(".")[0].removesuffix(".app").replace(".cli", ".commands")
                assert re.match(rf"{room}(\.\w+)*:\w+$", plugin.where), "code of another room"
                assert callable(load(plugin))
