"""Numbers from records, one per head. One small file per measure; adding one is that file and one line here.

A measure knows records and nothing of models, views or files. Only real queries count (see `AttentionMaps`), rows are
brought to sum exactly 1 in float64 first, and one head is worked on at a time.
"""

from __future__ import annotations

from attnviz.registry import Plugin

MEASURES = (
    Plugin("entropy", "attnviz.measures.entropy:entropy", "how widely a query spreads its attention, in nats"),
    Plugin("effective_keys", "attnviz.measures.effective_keys:effective_keys", "how many keys a query attends to"),
    Plugin("distance", "attnviz.measures.distance:distance", "how far away a query attends, in tokens"),
    Plugin("peak", "attnviz.measures.peak:peak", "the share that a query gives to its favourite key"),
)
SELF_ATTENTION_ONLY = frozenset({"distance"})
