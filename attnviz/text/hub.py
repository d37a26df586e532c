"""Data sets from the hub, or from the cache of an earlier download. Must not know local files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from huggingface_hub import constants

from attnviz.errors import InvalidSource
from attnviz.store.hub import explain_offline
from attnviz.text.files import summarize_error
from attnviz.text.saved import as_source
from attnviz.text.source import Source, Wanted


def open_imdb(wanted: Wanted) -> Source:
    """Open IMDb from the hub or its cache. Raises InvalidSource."""
    return open_hub("stanfordnlp/imdb", wanted, "imdb")


def open_hub(repository: str, wanted: Wanted, name: str = "") -> Source:
    """Open a data set from the hub or its cache.

    Raises InvalidSource where neither has a readable data set of this name.
    """
    name = name or repository
    offline = explain_offline("HF_DATASETS_OFFLINE")
    if not offline:
        return as_source(_load(name, repository), wanted, name)
    if not _is_cached(repository):
        here = f" (the folder here is --dataset ./{name})" if Path(name).is_dir() else ""
        raise InvalidSource(
            f"data set {name!r} is not on this machine, and {offline}",
            hint=f"Use a local copy with --dataset PATH{here}, or the packaged --dataset sample.",
        )
    import datasets  # takes a second, and only after the hub or the cache was found

    hubs = (constants, datasets.config)  # both libraries read it before each request
    with mock.patch.object(hubs[0], "HF_HUB_OFFLINE", True), mock.patch.object(hubs[1], "HF_HUB_OFFLINE", True):
        loaded = _load(name, repository)
    return as_source(loaded, wanted, name, (f"{name}: {offline}, so the copy in the cache is used",))


def _load(name: str, repository: str) -> Any:
    import datasets  # see above

    datasets.utils.logging.set_verbosity_error()  # its warnings, such as that of a cached copy, are notices here
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        return datasets.load_dataset(repository)
    except Exception as error:  # the library passes on every error, from pyarrow's to the network's
        reason = error
        while type(error).__name__ == "DatasetGenerationError" and isinstance(reason.__cause__, Exception):
            reason = reason.__cause__  # the outer message says only that something failed
        raise InvalidSource(
            f"data set {name!r} cannot be loaded: {summarize_error(reason)}",
            hint="Use a local copy with --dataset PATH, or the packaged --dataset sample.",
        ) from error


def _is_cached(repository: str) -> bool:
    """Return whether the cache of `datasets` seems to hold it: names are compared loosely, and the library decides."""
    cache = Path(os.environ.get("HF_DATASETS_CACHE") or Path(constants.HF_HOME) / "datasets").expanduser()
    wanted = _normalize(repository.replace("/", "___"))
    try:
        return any(_normalize(folder.name) == wanted for folder in cache.iterdir() if any(folder.glob("*/*/*")))
    except OSError:
        return False


def _normalize(name: str) -> str:
    return name.replace("_", "").lower()
