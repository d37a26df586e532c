"""The house keeps its rules, and each rule is able to fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

import pytest

import attnviz
from attnviz.registry import Plugin, load
from attnviz.running.local_executor import MEASURING
from tests import architecture
from tests.architecture import breaches
from tests.process import ROOT, bare_environment

HEAVY = {"torch", "transformers", "tokenizers", "safetensors", "datasets", "pyarrow", "huggingface_hub", "matplotlib"}
HEAVY |= {"seaborn", "pandas", "PIL", "yaml", "pydantic", "rich", "numpy", "jaxtyping", "regex"}
LIGHT = ["attnviz", "attnviz.python.pytest_plugin", "attnviz.errors", "attnviz.registry", "attnviz.specs"]
LIGHT += ["attnviz.text", "attnviz.models", "attnviz.measures", "attnviz.renderers"]

CLEAN = {
    "__init__.py": "__version__ = '1'\ndef __getattr__(name):\n    from attnviz.store import load\n    return load",
    "__main__.py": "import sys\nfrom attnviz.cli.app import main\nsys.exit(main())",
    "errors.py": "class Bad(Exception): ...",
    "shapes.py": "import numpy as np\nfrom jaxtyping import Float",
    "records.py": "from attnviz.errors import Bad\nfrom attnviz import shapes",
    "registry.py": "from importlib import import_module\nclass Plugin: ...\ndef load(name):\n    import_module(name)",
    "report.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import attnviz.views\n    import click",
    "store.py": "import os\nos.replace('a', 'b')\nopen('a', 'w').close()\nfrom safetensors.numpy import save",
    "text/__init__.py": "from attnviz.registry import Plugin\nT = (Plugin('a', 'attnviz.text.hub:read', 'help'),)",
    "text/hub.py": "import datasets, pyarrow\nfrom attnviz.text import T\nopen('a', encoding='utf-8')\nopen('a', 'rb')",
    "models/__init__.py": "",
    "models/encoder.py": "import torch.nn\nfrom attnviz import __version__, records\n"
    "from attnviz.models import opening",
    "models/opening.py": "def open_model():\n    from attnviz.models.encoder import torch",
    "measures/entropy.py": "import numpy as np\nnp.log(1).replace('a', 'b')",
    "views/__init__.py": "",
    "views/heads.py": "import sys\nfrom attnviz.records import Bad\nsys.stderr.isatty()",
    "renderers/__init__.py": "",
    "renderers/figure/grid.py": "from matplotlib.figure import Figure\nimport seaborn as sns",
    "renderers/terminal.py": "from rich.text import Text\nfrom attnviz.report import TYPE_CHECKING",
    "renderers/terminal_maps.py": "from rich.style import Style",
    "workflows/heatmap.py": "from attnviz import renderers, store\nfrom attnviz.models.opening import open_model\n"
    "store.write_bytes('a')",
    "cli/app.py": "import sys\nimport typer\nprint('a')\nsys.stdout.write('a')",
}

BROKEN = {  # what is added to the clean house, and the one complaint that it must bring
    # registration lines
    "a plugin of another room": (
        "models/__init__.py",
        "from attnviz.registry import Plugin\nM = (Plugin('a', 'attnviz.text.hub:read', 'help'),)",
        "plugin: attnviz.text.hub:read is not in models",
    ),
    "a computed plugin": (
        "models/__init__.py",
        "from attnviz import registry\nM = tuple(registry.Plugin(n, f'attnviz.models.{n}:f', '') for n in 'ab')",
        "plugin: where the code is has to be written out",
    ),
    "an import by a computed name": (
        "views/v.py",
        "from importlib import import_module as load\nname = 'a'\nload(name)",
        "plugin: only the registry imports by a computed name",
    ),
    # the terminal and files
    "print": ("measures/m.py", "def f(): print(1)", "terminal: print"),
    "print, handed on": ("models/m.py", "from attnviz.models.opening import train\ntrain(print)", "terminal: print"),
    "stderr": ("models/m.py", "from sys import stderr as log\nlog.write('a')", "terminal: sys.stderr"),
    "leaving": ("workflows/w.py", "raise SystemExit(2)", "terminal: SystemExit"),
    "open to write": ("renderers/r.py", "with open('a', 'wb') as f: pass", "file: open"),
    "open in a computed mode": ("text/t.py", "how = 'w'\nopen('a', how)", "file: open"),
    "Path.open to write": ("cli/c.py", "from pathlib import Path\nPath('a').open('w')", "file: open"),
    "gzip.open to write": ("text/t.py", "import gzip\ngzip.open('a', 'wt')", "file: gzip.open"),
    "write_text": ("workflows/w.py", "from pathlib import Path\nPath('a').write_text('a')", "file: write_text"),
    "os.replace by another name": ("models/m.py", "from os import replace as mv\nmv('a', 'b')", "file: os.replace"),
    "save_file": (
        "models/m.py",
        "from safetensors.torch import save_file as s\ns({}, 'a')",
        "file: safetensors.torch.save_file",
    ),
}


def test_attnviz_keeps_the_rules() -> None:
    assert [f"{where}: {rule}: {what}" for where, rule, what in breaches(ROOT / "attnviz")] == []


def test_a_clean_house_has_no_complaints(tmp_path: Path) -> None:
    assert breaches(build(tmp_path, CLEAN)) == []


@pytest.mark.parametrize(("name", "source", "complaint"), BROKEN.values(), ids=BROKEN)
def test_each_rule_can_fail(tmp_path: Path, name: str, source: str, complaint: str) -> None:
    found = breaches(build(tmp_path, CLEAN | {name: source}))
    assert [f"{rule}: {what}" for _, rule, what in found] == [complaint]


def test_each_rule_is_shown_to_fail() -> None:
    """The names of the rules stand in the checker's docstring, one to a line."""
    documented = {line.split()[0] for line in (architecture.__doc__ or "").splitlines() if line.startswith("    ")}
    assert documented == {complaint.partition(":")[0] for _, _, complaint in BROKEN.values()}


def test_listing_names_imports_nothing_heavy(tmp_path: Path) -> None:
    assert heavy_imports(", ".join(LIGHT), tmp_path) == set()
    assert heavy_imports("attnviz.shapes", tmp_path) == {"jaxtyping", "numpy"}


def test_what_processes_of_a_survey_are_forked_from_draws_nothing(tmp_path: Path) -> None:
    found = heavy_imports(", ".join(MEASURING), tmp_path)
    assert "torch" in found
    assert "matplotlib" not in found


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
                assert callable(load(plugin))


def build(folder: Path, files: dict[str, str]) -> Path:
    """A made-up house."""
    package = folder / "attnviz"
    for name, source in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return package


@pytest.mark.parametrize(
    ("place", "line", "contract"),
    [
        ("measures/shares.py", "import attnviz.models", "One way through: a room imports lower ones and itself"),
        ("views/nouns.py", "import attnviz.renderers", "Views say what to show, not how"),
        ("renderers/documents/csv.py", "import attnviz.records", "Renderers know reports, not where they come from"),
        ("views/nouns.py", "def f():\n    import torch", "torch and what reads models, only where models are"),
        ("renderers/documents/csv.py", "import matplotlib", "matplotlib and what is drawn with it, only in figures"),
        ("commands/train/vocab.py", "import typer", "typer, only in the command line"),
        ("commands/explain/run.py", "import attnviz.commands.compare.run", "Wings know the core and no other wing"),
        ("running/drawing.py", "import attnviz.commands", "One way through: a room imports lower ones and itself"),
    ],
)
def test_contracts_can_break(place: str, line: str, contract: str, tmp_path: Path) -> None:
    """import-linter with our contracts, over a copy of the package with one line more."""
    shutil.copytree(ROOT / "attnviz", tmp_path / "attnviz", ignore=shutil.ignore_patterns("data", "__pycache__"))
    with (tmp_path / "attnviz" / place).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    lint = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as f; f()"]
    command = [*lint, "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, env=os.environ | {"PYTHONPATH": "."})
    assert done.returncode == 1, done.stderr.decode()
    assert f"{contract} BROKEN" in " ".join(done.stdout.decode().split())
