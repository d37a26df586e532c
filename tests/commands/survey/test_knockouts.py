"""What a decoder loses without heads is counted per token, held against heads at random, and told from elsewhere."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.commands.survey.files import load_files
from attnviz.commands.survey.knockouts import LEAST, find_chance, matters, measure_costs
from attnviz.commands.survey.survey import HeadCost
from attnviz.errors import InvalidOption
from attnviz.text import Document
from tests.commands.survey.made import run
from tests.events import data
from tests.pretrained import saved

HEADS = [(layer, head) for layer in (2, 5) for head in range(6)]


class Reader:
    """A decoder of which each token costs 1 nat; without 2.1 the second half of repeats costs 3 more."""

    def list_ids(self) -> tuple[int, ...]:
        return tuple(range(50))

    def find_max_ids(self) -> int:
        return 40

    def read_ids(self, text: str) -> list[int]:
        return [*range(len(text))]

    def losses(self, ids: Sequence[int], heads: Sequence[tuple[int, int]] = ()) -> np.ndarray:
        costs = np.ones(len(ids) - 1)
        if (0, 1) in heads and ids[0] == ids[len(ids) // 2]:
            costs[len(ids) // 2 :] += 3.0
        return costs


def test_costs_are_of_each_kind_of_each_head_and_of_as_many_at_random() -> None:
    info: Any = SimpleNamespace(layer_numbers=(2, 5), heads=HEADS)
    kinds: dict[str, Any] = {"first token": ((5, 4), (5, 5)), "induction on repeats": ((2, 1), (2, 3))}
    reader: Any = Reader()
    costs = measure_costs(reader, info, [Document("words of a text", "a", "a")], kinds)
    found = {(cost.kind, cost.heads): (cost.on_repeats, cost.on_texts) for cost in costs}
    assert found["induction on repeats", ((2, 1), (2, 3))] == (3.0, 0.0)
    assert found["induction on repeats", ((2, 1),)] == (3.0, 0.0)
    assert ("first token", ((5, 4),)) not in found  # heads that rest are left out together
    at_random = [cost for cost in costs if not cost.kind]
    assert not {(2, 1), (2, 3)} & {head for cost in at_random for head in cost.heads}
    assert {len(cost.heads) for cost in at_random} == {1, 2}
    assert measure_costs(reader, info, [], {}) == ()


def test_a_kind_matters_where_it_was_found_and_nowhere_else() -> None:
    costs = [HeadCost("", ((0, 0),), 0.2, -0.3), HeadCost("", ((0, 0), (0, 1)), 0.0, 0.0)]
    assert (find_chance(costs, 1), find_chance(costs, 2)) == ((0.2, 0.3), (LEAST, LEAST))
    for lost, on_repeats, on_texts in (
        ((0.5, 0.1), True, False),
        ((0.1, 0.5), False, True),
        ((0.5, 0.5), False, False),
    ):
        cost = HeadCost("kind", ((0, 0),), *lost)
        assert (matters(cost, (0.2, 0.3), True), matters(cost, (0.2, 0.3), False)) == (on_repeats, on_texts)


def test_an_untrained_decoder_has_no_head_to_leave_out(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "model": str(saved(tmp_path / "model", "llama", auto="AutoModelForCausalLM")),
        "split": "train[:3]",
        "null": ("random",),
        "probe": ("repeat",),
        "max_tokens": 32,
    }
    found = run(tmp_path / "out", ablate=("zero",), **options)
    assert [head["kind"] for head in data(found)["heads"]] == [None] * len(data(found)["heads"])
    facts = load_files(tmp_path / "out").facts
    assert facts is not None
    assert facts.costs == ()
    for wrong in ({"ablate": ("mean",)}, {"ablate": ("zero",), "shard": "1/2"}):
        with pytest.raises(InvalidOption, match=r"decoder are replaced by zeros only|names no heads to leave out"):
            run(tmp_path / "x", **options, **wrong)
