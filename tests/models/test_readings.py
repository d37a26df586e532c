"""Which axis is which, and which array is meant: by names, sums, zeros and numbers, of files and objects alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest
import torch

import attnviz
from attnviz.errors import InputError

WORDS, KEYS = ["the", "cat", "sat", "on", "mat"], list("tuvwxyz")
RANDOM = np.random.default_rng(0)


def soft(*shape: int) -> np.ndarray:
    return RANDOM.dirichlet(np.ones(shape[-1]), shape[:-1]).astype(np.float32)


STACK, CROSS = soft(2, 4, 5, 5), soft(2, 4, 3, 7)
CAUSAL = np.tril(STACK) / np.tril(STACK).sum(-1, keepdims=True)
STEPS = [[torch.tensor(layer[None, :, start:end, :end]) for layer in CAUSAL] for start, end in ((0, 3), (3, 4), (4, 5))]
STATIC = [[torch.nn.functional.pad(layer, (0, 8 - layer.shape[-1])) for layer in step] for step in STEPS]
PADDED = np.zeros((3, 4, 5, 5), np.float32)
for text, n in enumerate((5, 3, 4)):
    PADDED[text, ..., :n] = soft(4, 5, n)
EDGES = np.array([[0, 1, 2, 0, 1, 0], [1, 0, 1, 2, 2, 0]])
ALPHA = np.array([0.25, 0.5, 0.75, 0.4, 0.6, 0.5], np.float32)
GRAPH = np.zeros((1, 1, 3, 3), np.float32)
GRAPH[0, 0, EDGES[1], EDGES[0]] = ALPHA
FRAME = pandas.DataFrame(CROSS[0, 0], index=WORDS[:3], columns=KEYS)
LONG = FRAME.rename_axis("target").reset_index().melt("target", var_name="source", value_name="weight")
ALL_AXES = "text,layer,head,query,key"
READ: dict[str, tuple[Any, dict[str, Any], np.ndarray]] = {  # what is given, with which options, and what it is
    "text, layer, head": (STACK[None], {}, STACK),
    "layer, text, head": (STACK[:, None], {}, STACK),
    "several, by axes": (np.stack([STACK, STACK[::-1]]), {"axes": ALL_AXES, "row": 1}, STACK[::-1]),
    "steps, heads": (CROSS.swapaxes(1, 2), {"tokens": WORDS[:3], "keys": KEYS, "row": 1}, CROSS[1:]),
    "padding says texts": (PADDED, {"row": 1}, PADDED[1:2, ..., :3, :3]),
    "padding by names": (PADDED[2], {"tokens": WORDS[:4]}, PADDED[2:, :, :4, :4]),
    "looking back says queries": (CAUSAL[0, :2].swapaxes(0, 1), {}, CAUSAL[:1, :2]),
    "heads of one query": (STACK[0, :, 0], {"tokens": ["[CLS]"], "keys": WORDS}, STACK[:1, :, :1]),
    "steps": (STEPS, {}, CAUSAL),
    "steps of a static cache": (STATIC, {}, CAUSAL),
    "steps across": ([[CROSS[layer][None, :, [step]] for layer in (0, 1)] for step in range(3)], {}, CROSS),
    "texts of layers": ([STEPS[0], [*map(torch.tensor, STACK[:, None])]], {"row": 1}, STACK),
    "heads of layers": ([list(layer) for layer in STACK], {}, STACK),
    "by number": ({f"layer_{n}": STACK[n % 2] for n in (10, 2, 1, 0)}, {}, STACK[[0, 1, 0, 0]]),
    "by two numbers": ({f"L{n}H{m}": STACK[n, m] for m in range(4) for n in (1, 0)}, {}, STACK),
    "heads by number": ({f"head.{m}": STACK[0, m] for m in range(4)}, {}, STACK[:1]),
    "scores beside": ({"out": {"attn": [*STACK[:, None]], "scores": [*np.log(STACK)]}}, {}, STACK),
    "edges": ((EDGES, ALPHA), {}, GRAPH),
    "edges by name": ({"edge_index": torch.tensor(EDGES), "alpha": ALPHA[:, None]}, {}, GRAPH),
    "edges as JSON has them": ({"edge_index": EDGES.tolist(), "alpha": ALPHA.tolist()}, {}, GRAPH),
    "as bertviz saves it": ({"attention": [{"attn": STACK, "left_text": WORDS}], "include_layers": [0, 1]}, {}, STACK),
    "a frame": (FRAME, {}, CROSS[:1, :1]),
    "a column": (FRAME.iloc[0], {}, CROSS[:1, :1, :1]),
}


@pytest.mark.parametrize("name", READ)
def test_the_only_reading_is_taken(name: str) -> None:
    given, options, expected = READ[name]
    maps = attnviz.from_attentions(given, **options)
    assert maps.weights.shape == expected.shape
    np.testing.assert_allclose(maps.weights, expected, atol=1e-6)
    assert maps.layer_numbers == ((0, 1, 2, 10) if name == "by number" else tuple(range(len(expected))))


BEAMS = {"attentions": tuple(map(tuple, STEPS)), "beam_indices": STACK}
REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "two texts, two layers": (np.stack([STACK] * 2), {}, r'layer, text, .* or text, .* Say which by axes="layer,text,'),
    "no such axes": (STACK, {"axes": "layer,head,token"}, "do not name the 4 axes there are. Each is one of layer"),
    "texts of one": (STACK[None], {"row": 1}, "no row 1 in a batch of 1. There is one text"),
    "two that are attention": ({"encoder": STACK, "cross": CROSS}, {}, 'Choose one, as by array="encoder"'),
    "beams": (BEAMS, {"array": "attentions"}, "beam search"),
    "a node alone": ((EDGES + EDGES, ALPHA), {}, "query 1, '1', may attend to no key"),
    "a row for each weight": (LONG, {}, "this table has a row for each weight or edge, in its column 'weight'"),
    "patches somewhere": (STACK, {"tokens": WORDS, "keys": attnviz.Grid(2, 2)}, "which of the 5 tokens are the 4"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_leaves_more_than_one_reading_is_refused(name: str) -> None:
    given, options, said = REFUSED[name]
    with pytest.raises(InputError, match=said):
        attnviz.from_attentions(given, **options)
