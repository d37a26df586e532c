"""Where a model runs, from which random numbers on, and with which versions. Knows no model."""

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version

import torch

from attnviz.errors import InvalidDevice

# glibc's malloc.h: never return the top of the heap, grow it by so many bytes at a time, map no block on its own.
MALLOPT = {-1: 2**31 - 1, -2: 2**28, -4: 0}
MMAP_THRESHOLD = -3  # blocks from here on are mapped on their own


def pick(name: str) -> torch.device:
    """Return the device that `--device` names; `auto` takes the accelerator when there is one.

    Raises InvalidDevice with what this machine has.
    """
    here = available()
    if name == "auto":
        return torch.device(here[1] if len(here) > 1 else "cpu")
    wanted = f"{name}:0" if f"{name}:0" in here else name
    if wanted not in here:
        raise InvalidDevice(f"no device {name!r} on this machine", hint=f"There is {', '.join(['auto', *here])}.")
    return torch.device(wanted)


def available() -> list[str]:
    """Return the devices of this machine, the processor first."""
    if not torch.accelerator.is_available():
        return ["cpu"]
    kind = torch.accelerator.current_accelerator()  # cuda, mps, xpu, hpu, npu
    return ["cpu", *(f"{kind}:{number}" for number in range(torch.accelerator.device_count()))]


def describe_device(device: torch.device) -> str:
    """Return what the last bits of a result depend on: another number of threads adds in another order."""
    if device.type == "cuda":
        return f"{device}, {torch.cuda.get_device_name(device)}"
    if device.type != "cpu":
        return str(device)
    threads = torch.get_num_threads()
    return f"cpu, {threads} thread{'' if threads == 1 else 's'}"


def use_one_thread() -> None:
    """Add in one order from now on: another number of threads would give other bits."""
    torch.set_num_threads(1)


@contextmanager
def enough_memory() -> Iterator[None]:
    """Raise MemoryError where torch, on a processor, raises a RuntimeError that only its words tell from others."""
    try:
        yield
    except RuntimeError as error:
        if any(words in str(error) for words in ("can't allocate memory", "not enough memory", "out of memory")):
            raise MemoryError(str(error)) from error
        raise


def keep_freed_memory() -> None:
    """Let glibc hand freed blocks out again instead of returning them, for as long as the process lives.

    Training allocates the same few sizes in every step; to have the kernel clear the pages anew took half of the time.
    Other libraries stay as they are.
    """
    _mallopt(MALLOPT)


def return_freed_memory() -> None:
    """Let glibc give blocks of 2 MiB and more back at once: of ever other sizes, it would keep ever more of them.

    That takes a fifth more time where batches differ in size, and bounds what a long run holds.
    """
    _mallopt({MMAP_THRESHOLD: 2**21})


def return_gaps() -> None:
    """Let glibc give back the free pages between blocks that are in use.

    Where a survey keeps a little of each text, what it keeps lies between the large blocks that are freed; in one run
    of four the next ones found no gap that was large enough, and a process of 480 MB took 730.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _mallopt(values: Mapping[int, int]) -> None:
    with suppress(OSError, AttributeError):  # no C library of this process, or one without mallopt
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in values.items():
            mallopt(parameter, value)


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Draw torch's random numbers from `seed` on, the caller's own untouched, on a GPU if one is given.

    Only then other generators are seeded than the processor's: torch keeps a trace of the stack for each kind of device
    that has not begun, which takes longer than a step of a small model.
    """
    generators = torch.default_generator if device is None or device.type == "cpu" else torch.random
    with torch.random.fork_rng(devices=[device] if device is not None and device.type == "cuda" else []):
        generators.manual_seed(seed)
        yield


@cache
def versions(*packages: str) -> tuple[tuple[str, str], ...]:
    """Find the versions of attnviz, numpy, torch and `packages`. That takes longer than to attend over a short text."""
    return tuple((package, version(package)) for package in sorted({"attnviz", "numpy", "torch", *packages}))
