"""A record against the one that a test keeps: what moved, head by head, in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnviz import store
from attnviz.records import AttentionMaps
from attnviz.records.differences import Difference, Tolerances, check_tolerance
from attnviz.records.single import unwrap_record
from attnviz.views.differences import describe_difference
from attnviz.views.record_changes import compare_weights

MAX_HEADS = 10  # that are named


def describe_moved_heads(path: Path, maps: AttentionMaps | Sequence[AttentionMaps], tolerance: float) -> str:
    """What differs from the record in `path` by more than `tolerance`, absolute, of a weight; "" where nothing does.

    Raises InvalidRecord where one of them is no record, InvalidOption for a tolerance that is none.
    """
    check_tolerance(tolerance, "tolerance=")
    expected, actual = store.load(path), unwrap_record(maps)
    found = list(compare_weights(expected, actual, Tolerances(tolerance)))
    if not found:
        return ""
    if found[0].before is None:
        return f"the record cannot be compared: {describe_difference(found[0])}"
    n_heads = actual.n_layers * actual.n_heads
    heading = f"attention moved by more than {tolerance:g} in {len(found)} of {n_heads} heads, most in the first:"
    more = [f"  and {len(found) - MAX_HEADS} more"] if len(found) > MAX_HEADS else []
    return "\n".join((heading, *map(_write_line, found[:MAX_HEADS]), *more))


def _write_line(moved: Difference) -> str:
    return f"  {moved.where}, {moved.said}: {moved.before:.6g} became {moved.after:.6g} ({moved.change:+.2g})"
