"""What a batch made, from what. No clock, no host, no absolute path: the same batch has the same manifest."""

from dataclasses import dataclass, field

NAME = "manifest.json"
PAGE = "index.html"  # of the whole batch
SCHEMA = 2


@dataclass(frozen=True)
class TextNumbers:
    """Numbers of one text, a table by columns: those of each measure, and beside them the places that they are of."""

    text: str
    values: dict[str, list[float]]  # by measure
    layer: list[int] = field(default_factory=list)  # as the model counts them; of no layers empty
    head: list[int | str | None] = field(default_factory=list)  # or "mean"; None: of all heads of the layer
    of: list[str] = field(default_factory=list)  # what else they are of: models, labels


@dataclass(frozen=True)
class File:
    """One file that was written, by its path within the manifest's folder, with forward slashes."""

    path: str
    sha256: str
    size: int  # bytes


@dataclass(frozen=True)
class Entry:
    """One job. What it was made from is in `fingerprint`: settings, versions, texts and weights, as one sha256."""

    name: str
    command: str
    settings: dict[str, object]
    fingerprint: str
    inputs: dict[str, str]  # sha256 of the texts ("texts") and of each model's weights ("weights of multi:8")
    numbers: tuple[TextNumbers, ...]
    warnings: tuple[str, ...]
    files: tuple[File, ...]
    error: str = ""  # why it failed; then there are no files and no numbers
    said: str = ""  # what its one report says first


@dataclass(frozen=True)
class Manifest:
    """A batch. `configs` are file names with the sha256 of their bytes."""

    configs: dict[str, str]
    versions: dict[str, str]
    jobs: tuple[Entry, ...] = ()
    schema: int = field(default=SCHEMA)
