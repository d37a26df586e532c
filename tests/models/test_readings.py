"""Which axis is which, and which array is meant: by names, sums, zeros and numbers, of files and objects alike."""

from typing import Any

import numpy as np
import pandas
import pytest
import torch

import attnviz
from attnviz.errors import InputError, InvalidOption, InvalidRecord, InvalidSelection

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
    "tensors": (tuple(map(torch.tensor, STACK[:, None])), {"tokens": WORDS}, STACK),
    "lists": (STACK[:, None].tolist(), {}, STACK),
    "by number": ({f"layer_{n}": STACK[n % 2] for n in (10, 2, 1, 0)}, {}, STACK[[0, 1, 0, 0]]),
    "by two numbers": ({f"L{n}H{m}": STACK[n, m] for m in range(4) for n in (1, 0)}, {}, STACK),
    "scores beside": ({"out": {"attn": [*STACK[:, None]], "scores": [*np.log(STACK)]}}, {}, STACK),
    "edges": ((EDGES, ALPHA), {}, GRAPH),
    "edges by name": ({"edge_index": torch.tensor(EDGES), "alpha": ALPHA[:, None]}, {}, GRAPH),
    "as bertviz saves it": ({"attention": [{"attn": STACK, "left_text": WORDS}], "include_layers": [0, 1]}, {}, STACK),
    "a frame": (FRAME, {}, CROSS[:1, :1]),
}


def test_patches_amid_a_text_are_those_called_alike() -> None:
    weights = torch.eye(6)[[2] * 6][None, None]
    for names in (["what", "<image>", "<image>", "<image>", "<image>", "?"], ["[1", "p0", "p1", "p2", "p3", "2]"]):
        maps = attnviz.from_attentions(weights, names, keys=attnviz.Grid(2, 2))
        assert maps.queries.pieces == (names[0], "0,0", "0,1", "1,0", "1,1", names[-1])
        assert maps.grid is not None
        assert maps.grid.at == (1, 2, 3, 4)
        assert "4 tokens in a row" in maps.provenance.facts.guess


@pytest.mark.parametrize("name", READ)
def test_the_only_reading_is_taken(name: str) -> None:
    given, options, expected = READ[name]
    maps = attnviz.from_attentions(given, **options)
    assert maps.weights.shape == expected.shape
    np.testing.assert_allclose(maps.weights, expected, atol=1e-6)
    assert maps.layer_numbers == ((0, 1, 2, 10) if name == "by number" else tuple(range(len(expected))))


BEAMS = {"attentions": tuple(map(tuple, STEPS)), "beam_indices": STACK}
LAYERS = tuple(map(torch.tensor, CROSS[:, None, :, :, :3] / CROSS[:, None, :, :, :3].sum(-1, keepdims=True)))
BATCH = tuple(layer.expand(3, -1, -1, -1) for layer in LAYERS)
COMPLEX = torch.full((1, 2, 3, 3), 1 / 3, dtype=torch.complex64)
NAMES = [["a", "b", "c"]] * 2
# What is wrong, in which words it is said, what is given, and with which options.
REFUSED: dict[str, tuple[type[InputError], str, Any, dict[str, Any]]] = {
    "no such axes": (InvalidOption, "do not name the 4 axes there are. Each is one of layer", STACK,
                     {"axes": "layer,head,token"}),
    "texts of one": (InvalidSelection, "no row 1 in a batch of 1. There is one text", STACK[None], {"row": 1}),
    "two kinds": (InvalidRecord, 'Choose one, as by array="encoder"', {"encoder": STACK, "cross": CROSS}, {}),
    "beams": (InvalidRecord, "beam search", BEAMS, {"array": "attentions"}),
    "a node alone": (InvalidRecord, "query 1, '1', may attend to no key", (EDGES + EDGES, ALPHA), {}),
    "a row for each weight": (InvalidRecord, "has a row for each weight or edge, in its column 'weight'", LONG, {}),
    "patches somewhere": (InvalidRecord, "which of the 5 tokens are the 4", STACK,
                          {"tokens": WORDS, "keys": attnviz.Grid(2, 2)}),
    "sdpa": (InvalidRecord, "this tuple holds no weights. .*eager", (), {}),
    "words": (InvalidRecord, "this list holds texts, which are not weights", [["a"], "b"], {}),
    "unlike": (InvalidRecord, r"holds 2 arrays: \[0\] \[1, 4, 2, 2\], \[1\] .* Choose one",
               (LAYERS[0][..., :2, :2].softmax(-1), LAYERS[1]), {}),
    "too many names": (InvalidRecord, "4 names in tokens, .* is of 3. If some", LAYERS, {"tokens": list("abcd")}),
    "heads as texts": (InvalidRecord, "2 texts are named, and this is attention of 8 × 3 × 3", np.ones((8, 3, 3)) / 3,
                       {"tokens": NAMES}),
    "one text, two names": (InvalidRecord, "2 texts are named, and this is attention of 2 × 1 × 4", LAYERS,
                            {"tokens": NAMES, "row": 0}),
    "few names": (InvalidRecord, "2 names in tokens, but the attention in weights of 3 queries and 3 keys is of 3",
                  LAYERS, {"tokens": ["a", "b"]}),
    "a string": (InvalidRecord, "tokens are not a list of strings", LAYERS, {"tokens": "the cat sat"}),
    "which": (InvalidSelection, "a batch of 3 texts. Choose one with row=0 to row=2", BATCH, {}),
    "mask": (InvalidRecord, "attention_mask is of 1 × 2 tokens, .* 1 × 3", LAYERS, {"attention_mask": [[1, 1]]}),
    "no numbers": (InvalidRecord, "this array holds no numbers", COMPLEX.real.to("meta"), {}),
    "a tensor of pairs": (InvalidRecord, "holds complex numbers", [COMPLEX], {}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_reading_or_several_is_refused_in_one_line(name: str) -> None:
    kind, said, given, options = REFUSED[name]
    with pytest.raises(kind, match=said) as caught:
        attnviz.from_attentions(given, **options)
    assert "\n" not in str(caught.value)
