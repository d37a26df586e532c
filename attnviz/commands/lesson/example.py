"""The example that ships with attnviz, three tokens to be done by hand: its vectors and its published numbers."""

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from attnviz.commands.lesson.content import pack
from attnviz.words import Language, phrase

FILE = files("attnviz").joinpath("data/worked-example.toml")


def describe_example(language: Language) -> dict[str, Any]:
    """Return what a page needs of the one head of width 4, then of the two of width 2.

    The page works out what the formula gives, and judges the published numbers by it.
    """
    found = tomllib.loads(FILE.read_text(encoding="utf-8"))
    pieces = found["tokens"][language]
    return {
        "text": " ".join(pieces),
        "tokens": [{"piece": piece, "special": False} for piece in pieces],
        "nQueries": 1,  # that of the first token is given, and no other
        "decimals": found["decimals"],
        "models": [_describe_heads(phrase(f"judge.{part}", language), found[part]) for part in ("single", "multi")],
    }


def _describe_heads(name: str, heads: Sequence[dict[str, Any]]) -> dict[str, Any]:
    keys, values = (np.array([head[vectors] for head in heads]) for vectors in ("keys", "values"))
    queries = np.zeros_like(keys)
    queries[:, 0] = [head["query"] for head in heads]
    n_heads, _, d_head = keys.shape
    layer = {"number": 0, "dHead": d_head, "vectors": pack(np.stack([queries, keys, values])), "bias": None}
    published = [{of: head[of] for of in ("weights", "output")} for head in heads]
    sizes = {"nLayers": 1, "nHeads": n_heads, "dModel": n_heads * d_head}
    return {"name": name, "trained": True, "projects": True, **sizes, "layers": [layer], "published": published}
