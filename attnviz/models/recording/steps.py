"""Steps of a loop as the rows of one attention: a recurrent decoder writes a word and looks at all it read, again.

Knows calls; no tokens, no records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attnviz.models.capture.call import Call


def join_steps(calls: Sequence[Call]) -> list[Call]:
    """Join calls of one module in one pass that have one query each and the same keys.

    Layers are modules of their own, and a key/value cache grows: neither has such calls. Their queries are tokens where
    each call has another; a state that goes from step to step is none.
    """
    steps: dict[tuple[object, ...], list[Call]] = defaultdict(list)
    for call in calls:
        is_step = call.keys is not None and call.shape[2] == 1 and call.shape[3] > 1 and call.factors is None
        keys = b"" if call.keys is None else call.keys.tobytes()
        steps[(call.number, call.path, call.shape, call.heads, keys) if is_step else (call.place,)].append(call)
    return [_join(each) if len(each) > 1 else each[0] for each in steps.values()]


def _join(calls: Sequence[Call]) -> Call:
    after, sinks = 0, [call.sink for call in calls]
    for call in calls:
        after |= call.after
    nothing = np.zeros(calls[0].shape[:3], dtype=np.float32)
    has_sink = any(sink is not None for sink in sinks)
    queries = [call.queries for call in calls if call.queries is not None]
    whole = np.concatenate(queries, axis=1) if len(queries) == len(calls) else None
    is_state = whole is None or len(np.unique(whole[0])) < len(calls) or any(call.is_mixed for call in calls)
    return replace(
        calls[0],
        kept=np.concatenate([call.weights for call in calls], axis=2),
        attendable=np.concatenate([call.attendable for call in calls], axis=1),
        sink=np.concatenate([nothing if sink is None else sink for sink in sinks], axis=2) if has_sink else None,
        error=max(call.error for call in calls),
        queries=None if is_state else whole,
        place=calls[-1].place,
        after=after,
        n_steps=len(calls),
    )
