"""Sequences of the task on which several heads help, and what models report of them with any of their heads off."""

from base64 import b64encode
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from attnviz.models.loading import find_model
from attnviz.models.protocols import Ablatable
from attnviz.specs import ModelOptions

MODELS = ("recall:1", "recall:8")  # the first of the networks of docs/heads.md
LETTERS = "abcdefgh"
N_TOKENS, N_VALUES = 24, 16
SEEDS = range(2, 8)  # the first six in a row of which one head fails as often as in thousands: two (.674 right)


def draw_sequence(seed: int) -> tuple[list[str], list[int]]:
    """Return the tokens of a sequence as these models were trained on, and the value of each letter."""
    random = Random(seed)  # noqa: S311  # nothing is kept secret by it
    values = [random.randrange(N_VALUES) for _ in range(N_TOKENS)]
    places = random.sample(range(N_TOKENS), len(LETTERS))
    letters = dict(zip(places, LETTERS, strict=True))
    tokens = [f"{letters.get(place, '')}{value}" for place, value in enumerate(values)]
    return tokens, [values[place] for place in places]


def describe_recall() -> dict[str, Any]:
    """Return sequences, and by model what it reports of each letter with some of its heads off.

    Bit h of a choice says that head h is off: [sequence, choice, letter].
    """
    sequences = [draw_sequence(seed) for seed in SEEDS]
    return {
        "letters": list(LETTERS),
        "sequences": [{"tokens": tokens, "values": values} for tokens, values in sequences],
        "models": [_describe_model(name, [" ".join(tokens) for tokens, _ in sequences]) for name in MODELS],
    }


def _describe_model(name: str, texts: Sequence[str]) -> dict[str, Any]:
    model = find_model(ModelOptions(model=name)).open(())
    assert isinstance(model, Ablatable)
    kept = np.arange(2**model.n_heads)[:, np.newaxis] >> np.arange(model.n_heads) & 1 == 0
    labels = [[model.answers.labels.index(f"{letter}{value}") for value in range(N_VALUES)] for letter in LETTERS]
    answers = np.stack([model.answer_with_heads(text, 0, kept) for text in texts])
    reported = answers[..., labels].argmax(axis=-1).astype(np.uint8)
    return {"name": name, "nHeads": model.n_heads, "reported": b64encode(reported.tobytes()).decode("ascii")}
