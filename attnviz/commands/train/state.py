"""Where a training run stands at the end of an epoch, as a file of arrays and JSON that `--resume` goes on from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from attnviz import store
from attnviz.bounded import decode_json
from attnviz.commands.train.training import DIVERGED, TrainingState
from attnviz.display import shorten_name
from attnviz.errors import ExecutionError, InvalidModel, InvalidRecord
from attnviz.records.training_metrics import History

MAX_BYTES = 2**34
MAX_REASON_LENGTH = 200  # characters: torch lists every tensor that does not fit, and the hint is to be seen


def state_bytes(state: TrainingState, run: Mapping[str, Any]) -> bytes:
    """Return a file of the state; `run` says of which run. Raises ExecutionError where a number is not finite."""
    about = {"run": dict(run), "done": state.done, "pretrained": state.pretrained, "history": asdict(state.history)}
    try:
        if not all(np.isfinite(array).all() for array in state.arrays.values()):
            raise ValueError("weights are not finite")
        told = json.dumps(about, allow_nan=False)  # as text: the store would sort names that metrics keep in order
        return store.encode_arrays(state.arrays, {"state": told, "sha256": _sha256(state.arrays, told)})
    except ValueError as error:  # also from JSON, which has no NaN
        what = f"after step {state.done + state.pretrained:,} weights or losses are not finite"
        raise ExecutionError(f"training diverged: {what}", hint=DIVERGED) from error


def load_state(file: Path) -> tuple[TrainingState, dict[str, Any]]:
    """Read what `state_bytes` gave, and of which run it is. Raises InvalidModel for anything else or a changed bit."""
    with name_file_in_errors(file):
        arrays, meta = store.read_arrays(file, MAX_BYTES, "a training run")
        if meta["sha256"] != _sha256(arrays, meta["state"]):
            raise ValueError("its contents do not match its checksum")
        about = json.loads(meta["state"])
        history = decode_json(History, about["history"], "history")
        return TrainingState(about["done"], about["pretrained"], history, arrays), about["run"]


@contextmanager
def name_file_in_errors(file: Path) -> Iterator[None]:
    """Raise InvalidModel, which names the file, for whatever its contents bring about: it is of another model."""
    hint = "Choose another --out to start from the beginning."
    try:
        yield
    except InvalidRecord as error:
        raise InvalidModel(error.problem, hint=hint) from error
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        reason = shorten_name(" ".join(str(error).split()), MAX_REASON_LENGTH)
        raise InvalidModel(f"{file} is not a state of this training run: {reason}", hint=hint) from error


def _sha256(arrays: Mapping[str, np.ndarray], told: str) -> str:
    digest = hashlib.sha256(told.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()
