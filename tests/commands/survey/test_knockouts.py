"""What a decoder loses without heads is counted per token, held against heads at random, and told from elsewhere."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.commands.survey.effects import draw_circuit
from attnviz.commands.survey.files import load_files
from attnviz.commands.survey.knockouts import LEAST, leave_out_heads, measure_feeds
from attnviz.commands.survey.survey import HeadCost, ModelFacts
from attnviz.errors import InvalidOption
from attnviz.records import AttentionMaps
from attnviz.text import Document
from tests.commands.survey.made import run
from tests.events import data
from tests.made import known, record, tokens
from tests.pretrained import saved

HEADS = [(layer, head) for layer in (2, 5) for head in range(6)]
INFO: Any = SimpleNamespace(
    heads=HEADS, n_heads=6, place=lambda heads: [((2, 5).index(layer), head) for layer, head in heads]
)
READER = ((5, 0),)


class Reader:
    """A decoder of which each token costs 1 nat; without 2.1 the second half of repeats costs 3 more, a list 2.

    Its head 5.0 gives .8 to what stood behind a token's first occurrence, .2 without 2.1 and .7 without 2.2.
    """

    out: Sequence[tuple[int, int]] = ()

    @contextmanager
    def without_heads(self, heads: Sequence[tuple[int, int]]) -> Iterator[None]:
        self.out = heads
        yield
        self.out = ()

    def attention_of_ids(self, ids: Sequence[int], _: str) -> AttentionMaps:
        n = len(ids)
        share = 0.2 if (0, 1) in self.out else 0.7 if (0, 2) in self.out else 0.8
        weights = np.full((2, 6, n, n), 1 / n)
        weights[1, 0] = (1 - share) / (n - 1)
        weights[1, 0, range(n), (np.arange(n) - (n // 2 - 1)) % n] = share
        lowest = min((layer for layer, _ in self.out), default=0)  # layers below give again what they gave
        return record(weights[lowest:], tokens(*map(str, ids)))

    def list_ids(self) -> tuple[int, ...]:
        return tuple(range(50))

    def find_max_ids(self) -> int:
        return 40

    def read_ids(self, text: str) -> list[int]:
        first = 1000 * (", " in text)  # of lists
        return [*range(first, first + len(text))]

    def losses(self, ids: Sequence[int]) -> np.ndarray:
        costs = np.ones(len(ids) - 1)
        if (0, 1) in self.out and ids[0] == ids[len(ids) // 2]:
            costs[len(ids) // 2 :] += 3.0
        if (0, 1) in self.out and ids[0] >= 1000:
            costs += 2.0
        return costs


def test_costs_are_of_each_kind_of_each_head_and_of_as_many_at_random() -> None:
    kinds: dict[str, Any] = {"first token": ((5, 4), (5, 5)), "induction on repeats": ((2, 1), (2, 3))}
    kinds["successor on lists"] = ((2, 1),)
    reader: Any = Reader()
    costs, _ = leave_out_heads(reader, INFO, [Document("words of a text", "a", "a")], kinds)
    found = {(cost.kind, cost.heads): cost.lost for cost in costs}
    assert found["induction on repeats", ((2, 1), (2, 3))] == {"repeats": 3.0, "texts": 0.0}
    assert found["induction on repeats", ((2, 1),)] == {"repeats": 3.0, "texts": 0.0}
    assert found["successor on lists", ((2, 1),)] == {"lists": 2.0, "texts": 0.0}
    assert ("first token", ((5, 4),)) not in found  # heads that rest are left out together
    of_random = [cost.chance for cost in costs if cost.kind.startswith("ind")]
    assert of_random == [{"repeats": LEAST, "texts": LEAST}] * 3  # of heads at random 2.1 is none
    of_layers = [leave_out_heads(reader, INFO, [], {"itself": ((layer, 0),)})[0][0].chance for layer in (2, 5)]
    assert of_layers == [{"texts": LEAST, "repeats": most} for most in (3.0, LEAST)]  # of the same layers
    assert leave_out_heads(reader, INFO, [], {}) == ((), ())


@pytest.mark.parametrize(
    ("kind", "stands"),
    [
        ("induction on repeats", (False, True, False, False)),
        ("punctuation", (False, False, True, False)),
        # There to be looked at on repeats and texts alike.
        ("previous token on repeats", (False, True, False, True)),
        ("3 before", (False, False, True, True)),
        ("first token", (True, True, True, True)),  # It says of itself that it does nothing.
    ],
)
def test_a_label_stands_where_its_kind_was_found_and_nowhere_else(kind: str, stands: tuple[bool, ...]) -> None:
    chance = {"repeats": 0.2, "texts": 0.3}
    lost = [dict(zip(chance, of, strict=True)) for of in ((0.1, 0.1), (0.5, 0.1), (0.1, 0.5), (0.5, 0.5))]
    assert tuple(HeadCost(kind, ((0, 0),), of, chance).stands for of in lost) == stands


def test_who_feeds_whom_is_what_is_left_of_a_pattern_beyond_heads_at_random() -> None:
    reader: Any = Reader()
    kinds: dict[str, Any] = {"previous token on repeats": ((2, 1), (5, 3)), "induction on repeats": READER}
    (feed,) = measure_feeds(reader, INFO, kinds)
    assert (feed.writer, feed.reader) == ((2, 1), (5, 0))
    assert (feed.before, feed.after, feed.least) == pytest.approx((0.8, 0.2, 0.7), abs=1e-6)
    assert measure_feeds(reader, INFO, {"induction on repeats": READER}) == ()
    alone = [
        HeadCost(kind, heads[:1], {"repeats": 3.0, "texts": 0.0}, {"repeats": LEAST, "texts": LEAST})
        for kind, heads in kinds.items()
    ]
    survey: Any = SimpleNamespace(info=INFO, facts=ModelFacts(costs=(*alone,), feeds=(feed,)))
    (graph,) = draw_circuit(survey)
    assert [(node.name, node.note, node.row) for node in graph.nodes] == [
        ("2.1", "previous token", "layer 2"),
        ("5.0", "induction", "layer 5"),
    ]
    assert graph.rows == [[1], [0]]
    assert graph.edges[0].share == pytest.approx(0.75, abs=1e-6)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_an_untrained_decoder_has_no_head_to_leave_out(tmp_path: Path, kind: str) -> None:
    options: dict[str, Any] = {
        "model": str(saved(tmp_path / "model", kind, auto="AutoModelForCausalLM")),
        "split": "train[:3]",
        "probe": ("repeat",),
        "max_tokens": 32,
    }
    found = run(tmp_path / "out", ablate=("zero",), **options)
    assert [head["kind"] for head in data(found)["heads"]] == [None] * len(data(found)["heads"])
    facts = known(load_files(tmp_path / "out").facts)
    assert (facts.costs, facts.feeds) == ((), ())
    for wrong in ({"ablate": ("mean",)}, {"ablate": ("zero",), "shard": "1/2"}):
        with pytest.raises(InvalidOption, match=r"decoder are replaced by zeros only|names no heads to leave out"):
            run(tmp_path / "x", **options, **wrong)
