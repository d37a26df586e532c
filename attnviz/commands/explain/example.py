"""The example that ships with attnviz, from its file to arithmetic."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.commands.explain.spec import LabelKind
from attnviz.records import Tokens
from attnviz.records.attention_trace import AttentionTrace, Example, PublishedValues, trace_head

FILE = Path(__file__).parents[2] / "data" / "worked-example.toml"


def load_examples(labels: LabelKind) -> tuple[Example, ...]:
    """Load the example with one head, then with two."""
    found = tomllib.loads(FILE.read_text(encoding="utf-8"))
    pieces = tuple(found["tokens"][labels])
    ends = np.cumsum([len(piece) + 1 for piece in pieces]).tolist()
    offsets = tuple((end - 1 - len(piece), end - 1) for piece, end in zip(pieces, ends, strict=True))
    tokens = Tokens(pieces, offsets, (False,) * len(pieces))
    return tuple(_trace_example(found, found[part], tokens) for part in ("single", "multi"))


def _trace_example(found: Mapping[str, Any], given: Sequence[Mapping[str, Any]], tokens: Tokens) -> Example:
    attendable = np.ones(len(tokens), dtype=bool)
    heads = tuple(
        trace_head(_to_array(head["query"]), _to_array(head["keys"]), _to_array(head["values"]), attendable)
        for head in given
    )
    claims = tuple(
        PublishedValues(tuple(head["circulating"]), tuple(head.get("circulating_output", ())), found["decimals"])
        for head in given
    )
    trace = AttentionTrace(tokens, found["query"], attendable, _to_array(found["embeddings"]), heads, projection=None)
    concatenation = tuple(found["circulating_concatenation"]) if len(given) > 1 else ()
    return Example(trace, tuple(tuple(map(float, head["scores"])) for head in given), claims, concatenation)


def _to_array(numbers: Sequence[Any]) -> np.ndarray:
    return np.array(numbers, dtype=np.float64)
