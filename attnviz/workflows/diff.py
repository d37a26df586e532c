"""`attnviz diff`: what changed between two records of one text, two batches, or two surveys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path

from attnviz import store
from attnviz.differences import (
    EVERY_NUMBER,
    JSD,
    TOP_KEY,
    Difference,
    HeadChange,
    Thresholds,
    head_beyond,
    is_beyond,
)
from attnviz.errors import DifferencesFound, InvalidOption, InvalidRecord, InvalidSource
from attnviz.inputs import is_file, is_folder
from attnviz.manifest import NAME
from attnviz.measures import ALL, HEADLINE, MEASURES, chosen, measured, split_names
from attnviz.measures.changes import changes
from attnviz.models.sizes import BASE, ONE_HEAD, ONE_TOKEN, check_room
from attnviz.records import AttentionMaps
from attnviz.records.walk import MIN_ROWS
from attnviz.registry import suggestion
from attnviz.report import Report
from attnviz.specs.batch import DiffSpec
from attnviz.views.diff import batches_report, records_report
from attnviz.workflows import Events, Result
from attnviz.workflows.batch_diff.batches import LoadedBatch, differences, read_batch

DEFAULT = "entropy"
SURVEY = "survey.safetensors"  # as `survey_file` calls it, which brings numpy


def diff(spec: DiffSpec) -> Events:
    """Raises InvalidOption for a threshold or a measure that is none, InvalidRecord for records of different tokens."""
    if spec.top_k < 1:
        raise InvalidOption(f"--top-k {spec.top_k} is too small", hint="It is at least 1.")
    before, after = (_file(Path(path)) for path in (spec.before, spec.after))
    are_surveys = before.name == SURVEY, after.name == SURVEY
    if all(are_surveys):
        return iter((_surveys(spec, before, after),))
    are_manifests = before.suffix == ".json", after.suffix == ".json"
    if len(set(are_manifests)) == 2 or any(are_surveys):
        hint = "Give two records, two manifests or two surveys."
        raise InvalidOption(f"{before} and {after} are not of one kind", hint=hint)
    if all(are_manifests):
        return iter((_batches(spec, read_batch(before), read_batch(after)),))
    _check_room(before, after, spec.max_memory)
    return iter((_records(spec, store.load(before, inf), store.load(after, inf)),))


def _check_room(before: Path, after: Path, max_memory: float) -> None:
    """Raises TooLarge before two records are read that would take more."""
    needed = BASE
    for path in (before, after):
        *_, n_queries, n_keys = store.record_shape(path)
        # of factors no more rows of a head than are walked over at once are ever there
        several = min(n_queries, 2 * MIN_ROWS) if store.is_factored(path) else n_queries
        needed += store.held_bytes(path) + ONE_TOKEN * (n_queries + n_keys) + ONE_HEAD // 2 * several * n_keys
    check_room("the two records", needed, max_memory)


def _file(path: Path) -> Path:
    """A file as it is; of a folder its manifest, its record or its survey."""
    if not is_folder(path):
        return path
    for name in (NAME, store.RECORD, SURVEY):
        if is_file(path / name):
            return path / name
    raise InvalidSource(
        f"{path} holds no {NAME}, no {store.RECORD} and no {SURVEY}", hint="Name a file, or another folder."
    )


def _records(spec: DiffSpec, before: AttentionMaps, after: AttentionMaps) -> Result:
    known = [measure.name for measure in MEASURES if measure.level == "head"]
    thresholds = _thresholds(spec.threshold, [JSD, TOP_KEY, *known])
    for measure in chosen(spec.measure):
        if measure.level == "layer" and ALL not in split_names(spec.measure):
            raise InvalidOption(f"{measure.name} is of all heads together", hint="This compares head by head.")
    names = (*(spec.measure or (DEFAULT,)), *(name for name in thresholds if name in known))
    found = tuple(_heads(before, after, names))
    report = records_report(before, after, found, thresholds, spec)
    return _result(report, [head_beyond(change, thresholds) for change in found], "head")


def _heads(before: AttentionMaps, after: AttentionMaps, names: Sequence[str]) -> Iterator[HeadChange]:
    """Of the layers and heads that both have, the most different first."""
    numbers = tuple(zip(measured(before, names, "head"), measured(after, names, "head"), strict=True))
    for change in sorted(changes(before, after), key=lambda change: -change.jsd):
        place = change.layer, change.head
        of_a, of_b = (maps.place(*place) for maps in (before, after))
        measures = (
            Difference("number", "", "", "", a.name, *place, float(a.values[of_a]), float(b.values[of_b]))
            for a, b in numbers
        )
        yield replace(change, measures=tuple(measures))


def _batches(spec: DiffSpec, before: LoadedBatch, after: LoadedBatch) -> Result:
    found = differences(before, after, EVERY_NUMBER)
    known = list(dict.fromkeys(number.measure for number in found.numbers))
    thresholds = _thresholds(spec.threshold, known)
    shown = {*_shown(spec.measure, known, known, "batches"), *thresholds}
    kept = tuple(each for each in found.differences if each.kind != "number" or each.measure in shown)
    found = replace(found, differences=kept)
    beyond = [is_beyond(number, thresholds) for number in found.numbers]
    return _result(batches_report(found, thresholds, spec), beyond, "number")


def _surveys(spec: DiffSpec, before: Path, after: Path) -> Result:
    from attnviz.views.survey_diff import shared_measures, survey_differences, surveys_report
    from attnviz.workflows.survey_file import load_survey

    a, b = (load_survey(path) for path in (before, after))
    for path, survey in ((before, a), (after, b)):
        if not survey.is_whole:
            raise InvalidRecord(f"{path} is a part of a survey", hint="attnviz merge puts parts together.")
    known = shared_measures(a, b)
    thresholds = _thresholds(spec.threshold, known)
    shown = _shown(spec.measure, known, (*HEADLINE, *thresholds), "surveys")
    found = survey_differences(a, b, tuple(name for name in known if name in shown))
    beyond = [is_beyond(number, thresholds) for number, _ in found]
    return _result(surveys_report(a, b, found, thresholds), beyond, "number")


def _shown(wanted: Sequence[str], known: Sequence[str], default: Sequence[str], where: str) -> Sequence[str]:
    """The measures of a report. Raises InvalidOption for one that not both have."""
    names = split_names(wanted)
    for name in names:
        if name not in (*known, ALL):
            raise InvalidOption(f"no measure {name!r} in both {where}", hint=suggestion(name, [*known, ALL]))
    return known if ALL in names else names or default


def _thresholds(written: Sequence[str], known: Sequence[str]) -> Thresholds:
    """ "jsd=0.01". Raises InvalidOption for what is not a name of `known` and a number from 0 up."""
    found: Thresholds = {}
    for each in split_names(written):
        name, _, value = (part.strip() for part in each.partition("="))
        try:
            limit = float(value)
        except ValueError:
            limit = -1.0
        if not (isfinite(limit) and limit >= 0):
            raise InvalidOption(f"--threshold {each!r} is not NAME=N", hint="Such as jsd=0.01, a number from 0 up.")
        if name not in known:
            raise InvalidOption(f"no threshold of {name!r} here", hint=suggestion(name, known))
        if name in found:
            raise InvalidOption(f"two thresholds of {name!r}", hint="Give one of each.")
        found[name] = limit
    return found


def _result(report: Report, beyond: Sequence[object], noun: str) -> Result:
    """It fails where something is beyond a threshold."""
    over = sum(map(bool, beyond))
    said = f"{over:,} of {len(beyond):,} {noun}s changed more than --threshold allows"
    return Result(report, failure=DifferencesFound(said) if over else None)
