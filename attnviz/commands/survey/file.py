"""A survey as a file, and back: what a shard leaves, what a run goes on from, and what is merged."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from attnviz import store
from attnviz.commands.survey.moments import N_MOMENTS, Moments
from attnviz.commands.survey.survey import ABLATION, CAN, EQUAL, ModelFacts, Survey, SurveyInfo, TextExcerpt
from attnviz.commands.survey.words import WordTable
from attnviz.errors import InvalidRecord
from attnviz.measures import SOME_TEXTS_MEASURES
from attnviz.measures.class_differences import ClassSums
from attnviz.measures.excerpts import N_SHOWN
from attnviz.measures.summaries import MAX_TEXTS, N_BINS, N_EXTREMES, NO_TEXT, UNIT, Summary
from attnviz.records.training_metrics import name_offset
from attnviz.records.walk import ROW_SUM_TOLERANCE
from attnviz.running.metrics import decode_json
from attnviz.views.patterns import LABELS

NAME, PARTIAL = "survey.safetensors", "survey.partial.safetensors"  # a finished one, and one that goes on
SCHEMA = 4
MAX_BYTES = 2**32
DATASET_OPTION = re.compile("--(dataset|split|text-column)")
Pairs = tuple[tuple[int, ...], ...]
MOMENT = "moment_"  # what names of arrays of moments begin with
# Of a summary.
ARRAYS = ("sums", "ranges", "bins", "extremes", "extreme_texts", "extreme_values", "hashes", "sampled_texts", "sample")


def survey_bytes(survey: Survey) -> bytes:
    """A survey as a safetensors file: equal surveys, equal bytes."""
    arrays = {name: getattr(survey.summary, name) for name in ARRAYS}
    arrays |= _other_arrays(survey) | _moment_arrays(survey)
    meta = {
        "schema": SCHEMA,
        "info": asdict(survey.info),
        "blocks": survey.blocks,
        "n_measured": survey.summary.n_texts,
        "n_texts": survey.n_texts,
        "n_queries": survey.n_queries,
        "excerpts": [asdict(excerpt) for excerpt in survey.excerpts.values()],
        "skipped": list(survey.skipped.items()),
        "words": survey.words.words,
        "classes": survey.classes.groups,
        "facts": None if survey.facts is None else asdict(survey.facts),
    }
    return store.encode_arrays(arrays, meta)


def load_survey(path: Path) -> Survey:
    """What `survey_bytes` gave. Raises InvalidRecord for anything else."""
    arrays, meta = store.read_arrays(path, MAX_BYTES, "a survey")
    try:
        if meta["schema"] != SCHEMA:
            raise ValueError(f"schema {meta['schema']!r} is not {SCHEMA}")
        survey = _survey(arrays, meta)
        _check(survey)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = " ".join(f"{error}".split())[:200]
        raise InvalidRecord(
            f"{path} is not a survey of attnviz: {reason}", hint="attnviz survey writes one."
        ) from error
    return survey


def _survey(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> Survey:
    count = decode_json(dict[str, int], {"n_measured": meta["n_measured"], "n_queries": meta["n_queries"]}, "counts")
    return Survey(
        info=decode_json(SurveyInfo, meta["info"], "info"),
        blocks=tuple((start, stop) for start, stop in decode_json(Pairs, meta["blocks"], "blocks")),
        summary=Summary(count["n_measured"], **{name: arrays[name] for name in ARRAYS}),
        slopes=arrays["slopes"],
        moments=Moments(**{each.name: arrays[f"{MOMENT}{each.name}"] for each in fields(Moments)}),
        excerpts={each.text: each for each in decode_json(tuple[TextExcerpt, ...], meta["excerpts"], "excerpts")},
        distances=arrays["distances"],
        equal_distances=arrays["equal_distances"],
        n_queries=count["n_queries"],
        words=WordTable(
            decode_json(tuple[str, ...], meta["words"], "words"), arrays["support"], arrays["equal"], arrays["mass"]
        ),
        classes=ClassSums(
            tuple((label, stratum) for label, stratum in decode_json(Pairs, meta["classes"], "classes")),
            arrays["class_counts"],
            arrays["class_sums"],
        ),
        skipped=_names(meta["skipped"]),
        n_texts=decode_json(int | None, meta["n_texts"], "n_texts"),
        facts=decode_json(ModelFacts | None, meta["facts"], "facts"),
    )


def _other_arrays(survey: Survey) -> dict[str, np.ndarray]:
    """Return what is not of the summary."""
    found = {name: getattr(survey, name) for name in ("slopes", "distances", "equal_distances")}
    found |= {f"class_{name}": getattr(survey.classes, name) for name in ("counts", "sums")}
    return found | {name: getattr(survey.words, name) for name in ("support", "equal", "mass")}


def _moment_arrays(survey: Survey) -> dict[str, np.ndarray]:
    return {f"{MOMENT}{each.name}": getattr(survey.moments, each.name) for each in fields(Moments)}


def _names(found: Any) -> dict[int, str]:
    return {decode_json(int, number, "text"): decode_json(str, name, "name") for number, name in found}


def _check(survey: Survey) -> None:
    """Raises ValueError where arrays do not belong together, or hold what cannot be."""
    info, summary, words = survey.info, survey.summary, survey.words
    levels = {measure.level for measure in info.measures}
    if not levels <= {"head", "layer", "text"} or not 0 < info.n_places <= 10**6 or info.n_heads < 1:
        raise ValueError("its measures are of no heads")
    n_columns, n_sampled = info.bounds.shape[1], len(summary.hashes)
    shapes: dict[str, tuple[tuple[int, ...], type]] = {
        "sums": ((2, n_columns), np.int64),
        "ranges": ((2, n_columns), np.float64),
        "bins": ((n_columns, N_BINS), np.int64),
        "extremes": ((2, N_EXTREMES, n_columns), np.float64),
        "extreme_texts": ((2, N_EXTREMES, n_columns), np.int64),
        "extreme_values": ((2, N_EXTREMES, n_columns), np.float64),
        "hashes": ((n_sampled,), np.uint64),
        "sampled_texts": ((n_sampled,), np.int64),
        "sample": ((n_sampled, n_columns), np.float64),
    }
    found = {field.name: getattr(summary, field.name) for field in fields(Summary)}
    found |= _other_arrays(survey)
    shapes["slopes"], shapes["equal_distances"] = ((n_columns,), np.float64), ((2 * info.reach + 1,), np.int64)
    shapes["equal"] = (len(words.words),), np.int64
    shapes["distances"] = (info.n_places, 2 * info.reach + 1), np.int64
    shapes["support"] = (len(words.words),), np.int64
    shapes["mass"] = (len(words.words), info.n_places if words.words else 0), np.int64
    n_groups = len(survey.classes.groups)
    shapes["class_counts"] = (n_groups, n_columns if n_groups else 0), np.int64
    shapes["class_sums"] = (n_groups, 2, n_columns if n_groups else 0), np.int64
    for name, (shape, kind) in shapes.items():
        if found[name].shape != shape or found[name].dtype != kind:
            raise ValueError(f"{name} is of shape {found[name].shape}, expected {shape}")
    _check_counts(info, summary)
    _check_moments(survey)
    _check_classes(survey.classes, summary)
    if not (info.bounds[0] < info.bounds[1]).all():
        raise ValueError("bounds hold nothing between them")
    if not np.isfinite(survey.slopes).all():
        raise ValueError("a slope is not finite")
    if not summary.texts <= set(survey.excerpts):
        raise ValueError("texts are counted that are not there")
    if not set(info.can) <= set(CAN):
        raise ValueError("its model can do what nothing asks for")
    if info.dataset and not _is_plain_command(info.dataset):
        raise ValueError("its options are not those of a data set")
    if list(words.words) != sorted(set(words.words)):
        raise ValueError("words are not in order")
    ends = [end for block in survey.blocks for end in block]
    if any(len(block) != 2 for block in survey.blocks) or any(b <= a for a, b in pairwise(ends)) or min([0, *ends]) < 0:
        raise ValueError("blocks are not in order")
    if (summary.extreme_texts < 0).any() or (summary.sampled_texts == NO_TEXT).any():
        raise ValueError("a text has no number")
    if survey.facts is not None:
        _check_facts(info, survey.facts)


def _is_plain_command(written: str) -> bool:
    """Return whether options are quoted, so that what is printed for a shell runs nothing else when it is copied."""
    try:
        words = shlex.split(written)
    except ValueError:
        return False
    return shlex.join(words) == written and all(DATASET_OPTION.fullmatch(word) for word in words[::2])


def _check_counts(info: SurveyInfo, summary: Summary) -> None:
    """Raises ValueError where a number is missing that every text has."""
    some = np.zeros(info.bounds.shape[1], dtype=bool)
    for name in {
        *SOME_TEXTS_MEASURES,
        *(f"{EQUAL}{name}" for name in SOME_TEXTS_MEASURES),
        *(name for name in info.columns if name.startswith(ABLATION)),  # not of texts that are mostly unknown
    } & info.columns.keys():
        some[info.columns[name]] = True
    if not np.isfinite(np.where(some & np.isnan(summary.sample), 0.0, summary.sample)).all():
        raise ValueError("a number is not finite")
    if not np.where(some, summary.counts <= summary.n_texts, summary.counts == summary.n_texts).all():
        raise ValueError("texts are counted that are not there")
    if summary.n_texts > MAX_TEXTS or not ((summary.sums >= 0) & (summary.sums <= summary.counts * UNIT)).all():
        raise ValueError("sums are not of so many numbers from 0 to 1")


def _check_classes(classes: ClassSums, summary: Summary) -> None:
    """Raises ValueError where they are not of the survey's texts."""
    if list(classes.groups) != sorted(set(classes.groups)):
        raise ValueError("classes are not in order")
    if (classes.counts < 0).any() or (classes.groups and (classes.counts.sum(axis=0) > summary.counts).any()):
        raise ValueError("texts of classes are counted that are not there")
    if not ((classes.sums >= 0) & (classes.sums <= classes.counts[:, None] * UNIT)).all():
        raise ValueError("sums of classes are not of so many numbers from 0 to 1")


def _check_moments(survey: Survey) -> None:
    """Raises ValueError where they are not of the survey's heads, or of tokens that it does not hold."""
    moments, room = survey.moments, (2, N_MOMENTS, survey.info.n_places)
    blank = Moments.empty(0)
    for each in fields(Moments):
        found, kind = getattr(moments, each.name), getattr(blank, each.name).dtype
        deeper = (N_SHOWN,) if each.name in ("positions", "weights") else ()
        if found.shape != (*room, *deeper) or found.dtype != kind:
            raise ValueError(f"{each.name} of moments is of shape {found.shape}")
    there = moments.ranks > -np.inf
    shares = np.stack([moments.to_first, moments.weights.max(axis=-1), -moments.weights.min(axis=-1)])
    if not ((moments.texts != NO_TEXT) == there).all() or not (shares <= 1 + ROW_SUM_TOLERANCE).all():
        raise ValueError("moments are of no texts")
    if not (moments.n_keys[there] > 0).all() or not np.isfinite(moments.effective_keys).all():
        raise ValueError("moments are of no keys")
    for text, positions in moments.list_tokens().items():
        if text not in survey.excerpts or min(positions) < 0:
            raise ValueError("a moment is of a text that is not there")
        excerpt = survey.excerpts[text]
        if excerpt.positions != (tuple(positions) if survey.info.has_words else ()):
            raise ValueError("the tokens of a moment are not there")
    if any(len(each.pieces) != len(each.positions) for each in survey.excerpts.values()):
        raise ValueError("tokens and their positions do not belong together")


def _check_facts(info: SurveyInfo, facts: ModelFacts) -> None:
    """Raises ValueError where they are not of the heads and patterns of the survey."""
    patterns = [measure for measure in info.measures if measure.name in LABELS]
    names = {measure.name for measure in patterns if measure.level == "head"}
    by_head = (facts.plain, facts.shuffled, facts.probes)
    names |= {name_offset(offset) for offset in range(-info.reach, info.reach + 1)}
    known = set(facts.chance or facts.plain) == set(facts.plain) and {*facts.plain, *facts.shuffled} <= names
    if any(measure.level != "head" for measure in patterns) or not known or facts.probe_chance.keys() - facts.probes:
        raise ValueError("its facts are of other patterns")
    if any(len(shares) != info.n_places for found in by_head for shares in found.values()):
        raise ValueError("its facts are of other heads")
