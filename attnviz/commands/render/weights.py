"""Files of weights as records. torch comes with it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from attnviz.commands.render.inputs import check_weights_memory
from attnviz.commands.render.names import read_token_names
from attnviz.commands.render.spec import RenderSpec
from attnviz.models.recording.attentions import from_attentions
from attnviz.models.recording.weights_file import read_weights_file
from attnviz.records import AttentionMaps


def read_maps(spec: RenderSpec) -> tuple[AttentionMaps, tuple[str, ...]]:
    """Make a record of a file of weights, and say how its names were read. Raises what either does."""
    tokens, of_tokens = read_token_names(spec.tokens_file, spec.words)
    keys, of_keys = read_token_names(spec.keys_file)
    check = partial(check_weights_memory, max_memory=spec.max_memory)
    weights = read_weights_file(Path(spec.record), spec.array, check)
    unread = (f"{weights.name}: not read: {weights.unread}",) if weights.unread else ()
    return from_attentions(weights, tokens, keys=keys, row=spec.row), (*of_tokens, *of_keys, *unread)
