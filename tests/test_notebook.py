"""attnviz in Python and in notebooks: what `import attnviz` offers, shown by a notebook and by a browser."""

import base64
import doctest
import re
import subprocess
import sys
from html import unescape
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

import attnviz
from attnviz.errors import AttnvizError, InvalidOption, InvalidRecord, InvalidSelection
from attnviz.models.recording.record import Recording
from attnviz.python import notebook
from tests.browser import Open, Opened
from tests.made import random_maps, windowed_maps
from tests.process import ROOT

TOKENS = ["the", "cat", "<b>'\"&"]
DOCUMENTED = (
    "records.notebook",
    "python.api",
    "models.attentions.attentions",
    "models.recording.record",
    "records.grid",
)


def attentions(n_rows: int = 1, n: int = 3, n_layers: int = 2) -> tuple[torch.Tensor, ...]:
    """As a model puts them out: 2 heads in each layer."""
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(n_rows, 2, n, n, generator=generator).softmax(-1) for _ in range(n_layers))


@pytest.mark.parametrize("module", DOCUMENTED)
def test_examples_in_docstrings_run(module: str, here: Path) -> None:
    found = doctest.testmod(import_module(f"attnviz.{module}"))
    assert found.attempted > 1
    assert found.failed == 0


def test_every_public_name_is_listed_and_documented() -> None:
    assert dir(attnviz) == sorted(attnviz.__all__)  # and no submodule, which would be taken for public
    for name in set(attnviz.__all__) - {"__version__"}:
        assert getattr(attnviz, name).__doc__, name


def test_what_a_notebook_is_given() -> None:
    maps = attnviz.from_attentions(attentions(), TOKENS, model="mine")
    expected = "AttentionMaps(model='mine', text='“the cat x”', layers=2, heads=2, queries=3, keys=3)"
    assert repr(attnviz.from_attentions(attentions(), ["the", "cat", "x"], model="mine")) == expected
    shown = maps._repr_html_()
    assert 'sandbox="allow-scripts allow-downloads"' in shown
    (page,) = re.findall("srcdoc='([^']*)'", shown)
    assert unescape(page).startswith("<!doctype html>")
    assert unescape(page).rstrip().endswith("</html>")
    png = base64.b64decode(maps._repr_mimebundle_()["image/png"])
    assert Image.open(BytesIO(png)).width > 300


def test_a_recording_shows_its_first_record_and_says_so() -> None:
    recording = Recording([random_maps(), windowed_maps()])
    assert repr(recording) == f"Recording(2 records, the first of them {recording[0]!r})"
    assert recording._repr_html_().startswith("<p>The first of 2 records; attnviz.show(maps[1]) shows the next.</p><if")
    assert Recording()._repr_html_().startswith('<iframe title="no record yet"')


ROOM = [(400_000, True, 487), (200_000, True, 244), (110_000, False, 244), (9_000, False, 0)]  # of a page of 0.1 MB


@pytest.mark.parametrize(("size", "page", "width"), ROOM)
def test_a_cell_keeps_at_most_so_much(size: int, page: bool, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the page, then the picture in as many pixels as there is room for, at last a sentence only."""
    monkeypatch.setattr(notebook, "MAX_BYTES", size)
    kept = random_maps([chr(97 + place % 26) for place in range(160)])._repr_mimebundle_()
    assert sum(map(len, kept.values())) <= size
    assert ("<iframe" in kept["text/html"]) == page
    assert ("The page to explore would be 0.1 MB" in kept["text/html"]) != page
    assert ("image/png" in kept) == bool(width)
    if width:
        assert Image.open(BytesIO(base64.b64decode(kept["image/png"]))).width == width
        assert (f'src="data:image/png;base64,{kept["image/png"]}"' in kept["text/html"]) != page


def test_a_batch_is_chosen_from_and_padding_left_out() -> None:
    plain = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]).expand(2, 2, 3, 3)
    maps = attnviz.from_attentions(
        (plain,), [["a", "b", "c"], ["a", "b"]], row=1, attention_mask=[[1, 1, 1], [1, 1, 0]]
    )
    assert maps.queries.pieces == ("a", "b")
    assert maps.attendable[0].tolist() == [[True, False], [True, True]]
    assert maps.provenance.facts.causal
    assert "later tokens are taken as not attendable" in maps.provenance.facts.guess


def test_layers_without_attention_keep_the_numbers_of_the_others() -> None:
    first, second = attentions(n_layers=2)
    maps = attnviz.from_attentions((None, first, None, second), TOKENS)
    assert (maps.layer_numbers, maps.unseen_layers, maps.weights.shape[0]) == ((1, 3), (0, 2), 2)


def test_wrong_uses_end_in_one_line() -> None:
    maps = windowed_maps()
    wrong: list[tuple[type[AttnvizError], str, Any]] = [
        (InvalidRecord, "an object of type str is not a record", lambda: attnviz.measure("maps", "entropy")),  # type: ignore[arg-type]
        (InvalidRecord, r'attnviz.attention\("the cat"\) makes one of a text', lambda: attnviz.heatmap("the cat")),  # type: ignore[arg-type]
        (InvalidRecord, r"got 2. Choose one, such as maps\[0\]", lambda: attnviz.heatmap([maps, maps])),
        (InvalidOption, "names 15 measures", lambda: attnviz.measure(maps, "all")),
        (InvalidOption, "a record has its tokens", lambda: attnviz.show(maps, ["a"])),
        (InvalidOption, "axes hold one map", lambda: attnviz.heatmap(maps, ax=Figure().subplots())),
        (InvalidSelection, "no layer 7", lambda: attnviz.heatmap(maps, pick="7.0")),
    ]
    for kind, said, call in wrong:
        with pytest.raises(kind, match=said):
            call()


def test_figures_are_ones_own_or_on_given_axes() -> None:
    maps = windowed_maps()
    figure = attnviz.heatmap(maps, pick="0.1,1.0", scale="shared")
    assert len(figure.axes) == 4  # two maps, the colour bar, the key to forbidden cells
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    mine = Figure(figsize=(8, 4))
    left, right = mine.subplots(1, 2)
    assert attnviz.heatmap(maps, pick="1.0", ax=left) is mine
    assert attnviz.heatmap(attnviz.from_attentions(attentions(n_layers=1), ["$x$", "b", "c"]), head=1, ax=right) is mine
    assert left.get_title() == "layer 1, head 0"
    assert [text.get_text() for text in right.get_xticklabels()] == ["$x$", "b", "c"]
    assert not right.get_xticklabels()[0].get_parse_math()
    shown = left.collections[0].get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(shown), ~maps.attendable[1])
    np.testing.assert_allclose(shown[3, 3], max(1.0, 2 * maps.weights[1, 0, 3, 3]))  # multiples of one half


@pytest.mark.parametrize(
    ("layout", "n_rows", "n_columns", "size"),
    [("none", 1, 2, 6), ("constrained", 1, 2, 6), ("tight_layout", 2, 3, 4.5)],
)
def test_maps_on_given_axes_lie_on_nothing_else(layout: Any, n_rows: int, n_columns: int, size: float) -> None:
    """What has no room is left out: a whole row of labels keeps them, a crowd of maps keeps its cells."""
    figure = Figure(figsize=(size, 0.75 * size), layout=None if layout == "tight_layout" else layout)
    many = figure.subplots(n_rows, n_columns, squeeze=False)
    for axes in many.flat:
        attnviz.heatmap(windowed_maps(), pick="1.0", ax=axes)
    if layout == "tight_layout":
        figure.tight_layout()
    figure.draw_without_rendering()
    boxes = [box for axes in many.flat if (box := axes.get_tightbbox()) is not None]
    assert len(boxes) == n_rows * n_columns
    assert not any(box.overlaps(other) for place, box in enumerate(boxes) for other in boxes[:place])
    assert all(figure.bbox.padded(1).contains(*corner) for box in boxes for corner in (box.min, box.max))
    assert bool(many[0, 0].get_xlabel()) == (n_rows == 1)


def test_measures_are_a_table_by_layer_and_head() -> None:
    """A measure of all heads of a layer has a row of its own, without a head."""
    maps = random_maps(n_layers=2, n_heads=3)
    table = attnviz.numbers(maps)
    assert table.keys == ("layer", "head")
    assert len(table) == 2 * (3 + 1)
    frame = table.to_pandas()
    for name in ("entropy", "vendi_score"):
        values = frame[name].dropna().to_numpy().reshape(attnviz.measure(maps, name).values.shape)
        np.testing.assert_array_equal(values, attnviz.measure(maps, name).values.astype(np.float64))
    assert frame[frame["head"].isna()].entropy.isna().all()
    assert attnviz.numbers(maps, "entropy,peak").values == ("entropy", "peak")
    with pytest.raises(InvalidOption, match="no measure 'entrpy'"):
        attnviz.numbers(maps, "entrpy")


@pytest.mark.slow
def test_the_sample_notebook_runs_and_shows_its_pictures(opened: Open, tmp_path: Path) -> None:
    """By nbconvert, as HTML without the libraries that it would load from a network."""
    empty = [f"--HTMLExporter.{name}_url=data:text/javascript," for name in ("require_js", "mathjax")]
    words = ["nbconvert", "--execute", "--to", "html", *empty, "--output-dir", str(tmp_path), "docs/attention.ipynb"]
    run = subprocess.run([sys.executable, "-m", "jupyter", *words], cwd=ROOT, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
    page = opened(tmp_path / "attention.html", kind=Notebook).page
    _, *frames = page.frames
    assert len(frames) == 2
    for frame in frames:
        frame.wait_for_selector("#view[data-ready]")
        assert frame.locator("canvas").count() > 0
    (figure,) = page.locator(".jp-OutputArea img").all()
    assert figure.evaluate("image => image.naturalWidth") > 500
    assert page.locator(".jp-OutputArea table tbody tr").count() == 3
    assert page.locator("[data-mime-type='application/vnd.jupyter.stderr']").count() == 0


class Notebook(Opened):
    """A page whose frames are ready each by itself."""

    def ready(self) -> None:
        """Wait for nothing but the page itself."""


# --- A page within a notebook's cell: as high as what it shows, whatever that is, and reaching nothing outside ---


FITS = """(name) => new Promise((done) => {
  const measure = () => [document.documentElement.scrollHeight, innerHeight];
  const isDone = () => document.querySelector(`#view[data-ready=${name}]`) && measure()[0] <= innerHeight;
  const wait = (left) => (isDone() || !left ? done(measure()) : setTimeout(wait, 20, left - 1));
  wait(250);
})"""


@pytest.fixture
def cells(opened: Open, tmp_path: Path) -> Any:
    """A notebook of two cells, which show records of few tokens and of many."""
    shown = (random_maps(n_heads=3)._repr_html_(), random_maps(["t"] * 60, n_heads=3)._repr_html_())
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><title>notebook</title>{''.join(shown)}", encoding="utf-8")
    return opened(file, kind=Notebook, viewport={"width": 1000, "height": 700}).page


@pytest.mark.slow
def test_nothing_scrolls_within_a_cell(cells: Any) -> None:
    heights = {}
    for place, frame in enumerate(cells.frames[1:]):
        frame.click("#more summary")
        for view in ("matrix", "table", "overview"):
            frame.click(f"#tab-{view}")
            found, heights[place, view] = frame.evaluate(FITS, view)
            assert found <= heights[place, view], view
        assert not frame.is_visible("#about dl")
    assert heights[1, "matrix"] > heights[1, "overview"]  # it becomes lower again


@pytest.mark.slow
def test_a_cell_heeds_no_height_of_others(cells: Any) -> None:
    frame = cells.locator("iframe").first
    before = frame.bounding_box()
    cells.evaluate("postMessage({ attnviz: 5000 }, '*')")
    cells.evaluate("new Promise((done) => setTimeout(done, 100))")
    assert frame.bounding_box() == before
