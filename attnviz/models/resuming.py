"""A training run as one file, to be taken up again where it stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open

from attnviz.errors import InvalidModel
from attnviz.inputs import header_of, in_bytes
from attnviz.models.training import Training

KEY = "attnviz"  # one, because safetensors writes several in any order
MAX_COPIES = 8  # of the parameters: a state holds the best too, and two averages of each
MAX_REASON_LENGTH = 200  # characters, so that the hint behind it is not cut off where errors are shown


def state_bytes(training: Training, identity: Mapping[str, Any]) -> bytes:
    """All that goes on from here; `identity` says which run it is."""
    tensors, rest = training.state()
    return bytes(safetensors.torch.save(tensors, {KEY: json.dumps({"identity": dict(identity), "rest": rest})}))


def state_identity(file: Path) -> dict[str, Any]:
    """Which run a file is of. Raises InvalidModel for a file that `state_bytes` did not make."""
    try:
        with safe_open(file, "pt") as opened:
            return dict(json.loads((opened.metadata() or {})[KEY])["identity"])
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise _damaged(file, error) from error


def resume(training: Training, file: Path) -> None:
    """Go on from a file that was made by the same run. Raises InvalidModel where it is damaged, before it is read."""
    room = MAX_COPIES * sum(tensor.nbytes for tensor in training.state()[0].values()) + 2**20
    try:
        with file.open("rb") as header:
            if header_of(header, file.stat().st_size).n_bytes > room:
                raise ValueError(f"it holds more than this run can ({in_bytes(room)})")
        with safe_open(file, "pt") as opened:
            rest = json.loads(opened.metadata()[KEY])["rest"]
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  # not a mapping
        training.restore(tensors, rest)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError, RecursionError) as error:
        raise _damaged(file, error) from error


def _damaged(file: Path, error: Exception) -> InvalidModel:
    reason = " ".join(str(error).split())
    if len(reason) > MAX_REASON_LENGTH:
        reason = reason[: MAX_REASON_LENGTH - 1] + "…"
    return InvalidModel(
        f"{file} is no training run to go on with: {reason}", hint="Choose another --out to start from the beginning."
    )
