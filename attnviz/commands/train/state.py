"""Where a training run stands at the end of an epoch, as a file of tensors and JSON that `--resume` goes on from."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from attnviz.bounded import read_bytes
from attnviz.commands.train.training import DIVERGED
from attnviz.display import shorten_name
from attnviz.errors import ExecutionError, InvalidModel
from attnviz.store.tensors import read_header

MAX_BYTES = 2**34
MAX_REASON_LENGTH = 200  # characters: torch lists every tensor that does not fit, and the hint is to be seen
HINT = "Choose another --out to start from the beginning."


def state_bytes(about: Mapping[str, Any], tensors: dict[str, Tensor], run: Mapping[str, Any]) -> bytes:
    """Return a file of the state; `run` says of which run. Raises ExecutionError where a number is not finite."""
    try:
        if not all(tensor.isfinite().all() for tensor in tensors.values()):
            raise ValueError("weights are not finite")
        told = json.dumps({"run": dict(run), **about}, allow_nan=False)
    except ValueError as error:  # also from JSON, which has no NaN
        what = f"after step {about['done'] + about['pretrained']:,} weights or losses are not finite"
        raise ExecutionError(f"training diverged: {what}", hint=DIVERGED) from error
    return save(tensors, {"state": told, "sha256": _sha256(tensors, told)})


def load_state(file: Path) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Any]]:
    """Read what `state_bytes` was given. Raises InvalidModel for anything else or a changed bit."""
    with name_file_in_errors(file):
        meta, tensors = read_header(file, InvalidModel, HINT).metadata, load(read_bytes(file, MAX_BYTES, InvalidModel))
        if meta["sha256"] != _sha256(tensors, meta["state"]):
            raise ValueError("its contents do not match its checksum")
        about = json.loads(meta["state"])
        run = about.pop("run")
        return about, tensors, run


@contextmanager
def name_file_in_errors(file: Path) -> Iterator[None]:
    """Raise InvalidModel, which names the file, for whatever its contents bring about: it is of another model."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        reason = shorten_name(" ".join(str(error).split()), MAX_REASON_LENGTH)
        raise InvalidModel(f"{file} is not a state of this training run: {reason}", hint=HINT) from error


def _sha256(tensors: dict[str, Tensor], told: str) -> str:
    """Hash the file as it is without this hash: of one entry beside the tensors its bytes are always the same."""
    return hashlib.sha256(save(tensors, {"state": told})).hexdigest()
