"""Models that read images: which position is which part is measured, on small random ones of many classes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import attnviz
from attnviz.errors import AttnvizError, TooLarge
from attnviz.images import Photo
from attnviz.models.loading import find_model
from attnviz.models.locating import Places, locate, measure_covers, read_states
from attnviz.models.protocols import EVERY
from attnviz.specs import ModelOptions, PretrainedOptions
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
    "dinov2_with_registers": ({"num_register_tokens": 1}, CROPPED, ["[CLS]", "[REGISTER]"], (6, 6)),
    "beit": ({}, SQUARE, ["[CLS]"], (6, 6)),
    "data2vec-vision": ({}, SQUARE, ["[CLS]"], (6, 6)),
    "dpt": ({"is_hybrid": False, "backbone_out_indices": [0]}, SQUARE, ["[CLS]"], (6, 6)),
    "siglip_vision_model": ({}, SQUARE, [], (6, 6)),
    "ijepa": ({}, SQUARE, [], (6, 6)),
    "clip_vision_model": ({}, CROPPED, ["[CLASS]"], (6, 6)),
}


def make(folder: Path, kind: str, **others: Any) -> str:
    """Save one of KINDS, or another as simple or with settings of its own, with random weights."""
    settings, reading, *_ = KINDS.get(kind, ({}, SQUARE))
    pretrained.built(kind, **PATCHES, **settings, **others).save_pretrained(folder)
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
    ready = transformers.CLIPImageProcessorPil.from_pretrained(folder)(Image.open(photo), return_tensors="pt")
    eager = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager")
    with torch.no_grad():
        expected = eager(**ready, output_attentions=True).attentions
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
    assert "Covering the 4 patches looked at most (mean of 8 heads) moves the output by " in " ".join(
        ran.stdout.split()
    )
    assert len(ran.stdout.splitlines() + ran.stderr.splitlines()) <= 25
    written = {each.name for each in (tmp_path / "out").iterdir()}
    assert written == {"patches.png", "attention.html", "attention.safetensors"}
    windows = make(tmp_path / "swin", "swin", depths=[1], num_heads=[2], window_size=3)
    Image.open(photo).resize((900, 100)).save(tmp_path / "wide.png")
    Image.open(photo).resize((1, 1)).save(tmp_path / "dot.png")
    assert "attnviz heatmap FILE draws where in an image it looks." in run_here("explain", photo, *model).stderr
    for refused, said in (
        ((photo, "what is this?", *model), "reads no words"),
        ((photo, photo, *model), f"Several images: --text-file {photo} --text-file {photo}."),
        ((photo, photo, "b.jpg", *model), "unexpected: b.jpg. Of several images each follows --text-file"),
        ((photo, *model, "--query", "9,0"), "no patch 9,0 among 6 × 6. Rows are 0 to 5, columns 0 to 5."),
        ((photo, *model, "--max-tokens", "5"), "--max-tokens is for texts"),
        ((photo, "--model", "multi"), "is a picture or a sound"),
        (
            (photo, *model, "--max-memory", "0.1"),
            "An image that is smaller, or less long and narrow, has fewer; --max-",
        ),
        ((str(tmp_path / "dot.png"), *model), "Enlarge the image to 64 × 64 pixels or more."),
        ((str(tmp_path / "wide.png"), *model), "900 × 100 pixels. An image may be 8 times as long"),
        # Half of its patches are left out, at random: which are there is not known.
        (
            (photo, "--model", make(tmp_path / "mae", "vit_mae")),
            "positions change with the image, and they are no grid",
        ),
        ((photo, "--model", windows), ".attention looks within each of 4 windows, which are"),
        (("the cat", "sat", "--model", "multi"), "unexpected: sat"),
    ):
        ran = run_here("heatmap", *refused, *out)
        assert (ran.exit_code, said in ran.stderr) == (2, True), ran.stderr


def test_of_an_image_that_is_cut_up_the_whole_is_found() -> None:
    """The whole comes last of three, and its positions behind the first two. A pixel may change one position only."""
    torch.manual_seed(0)
    tiles = torch.randn(3, 3, 24, 24, requires_grad=True)
    down = np.arange(24).reshape(1, 1, 24, 1) / 24
    shares = np.stack([np.broadcast_to(each, tiles.shape).copy() for each in (down, down.swapaxes(2, 3))])
    shares[:, :2] /= 2
    states = torch.nn.Conv2d(3, 5, 8, 8)(tiles).flatten(2).swapaxes(1, 2).flatten(0, 1)
    places = locate(states[[*range(2), *range(18, 27), *range(2, 18)]], tiles, shares, {})
    assert isinstance(places, Places)
    assert (places.n_rows, places.n_columns, places.at) == (3, 3, tuple(range(2, 11)))
    overlapping = torch.nn.Conv2d(3, 5, 8, 4)(tiles).flatten(2).swapaxes(1, 2).flatten(0, 1)
    assert "changes none of 75 positions alone" in str(locate(overlapping, tiles, shares, {}))


def test_room_for_gradients_is_checked_before_they_are_kept(tmp_path: Path, photo: str) -> None:
    """Each of three layers keeps its input of 100 × 64, in two bytes, for GELU: the weights lie there anyway."""
    layers = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(3)))
    states, told = torch.ones(100, 64, requires_grad=True), list[int]()
    model = torch.nn.Sequential(layers.requires_grad_(False), torch.nn.Identity())
    read_states(model, {"input": states}, model[1], [], told.append)
    assert told == [2 * 100 * 64 * n for n in (1, 2, 3)]
    folder = make(tmp_path / "vit", "vit")
    read = Photo.open(Path(photo))
    opened: Any = find_model(ModelOptions(model=folder, device="cpu")).open([read])
    _, n_tokens = opened.encode(read)
    needed = opened._work(n_tokens, n_tokens, EVERY).needed
    with pytest.raises(TooLarge, match=r"gradients, which tell where patches are, need .*\. An image that is smaller"):
        attnviz.attention(photo, model=folder, device="cpu", max_memory=needed / 2**30)


def test_a_package_that_reading_needs_is_named(tmp_path: Path, photo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ImportError("\nReader requires the Torchvision library but it was not found. Check out the page.")

    monkeypatch.setattr(transformers.AutoImageProcessor, "from_pretrained", fail)
    with pytest.raises(AttnvizError, match=r"requires the Torchvision library but it was not found\. Install that"):
        attnviz.attention(photo, model=make(tmp_path / "vit", "vit"), device="cpu")


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
    read = Photo.open(Path(photo), "the cat sat")
    reference = find_model(ModelOptions(model=asked["model"], device="cpu"), PretrainedOptions(generate=3))
    opened: Any = reference.open([read])
    test = opened.test_cover(read, np.ones((6, 6)), [len(maps.keys) - 3, len(maps.keys) - 1])
    assert (test.kind, len(test.elsewhere)) == ("words", 19)
    assert opened.test_cover(read, np.ones((6, 6)), [2]) is None  # a word of the question writes nothing
    assert not np.triu(maps.weights, 1).any()  # what was written looks back only
    assert [picture.name for picture in attnviz.show(maps).report.pictures] == ["words", "patches"]
    with pytest.raises(AttnvizError, match="answers questions about an image"):
        attnviz.attention(photo, **asked)


def test_what_is_covered_elsewhere_is_as_much_and_other() -> None:
    """Half of an image is what counts. The draws are as many patches, none of them looked at most, or barred."""
    seen = []

    def count(image: Image.Image) -> float:
        changed = np.asarray(image)[4::8, 4::8, 0] != 0  # a pixel of each patch
        seen.append(changed)
        return float(changed[:, :5].sum())

    pixels = np.zeros((80, 80, 3), dtype=np.uint8)
    pixels[::8] = 90
    look = np.where(np.arange(10) < 5, 1.0, 0.2) * np.ones((10, 1))
    look[9, 9] = -1
    look[3:6, 1:4] = 2
    number, (shown, *elsewhere) = measure_covers(count, Image.fromarray(pixels), (0.0, 0.0, 1.0, 1.0), look)
    assert shown == number == 10
    assert sum(elsewhere) < 7 * 19  # about half
    assert all(each.sum() == 10 and not (each & seen[0]).any() and not each[9, 9] for each in seen[1:])


def test_what_a_label_loses_is_its_logit_without_those_patches(tmp_path: Path, photo: str) -> None:
    torch.manual_seed(0)
    read = Photo.open(Path(photo))
    config = pretrained.configuration("vit", **PATCHES, num_labels=2)
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path / "vit")
    transformers.CLIPImageProcessorPil(**SQUARE).save_pretrained(tmp_path / "vit")
    opened: Any = find_model(ModelOptions(model=str(tmp_path / "vit"), device="cpu")).open([read])
    test = opened.test_cover(read, np.eye(6), [0])
    assert (test.kind, test.n_patches, len(test.elsewhere)) == ("label", 4, 19)
    with torch.no_grad():
        whole, covered = (opened.loaded.model(**opened.encode(each)[0]).logits[0] for each in (read, _cover(read)))
    best = int(whole.argmax())
    assert test.answer == f"LABEL_{best}"
    assert test.shown == pytest.approx(float((whole - covered)[best]), abs=1e-5)


def _cover(photo: Photo) -> Photo:
    """The same image without the first four patches on its diagonal, made by hand."""
    pixels = np.asarray(photo.image).copy()
    mean = pixels.mean(axis=(0, 1)).round()
    for n in range(4):
        pixels[15 * n : 15 * (n + 1), 20 * n : 20 * (n + 1)] = mean
    covered = Photo("covered")
    covered.image, covered.question, covered.sha256 = Image.fromarray(pixels), "", ""
    return covered


def test_dinov2_is_converted_from_its_package_and_looks_at_the_face() -> None:
    pretrained.packaged("dinov2")
    from matplotlib.cbook import get_sample_data

    maps = attnviz.attention(str(get_sample_data("grace_hopper.jpg", asfileobj=False)), model="dinov2", layer=8, head=4)
    look = maps.weights[0, 0, 0, 1:].reshape(28, 24)
    assert look[6:17, 8:17].sum() > 3 * 11 * 9 / (28 * 24)  # three times what it would get if each place got the same


def test_dinov2_gives_what_its_package_gives(photo: str) -> None:
    """Of the graph of the package up to the last norm of its backbone, as the reference of ONNX works it out."""
    reference = pretrained.packaged("dinov2")
    onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'attnviz[dinov2]'")
    from onnx.reference import ReferenceEvaluator
    from onnx.utils import Extractor

    graph, last = onnx.load(str(reference.source)), "/backbone/layernorm/Add_1_output_0"
    graph.graph.value_info.append(onnx.helper.make_tensor_value_info(last, onnx.TensorProto.FLOAT, None))
    backbone = ReferenceEvaluator(Extractor(graph).extract_model(["input_image"], [last]))
    pixels = np.random.default_rng(0).normal(size=(1, 3, 224, 224)).astype(np.float32)
    (expected,) = backbone.run(None, {"input_image": pixels})
    model = reference.open([Photo.open(Path(photo))]).loaded.model
    with torch.inference_mode():
        states = model(pixel_values=torch.tensor(pixels)).last_hidden_state.numpy()
    np.testing.assert_allclose(states, expected, rtol=2e-5, atol=2e-5)
