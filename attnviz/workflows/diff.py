"""`attnviz diff`: what changed between two records of one text, or between two batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

import numpy as np

from attnviz import store
from attnviz.differences import JSD, TOP_KEY, BatchChanges, Change, HeadChange, Thresholds, beyond, head_beyond
from attnviz.errors import BadOption, BadSource
from attnviz.manifest import NAME, Manifest, Numbers
from attnviz.measures import ALL, MEASURES
from attnviz.measures.changes import changes
from attnviz.measures.measured import chosen, measured
from attnviz.records import AttentionMaps
from attnviz.registry import suggestion
from attnviz.report import Report
from attnviz.specs.batch import DiffSpec
from attnviz.views.diff import batches_report, records_report
from attnviz.workflows.check_numbers import pairs, shape

DEFAULT = "entropy"


@dataclass(frozen=True, eq=False)
class Diffed:
    """What changed, and what of it is beyond a threshold, as a sentence; "" where nothing is."""

    report: Report
    beyond: str


def diff(spec: DiffSpec) -> Diffed:
    """Raises BadOption for a threshold or a measure that is none, BadRecord for records of different tokens."""
    if spec.top_k < 1:
        raise BadOption(f"--top-k {spec.top_k} is too small", hint="It is at least 1.")
    before, after = (_file(Path(path)) for path in (spec.before, spec.after))
    if _is_manifest(before) != _is_manifest(after):
        raise BadOption(f"{before} and {after} are not of one kind", hint="Give two records or two manifests.")
    if _is_manifest(before):
        from attnviz.configs.manifests import from_file

        return _batches(spec, from_file(before), from_file(after))
    return _records(spec, store.load(before), store.load(after))


def _file(path: Path) -> Path:
    """A file as it is; of a folder its manifest, else its record."""
    if not path.is_dir():
        return path
    for name in (NAME, store.RECORD):
        if (path / name).is_file():
            return path / name
    raise BadSource(f"{path} holds no {NAME} and no {store.RECORD}", hint="Name a file, or another folder.")


def _is_manifest(path: Path) -> bool:
    return path.suffix == ".json"


def _records(spec: DiffSpec, before: AttentionMaps, after: AttentionMaps) -> Diffed:
    known = [measure.name for measure in MEASURES if measure.level == "head"]
    thresholds = _thresholds(spec.threshold, [JSD, TOP_KEY, *known])
    for measure in chosen(spec.measure):
        if measure.level == "layer" and ALL not in _split(spec.measure):
            raise BadOption(f"{measure.name} is of all heads together", hint="This compares head by head.")
    names = (*(spec.measure or (DEFAULT,)), *(name for name in thresholds if name in known))
    found = tuple(_heads(before, after, names))
    over = sum(bool(head_beyond(change, thresholds)) for change in found)
    return Diffed(records_report(before, after, found, thresholds, spec), _sentence(over, len(found), "head"))


def _heads(before: AttentionMaps, after: AttentionMaps, names: Sequence[str]) -> Iterator[HeadChange]:
    """Of the layers and heads that both have, the most different first."""
    found = changes(before, after)
    numbers = tuple(zip(measured(before, names, "head"), measured(after, names, "head"), strict=True))
    for place in sorted(np.ndindex(*found.jsd.shape), key=lambda place: -found.jsd[place]):
        layer, head = found.layers[place[0]], place[1]
        of_a, of_b = ((maps.layer_numbers.index(layer), head) for maps in (before, after))
        measures = [Change(a.name, layer, head, float(a.values[of_a]), float(b.values[of_b])) for a, b in numbers]
        apart, turned = float(found.jsd[place]), int(found.top_changed[place])
        yield HeadChange(layer, head, apart, turned, found.n_queries, tuple(measures))


def _batches(spec: DiffSpec, before: Manifest, after: Manifest) -> Diffed:
    found = batch_changes(before, after)
    known = list(dict.fromkeys(change.measure for change in found.changes))
    thresholds = _thresholds(spec.threshold, known)
    wanted = _split(spec.measure) or [ALL]
    for name in wanted:
        if name not in known and name != ALL:
            raise BadOption(f"no measure {name!r} in both batches", hint=suggestion(name, [*known, ALL]))
    if ALL not in wanted:
        kept = tuple(change for change in found.changes if change.measure in {*wanted, *thresholds})
        found = replace(found, changes=kept)
    over = sum(beyond(change, thresholds) for change in found.changes)
    return Diffed(batches_report(found, thresholds, spec), _sentence(over, len(found.changes), "number"))


def batch_changes(before: Manifest, after: Manifest) -> BatchChanges:
    """Every number that both have, and what only one has. Pure."""
    expected, actual = ({entry.name: entry for entry in manifest.jobs} for manifest in (before, after))
    changes: list[Change] = []
    only: tuple[list[str], list[str]] = ([], [])
    for job in dict.fromkeys([*expected, *actual]):
        if job not in expected or job not in actual:
            only[job not in expected].append(f"job {job}")
        else:
            _of_job(job, expected[job].numbers, actual[job].numbers, changes, only)
    return BatchChanges(tuple(changes), *(tuple(dict.fromkeys(side)) for side in only))


def _of_job(
    job: str, before: Numbers, after: Numbers, changes: list[Change], only: tuple[list[str], list[str]]
) -> None:
    for text in dict.fromkeys([*before, *after]):
        if text not in before or text not in after:
            only[text not in before].append(f"text {text} of {job}")
            continue
        for measure in dict.fromkeys([*before[text], *after[text]]):
            if measure not in before[text] or measure not in after[text]:
                only[measure not in before[text]].append(f"{measure} of {text} of {job}")
                continue
            one, other = before[text][measure], after[text][measure]
            if shape(one) != shape(other):  # those that both have are compared
                for side, values in zip(only, (one, other), strict=True):
                    side.append(f"{text} of {job} with {shape(values)}")
            for layer, head, left, right in pairs(one, other):
                changes.append(Change(measure, layer, head, float(left), float(right), job, text))


def _thresholds(written: Sequence[str], known: Sequence[str]) -> Thresholds:
    """ "jsd=0.01". Raises BadOption for what is not a name of `known` and a number from 0 up."""
    found: Thresholds = {}
    for each in _split(written):
        name, _, value = (part.strip() for part in each.partition("="))
        try:
            limit = float(value)
        except ValueError:
            limit = -1.0
        if not (isfinite(limit) and limit >= 0):
            raise BadOption(f"--threshold {each!r} is not NAME=N", hint="Such as jsd=0.01, a number from 0 up.")
        if name not in known:
            raise BadOption(f"no threshold of {name!r} here", hint=suggestion(name, known))
        if name in found:
            raise BadOption(f"two thresholds of {name!r}", hint="Give one of each.")
        found[name] = limit
    return found


def _split(items: Sequence[str]) -> list[str]:
    return [part.strip().lower() for item in items for part in item.split(",")]


def _sentence(over: int, of: int, noun: str) -> str:
    """ "" where nothing is beyond a threshold."""
    return f"{over:,} of {of:,} {noun}s changed more than --threshold allows" if over else ""
