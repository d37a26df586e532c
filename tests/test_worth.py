"""What a classifier loses where its heads look elsewhere: of models whose attention is known."""

import numpy as np
import pytest
import torch

from attnviz.models.checkpoint import Classifier, ClassifierConfig
from attnviz.models.encoder import EncoderBlock, EncoderConfig
from tests.benchmarks.worth import ALIKE, OTHER, describe_costs, measure_costs

TEXTS = [np.random.default_rng(n).integers(4, 50, 5 + n % 9) for n in range(30)]


@pytest.fixture
def classifier() -> Classifier:
    torch.manual_seed(0)
    made = Classifier(ClassifierConfig(EncoderConfig(50, 16, 2, 2, 32, max_distance=8))).eval()
    for block in made.encoder.blocks:
        assert isinstance(block, EncoderBlock)
        for part in ("query", "key", "value"):
            torch.nn.init.normal_(block.attention.get_submodule(part).weight, std=2.0)  # type: ignore[arg-type]
    return made


def answers(classifier: Classifier) -> np.ndarray:
    """As what is right, so that each change shows."""
    with torch.inference_mode():
        found = [classifier(torch.tensor(ids)[None], torch.ones(1, len(ids), dtype=torch.bool)) for ids in TEXTS]
    return np.array([each.argmax().item() for each in found])


def test_heads_that_attend_to_all_alike_lose_nothing(classifier: Classifier) -> None:
    for block in classifier.encoder.blocks:
        torch.nn.init.zeros_(block.get_submodule("attention.query").weight)  # type: ignore[arg-type]
    right = measure_costs(classifier, TEXTS, answers(classifier))
    assert list(right)[:3] == ["", ALIKE, OTHER]
    assert len(right) == 3 + 2 * 2  # each head of each layer
    assert all(each.all() for each in right.values())


def test_heads_that_look_somewhere_lose_it(classifier: Classifier) -> None:
    right = measure_costs(classifier, TEXTS, answers(classifier))
    assert right[""].all()
    costs = {cost.what: cost for cost in describe_costs(right)}
    for what in (ALIKE, OTHER):
        assert costs[what].texts.value == pytest.approx(1 - right[what].mean())
        assert not right[what].all()
        assert costs[what].texts.low < costs[what].texts.value < costs[what].texts.high
    by_head = [cost.p_value for what, cost in costs.items() if ", head " in what]
    assert len(by_head) == 4
    assert costs[ALIKE].p_value < max(by_head)
