"""Models without some heads are the whole model with those heads hooked by hand, or with other parameters."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from attnviz.errors import InvalidModel, InvalidSelection
from attnviz.models.ablation import answers_without_heads, average_heads
from attnviz.models.checkpoint import Classifier, ClassifierConfig
from attnviz.models.encoder import EncoderBlock, EncoderConfig
from attnviz.models.loading import find_model
from attnviz.models.predicting import probabilities
from attnviz.models.protocols import AttentionModel
from attnviz.specs import ModelOptions
from attnviz.store.cache import caching
from tests.models.captures import replaced
from tests.pretrained import built, saved, tokenizer

TEXT, OTHER = "the acting saved the film but it was not good", "a cat sat on the mat"
CAUSAL = "AutoModelForCausalLM"
# Where what heads give is projected, by the kind of model.
PROJECTED: dict[str, Callable[[Any, int], nn.Module]] = {
    "bert": lambda model, layer: model.bert.encoder.layer[layer].attention.output.dense,
    "distilbert": lambda model, layer: model.distilbert.transformer.layer[layer].attention.out_lin,
    "gpt2": lambda model, layer: model.transformer.h[layer].attn.c_proj,
    "llama": lambda model, layer: model.model.layers[layer].self_attn.o_proj,
    "gpt_neox": lambda model, layer: model.gpt_neox.layers[layer].attention.dense,
}


@contextmanager
def hooked(modules: dict[tuple[int, int], nn.Module]) -> Iterator[None]:
    """By hand: what these heads give is 0 before it is projected."""
    with ExitStack() as stack:
        for (_, head), module in modules.items():
            stack.enter_context(replaced(module, head))
        yield


def opened(name: str | Path, *texts: str, **options: Any) -> AttentionModel:
    return find_model(ModelOptions(model=str(name), device="cpu", **options)).open(texts or (TEXT,))


@pytest.mark.parametrize("kind", PROJECTED)
def test_a_third_party_model_is_as_if_hooked_by_hand(kind: str, tmp_path: Path) -> None:
    auto = CAUSAL if kind not in ("bert", "distilbert") else "AutoModelForSequenceClassification"
    folder = saved(tmp_path, kind, auto=auto)
    maps = opened(folder, without=("0.1,1.3",)).attention(TEXT)

    model = built(kind, "eager", auto)
    modules = {(layer, head): PROJECTED[kind](model, layer) for layer, head in ((0, 1), (1, 3))}
    with torch.no_grad(), hooked(modules):
        own = model(input_ids=tokenizer()(TEXT, return_tensors="pt")["input_ids"], output_attentions=True)
    expected = torch.stack([each[0] for each in own.attentions]).numpy()
    assert np.abs(maps.weights - expected).max() <= 1e-6
    whole = opened(folder).attention(TEXT)
    assert np.abs(maps.weights[1] - whole.weights[1]).max() > 1e-3
    assert np.abs(maps.weights[0] - whole.weights[0]).max() == 0  # nothing was left out before them
    assert maps.provenance.model == f"{whole.provenance.model} without 0.1, 1.3"


def test_a_built_in_model_is_as_if_hooked_by_hand() -> None:
    name, options = "random:4", {"d_model": 16, "layers": 2, "seed": 3}
    maps = opened(name, TEXT, OTHER, without=("0.1", "1.2"), **options).attention(TEXT)
    whole: Any = opened(name, TEXT, OTHER, **options)
    modules = {(0, 1): whole.attentions[0].output, (1, 2): whole.attentions[1].output}
    before = whole.attention(TEXT)
    with hooked(modules):
        expected = whole.attention(TEXT)
    assert np.abs(maps.weights - expected.weights).max() <= 1e-6
    assert np.abs(maps.weights - before.weights).max() > 1e-4


def test_an_answer_is_that_without_the_head() -> None:
    whole: Any = opened("multi")
    ablated = whole.ablate(TEXT, OTHER, ["zero"])[1]["zero"]
    with caching():
        opened("multi")  # it is kept, and stays whole
        for head in (0, 5):
            model: Any = opened("multi", without=(f"0.{head}",))
            (found,) = model.classify([type("Text", (), {"text": TEXT, "name": "a", "label": None})])
            assert found.probabilities == pytest.approx(ablated[head].tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"without": ("0.mean",)}, InvalidSelection, "the mean over heads is not a head"),
        ({"without": ("3.0",)}, InvalidSelection, "no layer 3"),
        ({"without": ("0.9",)}, InvalidSelection, "no head 9"),
        ({"model": "dot", "without": ("0.0",)}, InvalidModel, "no head can be left out of dot: not every layer"),
    ],
)
def test_what_cannot_be_left_out(options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        opened(options.pop("model", "multi"), **options)


def test_layers_that_share_their_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="not every layer projects what its heads give by weights of its own"):
        opened(saved(tmp_path, "albert"), without=("0.1",))


# --- A classifier without one of its heads answers as one does whose parameters say so ---


IDS, OTHER_IDS = np.array([5, 9, 7, 3, 8]), np.array([4, 6, 4])


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
    _, found = answers_without_heads(classifier, layers(classifier), IDS, OTHER_IDS, ["uniform"])
    changed = deepcopy(classifier)
    attention = layers(changed)[1]
    with torch.no_grad():
        query = attention.get_submodule("query")
        for parameter in query.parameters():
            parameter[4:] = 0
        attention.get_parameter("position.bias")[1] = 0
    np.testing.assert_allclose(found["uniform"][3], answer(changed), atol=1e-6)
    _, again = answers_without_heads(changed, layers(changed), IDS, OTHER_IDS, ["uniform"])
    np.testing.assert_allclose(again["uniform"][3], answer(changed), atol=1e-6)


def test_a_head_that_gives_its_mean_over_texts_is_one_of_a_bias_alone(classifier: Classifier) -> None:
    """That of all tokens of all texts, not of the text itself, nor of each text alike."""
    outputs = [layer.get_submodule("output") for layer in layers(classifier)]

    def mean_outputs(*texts: Any) -> Any:
        with torch.inference_mode():
            passes = [partial(classifier, torch.tensor([[*ids]]), torch.ones(1, len(ids)) > 0) for ids in texts]
            return np.stack([each.numpy() for each in average_heads(outputs, passes)])

    means, of_each = mean_outputs(IDS, OTHER_IDS), [mean_outputs(ids) for ids in (IDS, OTHER_IDS)]
    np.testing.assert_allclose(means, (5 * of_each[0] + 3 * of_each[1]) / 8, atol=1e-12)
    _, found = answers_without_heads(classifier, layers(classifier), IDS, OTHER_IDS, ["mean"], means)
    for place in range(4):
        changed = deepcopy(classifier)
        layer, head = divmod(place, 2)
        output, part = layers(changed)[layer].get_submodule("output"), slice(4 * head, 4 * head + 4)
        with torch.no_grad():
            weight = output.get_parameter("weight")
            output.get_parameter("bias").add_(weight[:, part] @ torch.from_numpy(means[layer, part]).float())
            weight[:, part] = 0
        np.testing.assert_allclose(found["mean"][place], answer(changed), atol=1e-6)
    _, own = answers_without_heads(classifier, layers(classifier), IDS, OTHER_IDS, ["mean"], of_each[0])
    assert (abs(found["mean"] - own["mean"]).max(axis=1) > 1e-6).all()


def test_the_queries_of_the_text_itself_change_nothing_and_those_of_another_do(classifier: Classifier) -> None:
    whole, own = answers_without_heads(classifier, layers(classifier), IDS, IDS, ["queries"])
    np.testing.assert_allclose(whole[0], answer(classifier), atol=1e-7)
    np.testing.assert_allclose(own["queries"], np.repeat(whole, 4, axis=0), atol=1e-6)
    _, others = answers_without_heads(classifier, layers(classifier), IDS, OTHER_IDS, ["queries"])
    assert (abs(others["queries"] - whole).max(axis=1) > 1e-6).all()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in classifier.modules())


def test_losses_of_a_decoder_without_heads_are_those_of_one_hooked_by_hand(tmp_path: Path) -> None:
    model: Any = find_model(ModelOptions(model=str(saved(tmp_path, "llama", auto=CAUSAL)), device="cpu")).answering()
    model = model.open(())
    ids, heads, ran = model.read_ids(TEXT), [(1, 0), (1, 1)], list[object]()
    modules = {(layer, head): PROJECTED["llama"](model.loaded.headed, layer) for layer, head in heads}
    batch = torch.tensor([ids])
    with torch.inference_mode(), hooked(modules):
        logits = model.loaded.headed(batch).logits[0, :-1]
    by_hand = -logits.log_softmax(-1).gather(1, batch[0, 1:, None])[:, 0]
    model.loaded.model.layers[0].mlp.register_forward_hook(lambda *_: ran.append(0))
    for _ in range(2):  # the second time layers below the first of the heads give what they gave
        with model.without_heads(heads):
            assert model.losses(ids) == pytest.approx(by_hand.numpy(), abs=1e-5)
    assert len(ran) == 2  # one more showed which module projects
    assert model.losses(ids) != pytest.approx(by_hand.numpy(), abs=1e-5)  # and all is as it was before
