"""The house keeps its rules, and each rule is able to fail."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

import pytest

import attnviz
from attnviz.registry import Plugin, load
from tests import architecture
from tests.architecture import FENCES, breaches
from tests.process import ROOT, bare_environment

HEAVY = {*FENCES, "numpy", "jaxtyping"} - {"typer"}
LIGHT = ["attnviz", "attnviz.errors", "attnviz.registry", "attnviz.specs"]
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
    # layers
    "a higher room": ("shapes.py", "import attnviz.registry", "layer: shapes may not know registry"),
    "a neighbour": ("report.py", "from attnviz import store", "layer: report may not know store"),
    "a lazy import": ("text/hub.py", "def f():\n  from attnviz.models import x", "layer: text may not know models"),
    "a sibling": ("measures/m.py", "from attnviz.text.hub import x", "layer: measures may not know text"),
    "another sibling": ("models/m.py", "import attnviz.measures.entropy", "layer: models may not know measures"),
    "the whole package": ("models/m.py", "import attnviz", "layer: models may not know __init__"),
    "views and renderers": ("views/v.py", "from attnviz import renderers", "layer: views may not know renderers"),
    "renderers and views": ("renderers/r.py", "from attnviz import views", "layer: renderers may not know views"),
    "renderers and records": ("renderers/r.py", "import attnviz.records", "layer: renderers may not know records"),
    "renderers and files": ("renderers/r.py", "import attnviz.store", "layer: renderers may not know store"),
    "workflows and cli": ("workflows/w.py", "from attnviz.cli import app", "layer: workflows may not know cli"),
    "an import by a literal name": (
        "views/v.py",
        "import importlib as i\ni.import_module('attnviz.cli.app')",
        "layer: views may not know cli",
    ),
    "beside TYPE_CHECKING": (
        "views/v.py",
        "import typing\nif typing.TYPE_CHECKING: pass\nelse: import attnviz.cli.app",
        "layer: views may not know cli",
    ),
    # libraries
    "torch outside": ("views/v.py", "from torch import nn", "fence: torch is only for models"),
    "torch, lazily": ("measures/m.py", "class A:\n  def f(self): import torch", "fence: torch is only for models"),
    "tokenizers outside": ("text/t.py", "import tokenizers", "fence: tokenizers is only for models"),
    "safetensors outside": ("text/t.py", "import safetensors", "fence: safetensors is only for models, store"),
    "datasets outside": ("models/m.py", "import datasets", "fence: datasets is only for text"),
    "hub outside": ("views/v.py", "import huggingface_hub", "fence: huggingface_hub is only for hub, text, models"),
    "a figure in the wrong file": (
        "renderers/terminal.py",
        "import matplotlib",
        "fence: matplotlib is only for renderers.figure",
    ),
    "rich in the wrong file": ("renderers/html.py", "import rich", "fence: rich is only for renderers.terminal*, cli"),
    "typer outside": ("workflows/w.py", "import typer", "fence: typer is only for cli"),
    "click": ("cli/c.py", "from click import echo", "banned: click.echo"),
    "pyplot": ("renderers/figure/files.py", "from matplotlib import pyplot", "banned: matplotlib.pyplot"),
    "pyplot by its long name": (
        "renderers/figure/style.py",
        "import matplotlib.pyplot as plt",
        "banned: matplotlib.pyplot",
    ),
    "an unlisted library": ("text/t.py", "import requests", "unlisted: no fence holds the library requests"),
    # names and forms
    "an unlisted module": ("extra.py", "", "unlisted: no layer holds extra"),
    "an unlisted room": ("plots/__init__.py", "", "unlisted: no layer holds plots"),
    "utils": ("text/utils.py", "", "name: utils says nothing about what is inside"),
    "helpers": ("views/helpers/heads.py", "", "name: helpers says nothing about what is inside"),
    "a relative import": ("text/t.py", "from . import hub", "relative: ."),
    "a relative import of a parent": ("text/t.py", "from ..models import encoder", "relative: ..models"),
    # registration lines
    "a plugin of another room": (
        "models/__init__.py",
        "from attnviz.registry import Plugin\nM = (Plugin('a', 'attnviz.text.hub:read', 'help'),)",
        "plugin: attnviz.text.hub:read is not in models",
    ),
    "a plugin without an attribute": (
        "models/__init__.py",
        "from attnviz.registry import Plugin\nM = (Plugin('a', help='', where='attnviz.models.encoder'),)",
        "plugin: attnviz.models.encoder is not in models",
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
    "stdout, handed on": ("views/v.py", "import sys\nsys.exc_info(sys.stdout)", "terminal: sys.stdout"),
    "stderr": ("models/m.py", "from sys import stderr as log\nlog.write('a')", "terminal: sys.stderr"),
    "leaving": ("workflows/w.py", "raise SystemExit(2)", "terminal: SystemExit"),
    "open to write": ("renderers/r.py", "with open('a', 'wb') as f: pass", "file: open"),
    "open to append": ("text/t.py", "open('a', mode='a')", "file: open"),
    "open in a computed mode": ("text/t.py", "how = 'w'\nopen('a', how)", "file: open"),
    "Path.open to write": ("cli/c.py", "from pathlib import Path\nPath('a').open('w')", "file: open"),
    "gzip.open to write": ("text/t.py", "import gzip\ngzip.open('a', 'wt')", "file: gzip.open"),
    "write_text": ("workflows/w.py", "from pathlib import Path\nPath('a').write_text('a')", "file: write_text"),
    "write_bytes": ("cli/c.py", "from pathlib import Path\n(Path('a') / 'b').write_bytes(b'')", "file: write_bytes"),
    "os.replace": ("models/m.py", "import os\nos.replace('a', 'b')", "file: os.replace"),
    "os.replace by another name": ("models/m.py", "from os import replace as mv\nmv('a', 'b')", "file: os.replace"),
    "rmtree": ("models/m.py", "import shutil\nshutil.rmtree('a')", "file: shutil.rmtree"),
    "save_file": (
        "models/m.py",
        "from safetensors.torch import save_file as s\ns({}, 'a')",
        "file: safetensors.torch.save_file",
    ),
    # cycles
    "a cycle": ("models/opening.py", "import attnviz.models.encoder", "cycle: models.encoder - models.opening"),
    "a cycle with a package": ("text/__init__.py", "T = ()\nfrom attnviz.text import hub", "cycle: text - text.hub"),
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


def test_a_complaint_says_where(tmp_path: Path) -> None:
    package = build(tmp_path, CLEAN | {"views/v.py": "import json\n\n\ndef f() -> None:\n    import torch\n"})
    assert [breach.where for breach in breaches(package)] == ["attnviz/views/v.py:5"]


@pytest.mark.parametrize("module", LIGHT)
def test_listing_names_imports_nothing_heavy(module: str, tmp_path: Path) -> None:
    assert heavy_imports(module, tmp_path) == set()


def test_heavy_imports_are_noticed(tmp_path: Path) -> None:
    assert heavy_imports("attnviz.shapes", tmp_path) == {"jaxtyping", "numpy"}


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
