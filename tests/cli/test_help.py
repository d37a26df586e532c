"""What the program says of itself, and what it does not import to say it.

`ATTNVIZ_WRITE_HELP=1 pytest tests/cli/test_help.py` writes the golden text anew.
"""

import os
import re
import sys
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from attnviz import __version__, options
from attnviz.cli.help import write_command_help
from attnviz.commands import COMMANDS
from attnviz.errors import InvalidOption
from attnviz.measures import MEASURES
from attnviz.options import (
    ARGUMENT,
    PANELS,
    TEXT,
    FlatOption,
    Option,
    build,
    find_changed,
    list_options,
    list_values,
    replace_values,
)
from attnviz.registry import load
from attnviz.renderers.figure.style import colour_map
from attnviz.running import Command
from attnviz.specs import COLOUR_MAPS, ScaleKind
from tests.process import ROOT, RunCli, bare_environment, said_by

GOLDEN = Path(__file__).parent / "help"
MAX_LINES = 45  # of a help, which a screen shows at once
HEAVY = {"torch", "numpy", "matplotlib", "seaborn", "pandas", "datasets", "pyarrow", "transformers", "tokenizers"}
HEAVY |= {"pydantic"}
EIGHTY = {"COLUMNS": "80"}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_options_have_help_and_the_short_fits_a_screen(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within eighty columns, however wide the screen is."""
    monkeypatch.setenv("COLUMNS", "200")
    spec = load(command.spec)
    short, full = (write_command_help(command.name, spec, is_full=is_full).splitlines() for is_full in (False, True))
    assert full[0].startswith(f"Usage: attnviz {command.name} [OPTIONS]")
    assert max(map(len, (*short, *full))) <= 80
    for option in list_options(spec):
        written = option.option.metavar if option.option.panel == ARGUMENT else option.flag
        assert any(written in line.split() for line in full), option.name
        assert option.option.write_command_line_help() in " ".join(" ".join(full).split()), option.name
        assert option.option.help.endswith((".", "}", "…")), option.name
        assert (option.name == "out") == (option.option.short == "-o"), option.name

    assert len(short) <= MAX_LINES
    shown, known = ({*re.findall(r"^ +(-.*?)(?:  |$)", "\n".join(lines), re.MULTILINE)} for lines in (short, full))
    assert {"-h, --help", *(() if short == full else ["--help-all"])} <= shown <= {*known, "--help-all"}
    assert (short == full) == ("--help-all" not in " ".join(short))
    panels = [line for line in short if line.endswith(":") and not line.startswith(" ")]
    assert panels == [f"{panel}:" for panel in (*PANELS, "Options") if f"{panel}:" in short]


def test_the_programs_help_names_every_command(run_cli: RunCli) -> None:
    run = run_cli("--help", env=EIGHTY)
    assert (run.exit_code, run.stderr) == (0, "")
    assert max(map(len, run.stdout.splitlines())) <= 80
    shown = " ".join(run.stdout.split())
    assert [command.name for command in COMMANDS if f" {command.name} {command.help}" not in shown] == []


@pytest.mark.parametrize(("flag", "file"), [("--help", "heatmap.txt"), ("--help-all", "heatmap-all.txt")])
def test_one_help_to_the_letter(flag: str, file: str, run_cli: RunCli) -> None:
    """How usage, panels, values and defaults are written."""
    run = run_cli("heatmap", flag, env=EIGHTY)
    assert (run.exit_code, run.stderr) == (0, "")
    if os.environ.get("ATTNVIZ_WRITE_HELP"):
        (GOLDEN / file).write_text(run.stdout, encoding="utf-8")
    assert run.stdout == (GOLDEN / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [("heatmap", "--heads", "8", "-h"), ("help", "heatmap")])
def test_the_help_is_the_same_in_other_words(arguments: tuple[str, ...], run_cli: RunCli) -> None:
    """Between others typer reads the words. Alone it is shown without typer, which takes most of the time of a help."""
    run = run_cli(*arguments, env=EIGHTY)
    assert (run.exit_code, run.stdout) == (0, (GOLDEN / "heatmap.txt").read_text(encoding="utf-8"))


def imported(lines: tuple[str, ...], home: Path) -> set[str]:
    """The packages that command lines import, one after the other."""
    script = "import sys; from attnviz.cli.app import run; [run(line.split()) for line in sys.argv[1:]]"
    script += "; print(*sys.modules, file=sys.stderr)"
    done = said_by([sys.executable, "-c", script, *lines], cwd=home, env=bare_environment(home))
    return {name.partition(".")[0] for name in done.stderr.splitlines()[-1].split()}


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("heatmap --help", "help heatmap"), set()),
        (("--help",), {"typer"}),
        (("heatmap --hads 8", "heatmap --heads 7", "heatmap --model mlti", "heatmap --dataset imdb"), {"typer"}),
        (("measures", "batch --schema"), {"numpy", "typer"}),
    ],
)
def test_help_and_wrong_usage_import_nothing_heavy(lines: tuple[str, ...], found: set[str], tmp_path: Path) -> None:
    assert imported(lines, tmp_path) & {*HEAVY, "typer"} == found


def test_completion_offers_names_and_choices(run_cli: RunCli) -> None:
    models = {"single", "multi", "single-zh", "multi-zh", "random", "dot", "recall", "minilm", "smollm2", "dinov2"}
    models |= {"multi:2", "multi:4", "multi:8", "recall:1", "recall:2", "recall:4", "recall:8"}
    measures = {measure.name for measure in MEASURES if measure.name.startswith("to_")}
    for option, expected in {"--model ": models, "--scale ": {*get_args(ScaleKind)}, "--measure to_": measures}.items():
        run = run_cli(
            env={
                "_ATTNVIZ_COMPLETE": "complete_bash",
                "COMP_WORDS": f"attnviz heatmap {option}",
                "COMP_CWORD": "3",
                "PATH": os.environ["PATH"],
            }
        )
        assert set(run.stdout.split()) == expected


def test_colour_maps_that_are_offered_exist() -> None:
    for name in {*COLOUR_MAPS, "viridis_r", "flare"} - {"auto"}:
        assert colour_map(name)
    with pytest.raises(InvalidOption):
        colour_map("auto")


def test_the_installed_command_is_the_program() -> None:
    done = said_by([str(Path(sys.executable).parent / "attnviz"), "--version"], cwd=ROOT)
    assert done.stdout == f"attnviz {__version__}\n"


# --- An option is written once, on a field of a spec, and all that users see of it follows from there ---


@dataclass(frozen=True, kw_only=True)
class Group:
    size: int = Option("Size{; once}. {names}; --left-out", TEXT, table="attnviz.models:BUILT_IN").field(1)
    left_out: int = Option("Left out.", TEXT).field(2)


@dataclass(frozen=True, kw_only=True)
class Spec:
    group: Group = options.group(Group(size=3), "size")  # noqa: RUF009 - frozen
    whole: str = Option("All.", TEXT).field(MISSING)


SPECS = [load(command.spec) for command in COMMANDS]


def test_groups_are_left_out_for_users() -> None:
    size, whole = list_options(Spec)
    assert (size.name, size.group, size.type, size.default) == ("size", "group", int, 3)
    assert (whole.name, whole.group, whole.default) == ("whole", "", MISSING)
    spec = build(Spec, whole="x")
    assert spec == Spec(whole="x")
    assert list_values(spec) == {"size": 3, "whole": "x"}
    assert find_changed(spec) == {"whole": "x"}
    assert replace_values(spec, size=4) == Spec(group=Group(size=4), whole="x")


def test_help_is_for_the_command_line_or_for_configs() -> None:
    option = list_options(Spec)[0].option
    models = "single, multi, single-zh, multi-zh, random, dot, recall"
    assert option.write_command_line_help() == f"Size; once. {models}; --left-out"
    assert option.write_config_help() == f"Size. {models}; left_out"


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.__name__)
def test_every_spec_is_built_of_its_options(spec: type[Any]) -> None:
    options = list_options(spec)
    assert len({option.name for option in options}) == len(options), "no two groups have an option of one name"
    assert all(option.option.metavar for option in options if option.option.panel == ARGUMENT)
    values = {option.name: "x" if option.default is MISSING else option.default for option in options}
    assert list_values(build(spec, **values)) == values
    for group in (field for field in fields(spec) if is_dataclass(field.default)):
        shown = {option.name for option in options if option.group == group.name}
        assert shown <= {field.name for field in fields(group.default)}, group  # type: ignore[arg-type]


def test_one_name_means_one_thing() -> None:
    """Help that commands share is written once: a name has a second help only where a command reads it differently."""
    found: dict[str, dict[int, FlatOption]] = {}
    for spec in SPECS:
        for option in list_options(spec):
            found.setdefault(option.name, {})[id(option.option)] = option
    several = {name: {each.option.help for each in options.values()} for name, options in found.items()}
    with_limits = {
        name: {(each.option.help, each.option.limits) for each in options.values()} for name, options in found.items()
    }
    assert all(len(with_limits[name]) == len(found[name]) for name in found), "written twice"
    assert {name for name, helps in several.items() if len(helps) > 1} == {
        "answer",
        "question",
        "lang",
        "open",
        "head",
        "out",
        "query",
        "max_memory",
        "workers",
        "top_k",
        "table",
        "format",
    }
