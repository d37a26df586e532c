"""Which files a command writes, and what it prints in which form."""

import csv
import json
import webbrowser
from pathlib import Path

import pytest

from attnviz import store
from attnviz.cli import printing
from attnviz.cli.printing import write_documents
from attnviz.running import Result
from tests.attacks.endings import RunHere, check_whole, refused, worked
from tests.commands.train.runs import TINY
from tests.made import content, draw_nothing, random_maps


def pictures(*stems: str, formats: str = "png") -> set[str]:
    return {f"{stem}.{ending}" for stem in stems for ending in formats.split()}


def both_layers(*heads: int) -> list[str]:
    """The pictures of heads of a model that comes with attnviz."""
    return [f"layer-{layer}-head-{head}" for layer in range(2) for head in heads]


SELECTIONS: dict[str, tuple[str, set[str]]] = {
    "all eight heads": ("", pictures("overview", *both_layers(*range(8)))),
    "one head in each layer": ("--model single", pictures("overview", *both_layers(0))),
    "no projections": ("--model dot --format svg", pictures("layer-0-head-0", formats="svg")),
    "some heads": ("--head 0,2-3", pictures("overview", *both_layers(0, 2, 3))),
    "formats": (
        "--heads 1 --layer 1 --format pdf,PNG --format svg,pdf",
        pictures("layer-1-head-0", formats="png svg pdf"),
    ),
}


@pytest.mark.parametrize(("options", "expected"), SELECTIONS.values(), ids=SELECTIONS)
def test_selections(options: str, expected: set[str], run_here: RunHere, tmp_path: Path) -> None:
    """The record holds every layer and head, whatever is drawn."""
    worked(run_here("heatmap", "--text", "a film", "--dpi", "40", "--out", "drawn", *options.split()))
    assert content(tmp_path).keys() == {f"drawn/{name}" for name in {*expected, "attention.safetensors"}}
    assert len(check_whole(tmp_path)) == len(expected)


def test_several_texts_get_a_folder_each(run_here: RunHere, tmp_path: Path) -> None:
    drawing = ("--model", "dot", "--dpi", "40")
    files = ("layer-0-head-0.png", "attention.safetensors")
    given = worked(run_here("heatmap", "--text", "../one", "--text", "two/", *drawing))
    assert content(tmp_path).keys() == {f"attention/text-{number}/{name}" for number in (0, 1) for name in files}
    assert [line for line in given.stderr.splitlines() if "wrote" in line] == [
        f"note: wrote 2 files to attention/text-{number}/ ({files[0]} … {files[1]})" for number in (0, 1)
    ]
    worked(run_here("heatmap", "--dataset", "sample", "--split", "test[-3:]", "--index", "0,-1", *drawing, "-o", "b"))
    assert content(tmp_path / "b").keys() == {f"test-{number}/{name}" for number in (17, 19) for name in files}


@pytest.mark.parametrize(
    "options",
    ["--format svg,pdf --heads 1", "--causal --annotate --scale log --heads 2", "--title $x$ --cmap mako --dpi 60"],
)
def test_a_record_is_drawn_again_byte_for_byte(options: str, run_here: RunHere, tmp_path: Path) -> None:
    asked = options.split()
    first = worked(run_here("heatmap", "--text", "猫 sat on 😀", *asked))
    look = [word for word in asked if word not in ("--heads", "1", "2", "--causal")]
    assert worked(run_here("render", "attention/attention.safetensors", "--out", "again", *look)).stdout == first.stdout
    drawn = {path.name: path.read_bytes() for path in (tmp_path / "attention").iterdir()}
    del drawn["attention.safetensors"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == drawn


# --- What is printed is chosen in one way in every command that prints numbers ---


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
    "survey": ("survey", "--model", "multi:2", "--split", "train[:6]", "--null", "none", "--dpi", "40"),
    "train": TINY,
    "batch": ("batch", "jobs.yaml"),
    "measures": ("measures",),
    "vocab": ("vocab", "--dataset", "sample", "--size", "50", "--split", "train[:10]"),
}


@pytest.fixture
def record(tmp_path: Path) -> None:
    store.save(random_maps(), tmp_path / "a.safetensors")
    (tmp_path / "jobs.yaml").write_text("jobs: [predict: {text: not a good film}]", encoding="utf-8")


@pytest.mark.usefixtures("few_probes", "in_this_process", "record", "undrawn")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_in_every_way(command: str, run_here: RunHere, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results of one run, written in each way."""
    printed: dict[str, str] = {}

    def write(results: list[Result], _: str, full: bool) -> str:
        for kind in ("brief", "json", "csv", "markdown", "latex"):
            printed[kind] = "".join(write_documents(results, kind, full=full))
        return printed["csv"]

    monkeypatch.setattr(printing, "write_documents", write)
    assert worked(run_here(*COMMANDS[command], "--print", "csv")).stdout == printed["csv"]
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


def test_short_forms_are_the_same(run_here: RunHere) -> None:
    assert run_here("measures", "--json").stdout == run_here("measures", "--print", "json").stdout != ""
    assert run_here("measures", "-q").stdout == ""


def test_rows_of_heads_are_named_by_model_and_text(run_here: RunHere) -> None:
    header, first, *_ = csv.reader(worked(run_here(*COMMANDS["heatmap"], "--print", "csv")).stdout.splitlines())
    assert header == ["model", "text", "layer", "head", "measure", "unit", "value"]
    assert first[:6] == ["multi:2", "“not a good film”", "0", "0", "entropy", "nats"]


@pytest.mark.parametrize("asked", [("--json", "--print", "csv"), ("--print", "table", "-q"), ("-q", "--json")])
def test_one_thing_at_a_time(asked: tuple[str, ...], run_here: RunHere) -> None:
    refused(run_here("heatmap", *TEXT, *asked), "exclude each other. Leave one of them out.")


def test_a_brief_answer_keeps_its_size_whatever_there_is_to_say(run_here: RunHere, tmp_path: Path) -> None:
    """Of 270 heads the first rows, and how many there are."""
    store.save(random_maps(n_layers=27, n_heads=10), tmp_path / "many.safetensors")
    printed = worked(run_here("render", "many.safetensors", "--dpi", "30", "--print", "brief")).stdout
    assert len(printed) <= 4096
    (one,) = json.loads(printed)["reports"]
    heads = one["tables"]["heads"]
    assert (len(heads["rows"]), heads["of"], one["of"]["tables"], one["of"]["notes"] >= 2) == (16, 270, 2, True)


# --- The page to explore, from every command that draws, and `--open` ---


SENTENCE = "not a good film , but the acting saves it"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was asked to show, of runs whose pictures do not matter."""
    draw_nothing(monkeypatch)
    asked: list[str] = []

    def show(address: str) -> bool:
        asked.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", show)
    return asked


@pytest.mark.parametrize(
    "command",
    [
        ("heatmap", "--text", SENTENCE, "--heads", "2"),
        ("survey", "--model", "multi:2", "--dataset", "sample", "--split", "train[:3]", "--null", "none"),
        ("compare", "single", "multi", "--text", SENTENCE),
        ("attribute", "--text", SENTENCE),
        ("explain", "--text", SENTENCE),
        ("explain", "--text", SENTENCE, "--by-hand"),
    ],
    ids=lambda command: command[0],
)
def test_every_command_with_a_page_opens_it(
    command: tuple[str, ...], run_here: RunHere, tmp_path: Path, opened: list[str]
) -> None:
    """Beside pictures."""
    worked(run_here(*command, "--out", "a", "--open"))
    assert opened == [(tmp_path / "a" / "attention.html").as_uri()]
    assert any((tmp_path / "a").glob("*.png"))


def test_what_writes_no_page_opens_none(run_here: RunHere, opened: list[str]) -> None:
    part = ("--dataset", "sample", "--split", "train[:3]", "--null", "none", "--shard", "1/2")
    run = worked(run_here("survey", "--model", "multi:2", *part, "--open"))
    assert "no page was written that --open could show" in run.stderr
    assert opened == []


def test_of_several_texts_the_index_is_shown(run_here: RunHere, tmp_path: Path, opened: list[str]) -> None:
    worked(run_here("heatmap", "--text", SENTENCE, "--text", "the film", "--heads", "2", "--out", "a", "--open"))
    pages = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html"))
    assert pages == ["a/index.html", "a/text-0/attention.html", "a/text-1/attention.html"]
    assert opened == [(tmp_path / "a" / "index.html").as_uri()]


def test_no_browser_is_told_and_no_failure(run_here: RunHere, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    run = worked(run_here("heatmap", "--text", SENTENCE, "--heads", "2", "--open", "--table", "none"))
    assert "no browser could be opened; the page is attention/attention.html" in run.stderr
