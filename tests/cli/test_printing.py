"""What is printed is chosen in one way in every command that prints numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from attnviz import store
from tests.attacks.endings import RunHere, refused, worked
from tests.commands.train.runs import TINY
from tests.made import random_maps

TEXT = ("--text", "not a good film")
COMMANDS = {
    "heatmap": ("heatmap", *TEXT, "--text", "=a good one", "--heads", "2", "--dpi", "40", "--measure", "entropy,peak"),
    "render": ("render", "a.safetensors", "--dpi", "40"),
    "compare": ("compare", "single", "multi:2", *TEXT, "--dpi", "40"),
    "diff": ("diff", "a.safetensors", "a.safetensors"),
    "predict": ("predict", *TEXT),
    "attribute": ("attribute", *TEXT, "--dpi", "40"),
    "explain": ("explain", "--by-hand", *TEXT),
    "lesson": ("lesson", "not a good film"),
    "survey": ("survey", "--model", "multi:2", "--split", "train[:12]", "--null", "none", "--dpi", "40"),
    "train": (*TINY, "--resume"),
    "batch": ("batch", "jobs.yaml", "--workers", "1"),
    "measures": ("measures",),
    "vocab": ("vocab", "--dataset", "sample", "--size", "50", "--split", "train[:10]"),
}


@pytest.fixture(autouse=True)
def record(tmp_path: Path) -> None:
    store.save(random_maps(), tmp_path / "a.safetensors")
    (tmp_path / "jobs.yaml").write_text("jobs: [predict: {text: not a good film}]", encoding="utf-8")


@pytest.mark.usefixtures("few_probes")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_in_every_way(command: str, attnviz: RunHere) -> None:
    printed = {
        kind: worked(attnviz(*COMMANDS[command], "--print", kind)).stdout
        for kind in ("table", "brief", "json", "csv", "markdown", "latex", "none")
    }
    assert printed["none"] == ""
    assert printed["table"] or command == "lesson"  # which is a page
    assert json.loads(printed["json"])["schema"] == 1
    assert len(printed["brief"]) <= 4096
    (first, *_) = json.loads(printed["brief"])["reports"]
    assert all(len(row) == len(table["columns"]) for table in first["tables"].values() for row in table["rows"])
    header, *rows = csv.reader(printed["csv"].splitlines())
    assert rows
    assert {len(row) for row in rows} == {len(header)}
    assert header not in rows  # of several texts it stands once
    assert not [cell for row in rows for cell in row if cell.startswith("=")]
    assert printed["markdown"].startswith("# ")
    assert printed["latex"].startswith("% Packages: booktabs")
    assert printed["latex"].count("\\begin{") == printed["latex"].count("\\end{") > 0


def test_short_forms_are_the_same(attnviz: RunHere) -> None:
    assert attnviz("measures", "--json").stdout == attnviz("measures", "--print", "json").stdout != ""
    assert attnviz("measures", "-q").stdout == ""


def test_rows_of_heads_are_named_by_model_and_text(attnviz: RunHere) -> None:
    header, first, *_ = csv.reader(worked(attnviz(*COMMANDS["heatmap"], "--print", "csv")).stdout.splitlines())
    assert header == ["model", "text", "layer", "head", "measure", "unit", "value"]
    assert first[:6] == ["multi:2", "“not a good film”", "0", "0", "entropy", "nats"]


@pytest.mark.parametrize("asked", [("--json", "--print", "csv"), ("--print", "table", "-q"), ("-q", "--json")])
def test_one_thing_at_a_time(asked: tuple[str, ...], attnviz: RunHere) -> None:
    refused(attnviz("heatmap", *TEXT, *asked), "exclude each other. Leave one of them out.")


def test_a_brief_answer_keeps_its_size_whatever_there_is_to_say(attnviz: RunHere, tmp_path: Path) -> None:
    """Of 270 heads the first rows, and how many there are."""
    store.save(random_maps(n_layers=27, n_heads=10), tmp_path / "many.safetensors")
    printed = worked(attnviz("render", "many.safetensors", "--dpi", "30", "--print", "brief")).stdout
    assert len(printed) <= 4096
    (one,) = json.loads(printed)["reports"]
    heads = one["tables"]["heads"]
    assert (len(heads["rows"]), heads["of"], one["of"]["tables"], one["of"]["notes"] >= 2) == (16, 270, 2, True)
