"""Made-up records and reports that tests share: small, and with numbers that a reader can check by hand."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pytest

from attnviz.models.loading import find_model
from attnviz.records import AttentionMaps, Facts, Provenance, Setting, Tokens
from attnviz.report import Chart, FigureStyle, Heatmap, HeatmapGrid, Report, Table
from attnviz.specs import FigureOptions, ModelOptions, StorageKind, VocabularyOptions
from attnviz.views.heatmap import make_report

if TYPE_CHECKING:
    from attnviz.models.encoder_model import EncoderModel

Value = TypeVar("Value")
FILM = ("the", "plot", "was", "thin", ",", "yet", "i", "loved", "every", "minute", "of", "this", "film", ".")


def known(value: Value | None) -> Value:
    """What has to be there, for a test that goes on with it."""
    assert value is not None
    return value


def columns_by(chart: Chart, key: str, *names: str) -> dict[Any, list[tuple[Any, ...]]]:
    """The values of each of `names` in the rows of each value of another column, in the order of the rows."""
    found: dict[Any, list[list[Any]]] = {}
    for value, *others in zip(*map(chart.column, (key, *names)), strict=True):
        found.setdefault(value, []).append(others)
    return {value: [tuple(column) for column in zip(*rows, strict=True)] for value, rows in found.items()}


HOSTILE = (
    *("[/]", "[red]", "[unk]", ":smile:", "$$", r"$\frac$", "</script>"),  # markup
    *("\x1b[31mred", "\x07\x00\x7f\x85\x9b", "\u202eevil\u2066", "a\u200bb\ufeff"),  # what is obeyed and not seen
    *("\n", "\t", " ", "", "\ud800", "\u2028\u2029"),
    *(
        "猫坐在",
        "고양이",
        "👨\u200d👩\u200d👧\u200d👦",
        "e\u0301",
        "Z" + "\u0351\u036b" * 50,
        "سلام",
        "\ue000\U0010ffff",
    ),
    "x" * 5000,
)


def tokens(*pieces: str, special: Sequence[str] = (), unknown: Sequence[str] = (), gap: int = 1) -> Tokens:
    """The pieces in a row, with one space between them, or none; those named in `special` cover no characters."""
    offsets, at = [], 0
    for piece in pieces:
        end = at if piece in special else at + len(piece)
        offsets.append((at, end))
        at = end + (0 if piece in special else gap)
    return Tokens(
        pieces,
        tuple(offsets),
        tuple(piece in special for piece in pieces),
        tuple(piece in unknown for piece in pieces),
    )


def provenance(
    *,
    model: str = "multi:2",
    revision: str = "random, seed 0",
    trained: bool = False,
    text_name: str = "sample train[0]",
    settings: tuple[tuple[str, Setting], ...] = (),
    facts: Facts | None = None,
) -> Provenance:
    return Provenance(
        model=model,
        revision=revision,
        trained=trained,
        text_sha256="5e" * 32,
        text_name=text_name,
        settings=settings,
        versions=(("attnviz", "0.1.0"),),
        facts=facts or Facts(),
    )


def softmax(scores: np.ndarray, attendable: np.ndarray) -> np.ndarray:
    """Weights over the keys that may be attended to."""
    allowed = np.where(attendable, scores, -np.inf)
    weights = np.exp(allowed - allowed.max(axis=-1, keepdims=True))
    shares: np.ndarray = weights / weights.sum(axis=-1, keepdims=True)
    return shares.astype(np.float32)


def record(
    weights: np.ndarray,
    queries: Tokens | None = None,
    keys: Tokens | None = None,
    *,
    attendable: np.ndarray | None = None,
    made_by: Provenance | None = None,
    sink: np.ndarray | None = None,
) -> AttentionMaps:
    """Self-attention unless `keys` are given; every key attendable unless said otherwise."""
    n_queries, n_keys = weights.shape[2:]
    queries = queries or tokens(*(f"t{position}" for position in range(n_queries)))
    return AttentionMaps(
        weights=weights.astype(np.float32),
        queries=queries,
        keys=keys or queries,
        attendable=np.ones((n_queries, n_keys), dtype=bool) if attendable is None else attendable,
        provenance=made_by or provenance(),
        sink=None if sink is None else sink.astype(np.float32),
    )


def random_maps(
    pieces: Sequence[str] = FILM,
    *,
    n_layers: int = 1,
    n_heads: int = 2,
    seed: int = 0,
    sharpness: float = 2.0,
    causal: bool = False,
    padding: int = 0,
    made_by: Provenance | None = None,
) -> AttentionMaps:
    """Self-attention with random weights; `padding` tokens that nothing attends to stand behind the pieces."""
    n = len(pieces) + padding
    attendable = np.tile(np.arange(n) < len(pieces), (n, 1))
    if causal:
        attendable &= np.tri(n, dtype=bool)
    scores = sharpness * np.random.default_rng(seed).normal(size=(n_layers, n_heads, n, n))
    marked = tokens(*pieces, *["[PAD]"] * padding, special=("[PAD]",) if padding else ())
    return record(softmax(scores, attendable), marked, attendable=attendable, made_by=made_by)


def windowed_maps(n: int = 6, window: int = 2, *, seed: int = 0) -> AttentionMaps:
    """Two layers of two heads: the first looks back as far as it can, the second at its `window` last tokens only."""
    causal = np.tri(n, dtype=bool)
    attendable = np.stack([causal, causal & ~np.tri(n, k=-window, dtype=bool)])
    scores = np.random.default_rng(seed).normal(size=(2, 2, n, n))
    return record(softmax(scores, attendable[:, None]), attendable=attendable)


def sink_maps(n: int = 4, *, share: float = 0.25) -> AttentionMaps:
    """Two heads: of the first, `share` of every query's attention goes to the sink, of the second nothing."""
    sink = np.zeros((1, 2, n))
    sink[:, 0] = share
    return record(random_maps(["the"] * n).weights * (1 - sink[..., None]), sink=sink)


def uniform_maps(n: int = 4, *, n_heads: int = 1) -> AttentionMaps:
    return record(np.full((1, n_heads, n, n), 1 / n))


def cross_maps(n_queries: int = 3, n_keys: int = 5, *, seed: int = 0) -> AttentionMaps:
    """Attention from one text to another."""
    scores = np.random.default_rng(seed).normal(size=(1, 2, n_queries, n_keys))
    queries = tokens(*(f"q{position}" for position in range(n_queries)))
    keys = tokens(*(f"k{position}" for position in range(n_keys)))
    return record(softmax(scores, np.ones((n_queries, n_keys), dtype=bool)), queries, keys)


def report(maps: AttentionMaps | None = None, spec: FigureOptions | None = None) -> Report:
    """All heads of a record with all measures."""
    return make_report(maps or random_maps(), spec or FigureOptions())


def load_encoder(spec: ModelOptions, texts: Iterable[str] = ()) -> EncoderModel:
    """A model of ours; `texts` make the vocabulary of one that brings none."""
    from attnviz.models.encoder_model import EncoderModel

    reference = find_model(spec)
    reference.check()
    model = reference.open(texts)
    assert isinstance(model, EncoderModel)
    return model


def save_classifier(
    folder: Path,
    text: str,
    *,
    n_heads: int = 4,
    n_layers: int = 2,
    std: float = 0,
    storage: StorageKind = "float32",
    classifier: Mapping[str, Any] | None = None,
    **sizes: Any,
) -> Path:
    """A folder like one that was trained, with random weights; with a deviation, also of biases and layer norms."""
    import torch

    from attnviz.models.checkpoint import Checkpoint, Classifier, ClassifierConfig, save_checkpoint
    from attnviz.models.encoder import EncoderConfig
    from attnviz.models.tokenizer import train

    settings = classifier or {}
    vocabulary = train([text], VocabularyOptions(min_frequency=1), classify=settings.get("pool") == "cls")
    with torch.random.fork_rng():
        torch.manual_seed(7)
        made = Classifier(
            ClassifierConfig(EncoderConfig(len(vocabulary), 16, n_heads, n_layers, 32, **sizes), **settings)
        )
        for parameter in made.parameters() if std else ():
            torch.nn.init.normal_(parameter, std=std)
    save_checkpoint(folder, Checkpoint(made, vocabulary, max_tokens=64, keep="head-tail"), storage)
    return folder


def draw_nothing(patch: pytest.MonkeyPatch) -> None:
    """Have pictures planned and not drawn, which takes most of the time of a small run: a file says what it would show.

    What pictures look like, and that the same is drawn twice alike, is tested where they are drawn.
    """
    from attnviz.renderers.figure import files

    def describe(planned: files.Planned, report: Report, look: FigureStyle, kind: files.Kind) -> bytes:
        return f"attnviz would draw {planned.name} as {kind}: {report.title}, {report.facts}".encode()

    patch.setattr(files, "_content", describe)


def content(folder: Path) -> dict[str, bytes]:
    """Its files, by path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def table(report: Report, name: str) -> Table:
    """The one of that name."""
    (found,) = (table for table in report.tables if table.name == name)
    return found


def heatmaps(report: Report) -> list[Heatmap]:
    """The maps that are pictures of their own."""
    return [block for block in report.blocks if isinstance(block, Heatmap)]


def overview(report: Report) -> HeatmapGrid:
    """The one picture of several maps."""
    (found,) = (block for block in report.blocks if isinstance(block, HeatmapGrid))
    return found


def with_notes(report: Report, notes: Mapping[int, str]) -> Report:
    """Some maps of the overview, by their place, have a note."""
    grid = overview(report)
    noted = {at: replace(grid.maps[at], note=note) for at, note in notes.items()}
    maps = tuple(noted.get(at, each) for at, each in enumerate(grid.maps))
    return replace(report, blocks=tuple(replace(grid, maps=maps) if each is grid else each for each in report.blocks))


def notes(report: Report) -> str:
    """What a report notes, line by line."""
    return "\n".join(note.text for note in report.notes)


class Bomb:
    """Unpickling this would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., None], tuple[Path]]:
        return Path.touch, (self.path,)


TRACE = "code-was-run"  # a file that a bomb leaves beside the one that it lies in


def page_content(page: Path | bytes) -> Any:
    """What a page, or the file of one, holds for its script."""
    return json.loads(unpack_page(page)["content"])


def unpack_page(page: Path | bytes) -> dict[str, str]:
    """The style, the content and the script of a page, or of the file of one."""
    page = page if isinstance(page, bytes) else page.read_bytes()
    packed = page.split(b'id="packed">')[1].split(b"</script>")[0]
    elements = json.loads(zlib.decompress(base64.b64decode(packed)))
    return {attributes.get("id", tag): text for tag, attributes, text in elements}


def half(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def pickled(file: Path) -> None:
    file.write_bytes(pickle.dumps(Bomb(file.with_name(TRACE))))


# What may have become of a file that was good.
DAMAGES: dict[str, Callable[[Path], object]] = {
    "half": half,
    "a folder": a_folder,
    "pickle": pickled,
    "empty": lambda file: file.write_bytes(b""),
    "no text": lambda file: file.write_bytes(b"\xff\xfe\x1b[31m" + bytes(64)),
    "nested": lambda file: file.write_bytes(b"[" * 100_000),
    "a list": lambda file: file.write_bytes(b"[]"),
}
