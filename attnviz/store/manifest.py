"""What a batch made, from what. No clock, no host, no absolute path: the same batch has the same manifest."""

from __future__ import annotations

from dataclasses import dataclass, field

NAME = "manifest.json"
PAGE = "index.html"  # of the whole batch
SCHEMA = 1

Numbers = dict[str, dict[str, list[list[float]]]]  # text, then measure, then [layer][head]


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
    numbers: Numbers
    warnings: tuple[str, ...]
    files: tuple[File, ...]
    error: str = ""  # why it failed; then there are no files and no numbers
    # By text, what `numbers` are of where that is not simply 0, 1, 2 and so on: layers as the model counts them.
    layers: dict[str, list[int]] = field(default_factory=dict)
    heads: dict[str, list[int | str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """A batch. `configs` are file names with the sha256 of their bytes."""

    configs: dict[str, str]
    versions: dict[str, str]
    jobs: tuple[Entry, ...] = ()
    schema: int = field(default=SCHEMA)
