"""Where a model runs."""

from __future__ import annotations

import torch

from attnviz.errors import BadDevice


def pick(name: str) -> torch.device:
    """The device that `--device` names; `auto` takes the accelerator when there is one.

    Raises BadDevice with what this machine has.
    """
    here = available()
    if name == "auto":
        return torch.device(here[1] if len(here) > 1 else "cpu")
    wanted = "cuda:0" if name == "cuda" else name
    if wanted not in here:
        raise BadDevice(f"no device {name!r} on this machine", hint=f"There is {', '.join(['auto', *here])}.")
    return torch.device(wanted)


def available() -> list[str]:
    """The devices of this machine, the processor first."""
    accelerators = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    if torch.backends.mps.is_available():
        accelerators.append("mps")
    return ["cpu", *accelerators]
