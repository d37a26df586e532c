"""Patches of an image: named, kept, and drawn over it, by a vision transformer on a file that a test makes."""

import base64
import os
import re
import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import EpsImagePlugin, Image

import attnviz
from attnviz.errors import AttnvizError, InvalidOption, InvalidRecord, InvalidSource, TooLarge
from attnviz.renderers.figure.files import draw_plan, plan_picture, png
from attnviz.renderers.figure.layout import FigurePlan
from attnviz.renderers.figure.scale import OVER_IMAGE
from attnviz.renderers.figure.style import drawing
from attnviz.report import FigureStyle, HeatmapGrid
from attnviz.views.index_page import COLUMNS
from tests.browser import Open
from tests.made import page_content

BLACK, WHITE = round(255 * OVER_IMAGE), 255  # under a cell of an equal share, which is white


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """Black on the left, white on the right."""
    pixels = np.zeros((60, 90, 3), dtype=np.uint8)
    pixels[:, 45:] = 255
    Image.fromarray(pixels).save(tmp_path / "cat.png")
    return tmp_path / "cat.png"


def uniform(n_keys: int, n_heads: int = 2) -> np.ndarray:
    return np.full((1, n_heads, n_keys, n_keys), 1 / n_keys, dtype=np.float32)


def patches(maps: attnviz.AttentionMaps, **settings: Any) -> HeatmapGrid:
    """The first picture."""
    first = next(attnviz.show(maps, **settings).report.pictures)
    assert isinstance(first, HeatmapGrid)
    assert first.name == "patches"
    return first


def test_a_vision_transformer_is_drawn_over_its_image(picture: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'attnviz[hf]'")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 16}
    config = transformers.ViTConfig(**sizes, image_size=24, patch_size=4)
    model = transformers.ViTModel(config, add_pooling_layer=False).eval()
    grid = attnviz.Grid(6, 6, image=picture, leading=["[CLS]"])
    with torch.no_grad(), attnviz.record(keys=grid) as recorded:
        model(torch.randn(1, 3, 24, 24, generator=torch.Generator().manual_seed(0)))
    (maps,) = recorded
    assert maps.self_attention
    assert maps.keys.pieces[:3] == ("[CLS]", "0,0", "0,1")
    assert maps.keys.pieces[-1] == "5,5"
    shown = patches(maps, query="2,3")
    assert shown.title == "where “2,3” looks: 8 heads of 2 layers"
    assert len(shown.maps) == 8
    np.testing.assert_array_equal(shown.maps[5].values.ravel(), maps.weights[1, 1, 16, 1:])
    assert patches(maps).title.startswith("where “[CLS]” looks")
    notes = " ".join(note.text for note in attnviz.show(maps).report.notes)
    assert "to “[CLS]”" in notes
    attnviz.save(maps, tmp_path / "kept.safetensors")
    kept: Any = attnviz.load(tmp_path / "kept.safetensors")
    assert attnviz.show(kept)._repr_mimebundle_() == attnviz.show(maps)._repr_mimebundle_()


def test_in_a_column_of_a_paper_three_maps_over_an_image_stand_side_by_side(picture: Path) -> None:
    """Nearly an inch each, under the picture's own title in one line; the images say where patches are."""
    grid = attnviz.Grid(20, 30, image=picture)
    report = attnviz.show(attnviz.from_attentions(uniform(600, 9), keys=grid), pick="0.0,0.1,0.2,0.3,0.4,0.5").report
    layout = plan_picture(next(report.pictures), report, FigureStyle(width=3.3))
    assert isinstance(layout, FigurePlan)
    assert len({place.box.left for place in layout.places}) == 3
    assert all(place.box.width > 0.9 for place in layout.places)
    assert not layout.tokens
    said = [line.text for line in layout.lines]
    assert said[0] == "where “10,15” looks"
    assert not any("of patches" in text for text in said)
    assert layout.width == pytest.approx(3.3)


@pytest.mark.parametrize("painter", ["ours", "matplotlib", "axes"])
def test_the_image_is_seen_through_cells(painter: str, picture: Path) -> None:
    maps = attnviz.from_attentions(uniform(16, 1), keys=attnviz.Grid(4, 4, image=picture))
    file = BytesIO()
    if painter == "ours":
        file.write(next(data for _, data in png(attnviz.show(maps).report, FigureStyle())))
    elif painter == "axes":
        axes = Figure().subplots()
        axes.set_box_aspect(1)
        attnviz.heatmap(maps, ax=axes).savefig(file)
    else:
        report = attnviz.show(maps).report
        with drawing():
            layout = plan_picture(next(report.pictures), report, FigureStyle())
            draw_plan(layout, FigureStyle()).savefig(file)
    pixels = np.asarray(Image.open(file).convert("RGB")).astype(int)
    dark = (np.abs(pixels - BLACK) <= 1).all(axis=-1)
    rows, columns = (np.flatnonzero(dark.sum(axis=axis) > 50) for axis in (1, 0))  # text has a few such pixels
    height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
    assert dark[np.ix_(rows, columns)].all()
    assert len(rows) == height
    assert len(columns) == width
    assert width == pytest.approx(height / 2, abs=3)  # the left half of a square
    right = pixels[rows.min() + 5 : rows.max() - 5, columns.max() + 5 : columns.max() + width - 5]
    assert (right == WHITE).all()


def test_a_page_has_the_image_under_its_cells(opened: Open, picture: Path, tmp_path: Path) -> None:
    """As pixels: nothing on the page decodes an image that somebody gave."""
    maps, file = attnviz.from_attentions(uniform(16), keys=attnviz.Grid(4, 4, image=picture)), tmp_path / "a.html"
    attnviz.save(maps, file)
    assert b"data:image" not in file.read_bytes()
    (backdrop,) = page_content(file)["backdrops"]
    assert base64.b64decode(backdrop["grey"]) == maps.grid.pixels.tobytes()  # type: ignore[union-attr]
    page = opened(file, "view=matrix&map=0")
    said = page.page.locator("#views, #choosers, aside").all_inner_texts()
    assert not re.search(
        r"\b(text|words?)\b", " ".join([*said, page.page.locator("#find").get_attribute("placeholder")])
    )
    assert page.colour(1, 0, 4, 4) == pytest.approx([BLACK] * 3, abs=2)
    assert page.colour(1, 3, 4, 4) == pytest.approx([WHITE] * 3, abs=2)


def test_names_of_keys() -> None:
    maps = attnviz.from_attentions(uniform(6), keys=attnviz.Grid(2, 2))
    assert maps.keys.pieces == maps.queries.pieces == ("token 0", "token 1", "0,0", "0,1", "1,0", "1,1")
    across = attnviz.from_attentions(np.full((1, 1, 2, 4), 0.25), ["cat", "dog"], keys=attnviz.Grid(2, 2))
    assert (across.queries.pieces, across.keys.pieces[-1]) == (("cat", "dog"), "1,1")
    assert patches(across).title == "where “cat” looks"
    whole = attnviz.from_attentions(uniform(9), keys=attnviz.Grid(3, 3))
    assert patches(whole).title.startswith("where “1,1” looks")
    assert attnviz.show(whole).report.subtitle == "weights as given · 9 patches"
    assert all(each.backdrop is None for each in patches(whole).maps)


def test_patches_may_stand_anywhere_among_the_keys() -> None:
    grid = attnviz.Grid(2, 2, at=[4, 1, 2, 3])
    maps = attnviz.from_attentions(uniform(6), keys=grid)
    assert maps.keys.pieces == ("token 0", "0,1", "1,0", "1,1", "0,0", "token 5")
    weights = np.array([[[[0.1, 0.2, 0.3, 0.05, 0.25, 0.1]]]], dtype=np.float32)
    across = attnviz.from_attentions(weights, ["cat"], keys=grid)
    np.testing.assert_allclose(patches(across).maps[0].values, [[0.25, 0.2], [0.3, 0.05]], atol=1e-6)


def test_numbers_of_an_image_are_of_patches_in_rows_and_columns_and_of_all_heads() -> None:
    """One step down is one patch, not a row of them, and what goes to a marker has no length."""
    weights = uniform(10, 30)
    weights[0, 0] = 0.5 * np.eye(10)[0] + 0.5 * np.roll(np.eye(10), 3, axis=1)  # six are one row down
    weights[0, 1] = np.eye(10)[5]
    maps = attnviz.from_attentions([weights], keys=attnviz.Grid(3, 3, leading=["[CLS]"]))
    shown = attnviz.show(maps).report
    found = attnviz.measure(maps, "distance")
    assert found.unit == "patches"
    assert found.unit in COLUMNS["distance"].unit
    assert found.bounds == pytest.approx((0, 8**0.5))
    assert found.values[0, 0] == pytest.approx((6 + 2 * 5**0.5) / 8)
    assert "patches get most" not in " ".join(note.text for note in shown.notes), "one head of 30 does so"


def call(file: Path, kind: str) -> object:
    """What is refused."""
    grid = attnviz.Grid(2, 2)
    calls: dict[str, Any] = {
        "none": lambda: attnviz.Grid(2, 2, image=file.with_name("none.png")),
        "number": lambda: attnviz.Grid(2, 2, image=7),
        "empty": lambda: attnviz.Grid(0, 2),
        "places": lambda: attnviz.Grid(2, 2, at=[0, 1, 1, 2]),
        "string": lambda: attnviz.Grid(2, 2, leading="[CLS]"),
        "few": lambda: attnviz.from_attentions(uniform(50), keys=attnviz.Grid(14, 14)),
        "leading": lambda: attnviz.from_attentions(uniform(6), keys=attnviz.Grid(2, 2, leading=["[CLS]"])),
        "mask": lambda: attnviz.from_attentions(uniform(4), keys=grid, attention_mask=[[1, 1, 1, 0]]),
        "record": lambda: attnviz.show(attnviz.from_attentions(uniform(50)), keys=attnviz.Grid(3, 3)),
        "batch": lambda: recorded(file),
    }
    return calls.get(kind, lambda: attnviz.Grid(2, 2, image=file))()


def recorded(file: Path) -> None:
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
    states = torch.zeros(2, 4, 4)
    with torch.no_grad(), attnviz.record(keys=attnviz.Grid(2, 2, image=file)):
        attention(states, states, states)


REFUSED: dict[str, tuple[type[AttnvizError], str]] = {
    "text": (InvalidSource, "cat.png cannot be read as an image. PNG, JPEG"),
    "none": (InvalidSource, r"none\.png"),
    "damaged": (InvalidSource, "cat.png is a damaged image .*truncated"),
    "frame": (TooLarge, "cat.png has 5,000 × 4,000 pixels. At most 16 million: make it smaller."),
    "scans": (TooLarge, "cat.png has more than .* scans. Save it as a JPEG of one scan."),
    "number": (InvalidSource, "image is int. Give a file, or an image of Pillow."),
    "empty": (InvalidOption, "a grid of 0 × 2 patches is out of range. Choose 1 to 256 rows and columns."),
    "places": (InvalidOption, "3 places for 2 × 2 patches. Give the place of each among the keys"),
    "string": (InvalidOption, r"leading='\[CLS\]' is not a list"),
    "few": (InvalidRecord, "14 × 14 patches do not fit 50 keys. The last keys are patches; up to 16 tokens may"),
    "leading": (InvalidRecord, r"2 × 2 patches after \[CLS\] do not fit 6 keys. The last keys are patches"),
    "mask": (InvalidRecord, "attention_mask does not go with a Grid"),
    "record": (InvalidRecord, "3 × 3 patches do not fit 50 keys"),
    "batch": (InvalidRecord, "one image, but a batch of 2. Give the model one image at a time."),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_fit_ends_in_one_line(kind: str, picture: Path) -> None:
    if kind == "text":
        picture.write_text("no image")
    elif kind == "damaged":
        picture.write_bytes(picture.read_bytes()[:120])
    elif kind == "frame":
        Image.new("P", (5000, 4000)).save(picture, "GIF")
        data = picture.read_bytes()
        picture.write_bytes(data[:6] + struct.pack("<HH", 1, 1) + data[10:])  # a frame larger than its screen
    elif kind == "scans":
        Image.new("L", (64, 64)).save(picture, "JPEG", progressive=True)
        data = picture.read_bytes()
        last = data[data.rindex(b"\xff\xda") : -2]
        picture.write_bytes(data[:-2] + 200 * last + data[-2:])
    error, said = REFUSED[kind]
    with pytest.raises(error, match=said) as caught:
        call(picture, kind)
    assert "\n" not in str(caught.value)


def test_postscript_named_png_runs_nothing(picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow tells formats by what a file holds, and gives EPS to Ghostscript."""
    picture.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 40 40\n%%EndComments\nshowpage\n%%EOF")
    ghostscript = tmp_path / "gs"
    ghostscript.write_text(f"#!/bin/sh\ntouch '{tmp_path}/run'\n")
    ghostscript.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)  # looked for anew
    with pytest.raises(InvalidSource, match="cannot be read as an image"):
        attnviz.Grid(2, 2, image=picture)
    assert not (tmp_path / "run").exists()
