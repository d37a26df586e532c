"""A classifier without one of its heads answers as one does whose parameters say so."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch

from attnviz.models.ablation import answers_without_heads, mean_outputs
from attnviz.models.classifier import Classifier, ClassifierConfig
from attnviz.models.encoder import EncoderBlock, EncoderConfig
from attnviz.models.predicting import probabilities

IDS, OTHER = np.array([5, 9, 7, 3, 8]), np.array([4, 6, 4])


@pytest.fixture
def classifier() -> Classifier:
    torch.manual_seed(0)
    encoder = EncoderConfig(n_words=12, d_model=8, n_heads=2, n_layers=2, d_feed_forward=16, max_distance=3)
    return Classifier(ClassifierConfig(encoder, ("neg", "pos"), "mean")).eval()


def layers(classifier: Classifier) -> list[torch.nn.Module]:
    return [block.attention for block in classifier.encoder.blocks if isinstance(block, EncoderBlock)]


def answer(classifier: Classifier, ids: np.ndarray = IDS) -> np.ndarray:
    with torch.inference_mode():
        given = torch.from_numpy(ids)[None]
        answers = probabilities(classifier, classifier(given, torch.ones_like(given, dtype=torch.bool)))
    return np.asarray(answers[0])


def test_a_head_that_attends_to_all_alike_is_one_that_asks_nothing(classifier: Classifier) -> None:
    """Without queries and without a bias by distance, every score is 0."""
    _, found = answers_without_heads(classifier, layers(classifier), IDS, OTHER, ["uniform"])
    changed = deepcopy(classifier)
    attention = layers(changed)[1]
    with torch.no_grad():
        query = attention.get_submodule("query")
        for parameter in query.parameters():
            parameter[4:] = 0
        attention.get_parameter("position.bias")[1] = 0
    np.testing.assert_allclose(found["uniform"][3], answer(changed), atol=1e-6)
    _, again = answers_without_heads(changed, layers(changed), IDS, OTHER, ["uniform"])
    np.testing.assert_allclose(again["uniform"][3], answer(changed), atol=1e-6)


def test_a_head_that_gives_its_mean_over_texts_is_one_of_a_bias_alone(classifier: Classifier) -> None:
    """That of all tokens of all texts, not of the text itself, nor of each text alike."""
    means = mean_outputs(classifier, layers(classifier), [IDS, OTHER])
    of_each = [mean_outputs(classifier, layers(classifier), [ids]) for ids in (IDS, OTHER)]
    np.testing.assert_allclose(means, (5 * of_each[0] + 3 * of_each[1]) / 8, atol=1e-12)
    _, found = answers_without_heads(classifier, layers(classifier), IDS, OTHER, ["mean"], means)
    for place in range(4):
        changed = deepcopy(classifier)
        layer, head = divmod(place, 2)
        output, part = layers(changed)[layer].get_submodule("output"), slice(4 * head, 4 * head + 4)
        with torch.no_grad():
            weight = output.get_parameter("weight")
            output.get_parameter("bias").add_(weight[:, part] @ torch.from_numpy(means[layer, part]).float())
            weight[:, part] = 0
        np.testing.assert_allclose(found["mean"][place], answer(changed), atol=1e-6)
    _, own = answers_without_heads(classifier, layers(classifier), IDS, OTHER, ["mean"], of_each[0])
    assert (abs(found["mean"] - own["mean"]).max(axis=1) > 1e-6).all()


def test_the_queries_of_the_text_itself_change_nothing_and_those_of_another_do(classifier: Classifier) -> None:
    whole, own = answers_without_heads(classifier, layers(classifier), IDS, IDS, ["queries"])
    np.testing.assert_allclose(whole[0], answer(classifier), atol=1e-7)
    np.testing.assert_allclose(own["queries"], np.repeat(whole, 4, axis=0), atol=1e-6)
    _, others = answers_without_heads(classifier, layers(classifier), IDS, OTHER, ["queries"])
    assert (abs(others["queries"] - whole).max(axis=1) > 1e-6).all()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in classifier.modules())
