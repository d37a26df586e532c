"""Models that read images: which position is which part is measured, on small random ones of many classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import attnviz
from attnviz.errors import AttnvizError
from attnviz.images import Photo
from attnviz.models.loading import find_model
from attnviz.specs import ModelOptions
from tests import pretrained
from tests.attacks.endings import RunHere, worked

transformers = pytest.importorskip("transformers", reason=pretrained.NEEDS)

PATCHES: dict[str, Any] = {"image_size": 48, "patch_size": 8}
SQUARE = {"size": {"height": 48, "width": 48}, "do_center_crop": False}
LONG = {"size": {"shortest_edge": 48}, "do_center_crop": False}
CROPPED = {"size": {"shortest_edge": 64}, "crop_size": {"height": 48, "width": 48}}
# Settings of a model, how images are made ready for it, names of what is no patch, rows and columns of those.
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str], tuple[int, int]]] = {
    "vit": ({}, SQUARE, ["[CLS]"], (6, 6)),
    "deit": ({}, CROPPED, ["[CLS]", "[DISTILLATION]"], (6, 6)),
    "dinov2": ({}, LONG, ["[CLS]"], (6, 8)),
    "dinov3_vit": ({"num_register_tokens": 2}, SQUARE, ["[CLS]", "[REGISTER 0]", "[REGISTER 1]"], (6, 6)),
    "beit": ({}, SQUARE, ["[CLS]"], (6, 6)),
    "siglip_vision_model": ({}, SQUARE, [], (6, 6)),
    "ijepa": ({}, SQUARE, [], (6, 6)),
    "clip_vision_model": ({}, CROPPED, ["[CLASS]"], (6, 6)),
}


def make(folder: Path, kind: str) -> str:
    """Save one of KINDS, or another as simple, with random weights."""
    settings, reading, *_ = KINDS.get(kind, ({}, SQUARE))
    pretrained.built(kind, **PATCHES, **settings).save_pretrained(folder)
    transformers.CLIPImageProcessorPil(**reading).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def photo(tmp_path: Path) -> str:
    """An image of noise."""
    pixels = np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "cat.png")
    return str(tmp_path / "cat.png")


@pytest.mark.parametrize("kind", KINDS)
def test_patches_have_the_places_that_the_image_has_them_in(kind: str, tmp_path: Path, photo: str) -> None:
    folder = make(tmp_path / kind, kind)
    maps = attnviz.attention(photo, model=folder, device="cpu")
    *_, markers, shape = KINDS[kind]
    assert [*maps.keys.pieces] == [*markers, *(f"{row},{column}" for row, column in np.ndindex(*shape))]
    read = Photo.open(Path(photo))
    opened: Any = find_model(ModelOptions(model=folder, device="cpu")).open([read])
    eager = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager")
    with torch.no_grad():
        expected = eager(**opened.encode(read)[0], output_attentions=True).attentions
    np.testing.assert_allclose(maps.weights, torch.cat(expected).numpy(), atol=2e-6)


def test_patches_that_are_moved_are_found(tmp_path: Path, photo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order in a model is its own; whoever reads it row by row is wrong here."""
    from transformers.models.vit.modeling_vit import ViTPatchEmbeddings

    forward = ViTPatchEmbeddings.forward
    order = torch.randperm(36, generator=torch.Generator().manual_seed(3))
    monkeypatch.setattr(ViTPatchEmbeddings, "forward", lambda *given, **named: forward(*given, **named)[:, order])
    maps = attnviz.attention(photo, model=make(tmp_path / "vit", "vit"), device="cpu")
    assert maps.keys.pieces[1:] == tuple("{},{}".format(*divmod(int(place), 6)) for place in order)


def test_a_command_says_where_heads_look_on_one_screen(tmp_path: Path, photo: str, run_here: RunHere) -> None:
    model, out = ("--model", make(tmp_path / "dinov3", "dinov3_vit")), ("--out", str(tmp_path / "out"))
    ran = worked(run_here("heatmap", photo, *model, "--format", "html,png", *out))
    assert "“[CLS]” looks at: " in ran.stdout
    assert len(ran.stdout.splitlines() + ran.stderr.splitlines()) <= 25
    written = {each.name for each in (tmp_path / "out").iterdir()}
    assert written == {"patches.png", "attention.html", "attention.safetensors"}
    Image.open(photo).resize((900, 100)).save(tmp_path / "wide.png")
    for refused, said in (
        ((photo, "what is this?", *model), "reads no words"),
        ((photo, "--model", "multi"), "is a picture or a sound"),
        ((str(tmp_path / "wide.png"), *model), "900 × 100 pixels. An image may be 8 times as long"),
        # Half of its patches are left out, at random: which are there is not known.
        ((photo, "--model", make(tmp_path / "mae", "vit_mae")), "positions change with the image, and no grid"),
        (("the cat", "sat", "--model", "multi"), "unexpected: sat"),
    ):
        ran = run_here("heatmap", *refused, *out)
        assert (ran.exit_code, said in ran.stderr) == (2, True), ran.stderr


def test_a_question_about_an_image_is_answered_and_drawn(tmp_path: Path, photo: str) -> None:
    tokenizer = pretrained.tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    config = transformers.LlavaConfig(
        vision_config=pretrained.configuration("clip_vision_model", **PATCHES),
        text_config=pretrained.configuration("llama", vocab_size=len(tokenizer), max_position_embeddings=99),
        image_token_id=len(tokenizer) - 1,
        vision_feature_layer=-1,
    )
    torch.manual_seed(1)
    transformers.LlavaForConditionalGeneration(config).save_pretrained(tmp_path / "llava")
    reading = transformers.CLIPImageProcessorPil(**CROPPED)
    strategy = {"vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
    transformers.LlavaProcessor(reading, tokenizer, patch_size=8, **strategy).save_pretrained(tmp_path / "llava")
    asked: dict[str, Any] = {"model": str(tmp_path / "llava"), "generate": 3, "device": "cpu"}
    maps = attnviz.attention(photo, question="the cat sat", **asked)
    at = maps.grid.find_places(len(maps.keys))  # type: ignore[union-attr]
    assert [maps.keys.pieces[place] for place in at] == [f"{row},{column}" for row, column in np.ndindex(6, 6)]
    assert {"the", "cat", "sat"} <= {piece.strip() for piece in maps.keys.pieces}
    assert not np.triu(maps.weights, 1).any()  # what was written looks back only
    assert [picture.name for picture in attnviz.show(maps).report.pictures] == ["patches", "words"]
    with pytest.raises(AttnvizError, match="answers questions about an image"):
        attnviz.attention(photo, **asked)


def test_dinov2_is_converted_from_its_package_and_looks_at_the_face() -> None:
    pretrained.packaged("dinov2")
    from matplotlib.cbook import get_sample_data

    maps = attnviz.attention(str(get_sample_data("grace_hopper.jpg", asfileobj=False)), model="dinov2", layer=8, head=4)
    look = maps.weights[0, 0, 0, 1:].reshape(28, 24)
    assert look[6:17, 8:17].sum() > 3 * 11 * 9 / (28 * 24)  # three times what it would get if each place got the same
