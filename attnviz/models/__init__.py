"""Who attends: from a text to AttentionMaps. The only room that knows torch; it knows no pictures and no commands."""

from __future__ import annotations

from attnviz.registry import Plugin

MODELS = (
    Plugin(
        "single", "attnviz.models.opening:open_encoder", "a trained transformer encoder with one head of full width"
    ),
    Plugin(
        "multi", "attnviz.models.opening:open_encoder", "the same with 8 heads; multi:2 and multi:4 are trained too"
    ),
    Plugin("random", "attnviz.models.opening:open_encoder", "an encoder with random weights; random:N has N heads"),
    Plugin("dot", "attnviz.models.opening:open_dot", "no projections: query = key = value = word embedding"),
)
