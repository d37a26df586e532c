"""Which files a run leaves: exactly those that were asked for, each of them where it is said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.endings import RunHere, check_whole, worked
from tests.made import content


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
def test_selections(options: str, expected: set[str], attnviz: RunHere, tmp_path: Path) -> None:
    """The record holds every layer and head, whatever is drawn."""
    worked(attnviz("heatmap", "--text", "a film", "--dpi", "40", "--out", "drawn", *options.split()))
    assert content(tmp_path).keys() == {f"drawn/{name}" for name in {*expected, "attention.safetensors"}}
    assert len(check_whole(tmp_path)) == len(expected)


def test_several_texts_get_a_folder_each(attnviz: RunHere, tmp_path: Path) -> None:
    drawing = ("--model", "dot", "--dpi", "40")
    files = ("layer-0-head-0.png", "attention.safetensors")
    given = worked(attnviz("heatmap", "--text", "../one", "--text", "two/", *drawing))
    assert content(tmp_path).keys() == {f"attention/text-{number}/{name}" for number in (0, 1) for name in files}
    assert [line for line in given.stderr.splitlines() if "wrote" in line] == [
        f"note: wrote 2 files to attention/text-{number}/ ({files[0]} … {files[1]})" for number in (0, 1)
    ]
    worked(attnviz("heatmap", "--dataset", "sample", "--split", "test[-3:]", "--index", "0,-1", *drawing, "--out", "b"))
    assert content(tmp_path / "b").keys() == {f"test-{number}/{name}" for number in (17, 19) for name in files}


@pytest.mark.parametrize(
    "options",
    ["--format png,svg,pdf --heads 1", "--causal --annotate --scale log --heads 2", "--title $x$ --cmap mako --dpi 60"],
)
def test_a_record_is_drawn_again_byte_for_byte(options: str, attnviz: RunHere, tmp_path: Path) -> None:
    asked = options.split()
    first = worked(attnviz("heatmap", "--text", "猫 sat on 😀", *asked))
    look = [word for word in asked if word not in ("--heads", "1", "2", "--causal")]
    assert worked(attnviz("render", "attention/attention.safetensors", "--out", "again", *look)).stdout == first.stdout
    drawn = {path.name: path.read_bytes() for path in (tmp_path / "attention").iterdir()}
    del drawn["attention.safetensors"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == drawn
