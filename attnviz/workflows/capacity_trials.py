"""Which networks `attnviz capacity` is about, those that ship measured, and how others are trained: resumable."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

from attnviz import store
from attnviz.capacity import LAYERS, LENGTHS, MAX_ITEMS, Outcome, Plan, Trial
from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.inputs import MAX_JSON, is_file, read_bytes, strict_json
from attnviz.models.sizes import head_size
from attnviz.specs.capacity import CapacitySpec
from attnviz.specs.cluster import ClusterOptions
from attnviz.workflows import Progress
from attnviz.workflows.executors import open_executor, result_of, telling_deaths
from attnviz.workflows.metrics import from_json

SCHEMA = 1
SHIPPED = Path(__file__).parents[1] / "data" / "capacity.json"
TRIALS = "trials"  # the folder in --out that keeps each network's numbers and weights
WIDER, LONGER = (2, 3, 4), (4,)  # times the width and the steps that a single head is given besides
MIN_ITEMS = 4  # fewer are trained as long: some seeds begin with one item for long
MAX_LENGTH, MAX_SEEDS, MAX_STEPS = 512, 100, 1_000_000


def plan(spec: CapacitySpec) -> Plan:
    """The grid, then what it is held against: a single head with more width or steps, and other layers on one item.

    Raises InvalidOption for a number that cannot be.
    """
    heads, items = _numbers("--heads", spec.heads), _numbers("--items", spec.items)
    for n_heads in heads:
        head_size(spec.d_model, n_heads)
    limits = {"length": (1, MAX_LENGTH), "seeds": (1, MAX_SEEDS), "steps": (1, MAX_STEPS)}
    for name, (least, most) in limits.items():
        if not least <= getattr(spec, name) <= most:
            raise InvalidOption(f"--{name} {getattr(spec, name)} is out of range", hint=f"It is {least} to {most:,}.")
    if max(items) > min(spec.length, MAX_ITEMS):
        raise InvalidOption(
            f"--items {max(items)} is more than can be recalled",
            hint=f"At most --length {spec.length}, and {MAX_ITEMS}.",
        )
    grid = [
        Trial("attention", n_heads, n_items, spec.d_model, spec.length, spec.steps * max(n_items, MIN_ITEMS), 0)
        for n_items in items
        for n_heads in heads
    ]
    hardest = next(trial for trial in grid if (trial.heads, trial.items) == (min(heads), max(items)))
    wider = [replace(hardest, d_model=int(times * spec.d_model) // hardest.heads * hardest.heads) for times in WIDER]
    longer = [replace(hardest, steps=times * hardest.steps) for times in LONGER]
    one_item = replace(hardest, items=1, steps=2 * spec.steps)
    layers = [
        replace(one_item, layer=layer, length=length, heads=max(heads) if layer == LAYERS[0] else 1)
        for layer in LAYERS
        for length in LENGTHS
    ]
    return Plan(tuple(grid), tuple(wider), tuple(longer), tuple(layers), spec.seeds)


def _numbers(option: str, written: str) -> tuple[int, ...]:
    parts = [part.strip() for part in written.split(",")]
    if not all(part.isdecimal() and part.isascii() and 1 <= int(part[:9]) <= 10**6 for part in parts):
        raise InvalidOption(f"{option} {written[:40]!r} are no numbers", hint="Write them as in 1,2,4,8.")
    return tuple(sorted({int(part) for part in parts}))


def shipped() -> dict[Trial, Outcome]:
    """What came with attnviz."""
    return {outcome.trial: outcome for outcome in _outcomes(SHIPPED)}


def outcomes_bytes(outcomes: Sequence[Outcome]) -> bytes:
    """Outcomes as a JSON file, one to a line."""
    lines = ",\n".join(json.dumps(asdict(outcome), allow_nan=False) for outcome in outcomes)
    return f'{{"made by": "attnviz capacity", "schema": {SCHEMA}, "outcomes": [\n{lines}\n]}}\n'.encode()


def _outcomes(file: Path) -> tuple[Outcome, ...]:
    """Raises InvalidRecord for a file that is not one of `outcomes_bytes`."""
    try:
        found = strict_json(read_bytes(file, MAX_JSON, InvalidRecord))
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise ValueError(f"schema {SCHEMA} expected")
        outcomes: tuple[Outcome, ...] = from_json(tuple[Outcome, ...], found.get("outcomes"), "outcomes")
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"{file} holds no outcomes: {error}") from error
    return outcomes


def trained(
    trials: Sequence[Trial], folder: Path, cluster: ClusterOptions, n_workers: int
) -> Generator[Progress, None, dict[Trial, Outcome]]:
    """Train what `folder` does not hold yet. Raises ExecutionError where processes die, OutputError."""
    outcomes = dict(_kept(trials, folder))
    kept = (f"{folder} keeps each network that is done: the same command goes on with the rest",)
    yield Progress(len(outcomes), len(trials), "networks", notices=kept)
    # What takes longest comes first, so that all processes end together.
    waiting = [trial for trial in trials if trial not in outcomes]
    waiting.sort(key=lambda trial: trial.steps * trial.length * trial.d_model, reverse=True)
    n_workers = max(1, min(n_workers, len(waiting)))
    with (
        telling_deaths("network", hint="The same command goes on with the rest."),
        open_executor(n_workers, inline=True, cluster=cluster) as (executor, n_tasks),
    ):
        for outcome, weights in _each(executor, n_tasks, waiting):
            slug = outcome.trial.slug
            store.write(folder / f"{slug}.safetensors", weights)
            store.write(folder / f"{slug}.json", outcomes_bytes([outcome]))
            outcomes[outcome.trial] = outcome
            yield Progress(len(outcomes), len(trials), "networks", slug)
    return {trial: outcomes[trial] for trial in trials}


def _each(executor: Executor, n_tasks: int, trials: Iterable[Trial]) -> Generator[tuple[Outcome, bytes]]:
    """As they are done, so that each is kept at once."""
    remaining, pending = iter(trials), set[Future[tuple[Outcome, bytes]]]()
    while True:
        pending |= {executor.submit(_train, trial) for trial in islice(remaining, n_tasks - len(pending))}
        if not pending:
            return
        ended, pending = wait(pending, return_when=FIRST_COMPLETED)
        yield from map(result_of, ended)


def _kept(trials: Sequence[Trial], folder: Path) -> Iterator[tuple[Trial, Outcome]]:
    for trial in trials:
        file = folder / f"{trial.slug}.json"
        if is_file(file) and is_file(file.with_suffix(".safetensors")):
            with suppress(InvalidRecord):  # what cannot be read is trained again
                for outcome in _outcomes(file):
                    if outcome.trial == trial:
                        yield trial, outcome


def _train(trial: Trial) -> tuple[Outcome, bytes]:
    from attnviz.models.recall_trial import run_trial

    return run_trial(trial)
