"""A model and what was tuned from it, run on one text: what each head attends to and writes, and what of it is its own.

A layer of the one is also run on what the same layer of the other read: what differs there comes from its own weights.
A head is put into the other model by what it writes there, so that heads that share keys are told apart. All passes are
of one module, which is called with the weights of the one, of the other, or of noise.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Float64, Int
from torch import Tensor, nn

from attnviz.bounded import MAX_JSON, check_room, parse_json, read_bytes
from attnviz.errors import InvalidModel, raising
from attnviz.models.ablation import find_projecting_layers
from attnviz.models.attention import OutputWeights
from attnviz.models.capture.tap import capture
from attnviz.models.device import enough_memory
from attnviz.models.huggingface.files import ADAPTER
from attnviz.models.huggingface.model import HuggingFaceModel
from attnviz.models.huggingface.weights import others_failure
from attnviz.models.protocols import MEASURED
from attnviz.models.sizes import FLOAT32
from attnviz.store.tensors import read_header

PAIR = "Give a model such as BERT, GPT-2 or Llama, and what was tuned from it."
MERGE = "Merge it: model.merge_and_unload().save_pretrained(folder)."
LORA = "adapter_model.safetensors"
Weights = Mapping[str, Tensor]  # by the names of parameters
Ids = Int[Tensor, "1 token"]


class SeenPass(NamedTuple):
    """What is seen of one pass over a text."""

    weights: Float32[np.ndarray, "layer head query key"]
    states: list[Float[Tensor, "1 token d_model"]]  # what each layer read
    written: list[Float[Tensor, "head token d_model"]]  # what each head of a layer added to the states
    answer: Float[Tensor, "*token choice"]  # logits, or the last states where no head answers

    def compare_writing(self, other: "SeenPass") -> Float64[np.ndarray, "layer head"]:
        """Return how far what a head adds differs, as a share of the states that it is added to."""
        layers = zip(self.written, other.written, self.states, strict=True)
        found = [(one - two).flatten(1).norm(dim=1) / states.norm() for one, two, states in layers]
        return torch.stack(found).cpu().double().numpy()


class TunedPair:
    """A model and what was tuned from it, or a folder of LoRA. Both answer with the head of the tuned one.

    Raises InvalidModel where they are not of one architecture, TooLarge.
    """

    def __init__(self, base: HuggingFaceModel, tuned: HuggingFaceModel | Path) -> None:
        model = base if isinstance(tuned, Path) else tuned
        self._models, loaded = (base, model), model.loaded
        self._root = loaded.model if loaded.headed is None else loaded.headed
        check_room(f"{base.name} and what was tuned", 3 * FLOAT32 * model.n_parameters, model.spec.max_memory)
        self._projections = model.list_projections()
        self._layers = find_projecting_layers(self._root, self._projections)
        if loaded.config.is_encoder_decoder or len(self._layers) != model.n_layers:
            raise InvalidModel(f"not every layer of {model.name} projects what its heads give", hint=PAIR)
        self.tuned: Weights = {name: weight.detach() for name, weight in self._root.named_parameters()}
        self.base = find_same(base, model, self.tuned)
        if isinstance(tuned, Path):
            self.tuned = add_lora(self.base, tuned)
        kind = getattr(self._root.config, "problem_type", None) or "single_label_classification"
        self._chooses = loaded.headed is not None and kind == "single_label_classification"
        self.is_same = all(torch.equal(self.tuned[name], weight) for name, weight in self.base.items())

    def read(self, text: str) -> Ids:
        """Return the ids of a text. Raises InvalidText, InvalidModel where the two models read other tokens."""
        base, tuned = (model.encode(text).source.ids for model in self._models)
        if base != tuned:
            raise InvalidModel("the two models cut a text into other tokens", hint=PAIR)
        return torch.tensor([base], device=self._models[0].device)

    def _run(self, weights: Weights, ids: Ids) -> Tensor:
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with enough_memory(), torch.inference_mode(), others_failure(self._models[1].name):
            found = torch.func.functional_call(self._root, dict(weights), kwargs=given)
            return torch.as_tensor(found["logits"] if "logits" in found else found[0])

    def look(self, weights: Weights, ids: Ids, states: Sequence[Tensor] = ()) -> SeenPass:
        """Run a text, each layer on these states if there are some. Raises InvalidModel, ExecutionError."""
        calls, read, written = list[Any](), list[Tensor](), list[Tensor]()

        def keep_states(_: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            given = args[0] if args else named["hidden_states"]
            if states:
                given.copy_(states[len(read)])
            read.append(given.clone())

        def keep_written(projection: OutputWeights, _: nn.Module, args: tuple[Any, ...]) -> None:
            n_heads, weight = projection.n_heads, projection.weight
            given = args[0].reshape(-1, n_heads, weight.shape[1] // n_heads)
            written.append(torch.einsum("thv,dhv->htd", given, weight.reshape(len(weight), n_heads, -1)))

        with ExitStack() as stack:
            for layer, each in zip(self._layers, self._projections, strict=True):
                stack.enter_context(layer.register_forward_pre_hook(keep_states, with_kwargs=True))
                stack.enter_context(each.module.register_forward_pre_hook(partial(keep_written, each)))
            stack.enter_context(capture(calls.append, MEASURED))
            answer = self._run(weights, ids)
        shape = 1, self._models[1].n_heads, ids.shape[1], ids.shape[1]
        if [call.kept.shape for call in calls] != [shape] * len(self._layers):
            problem = f"not every layer of {self._models[1].name} attends from each token to all by as many heads"
            raise InvalidModel(problem, hint=PAIR)
        return SeenPass(np.concatenate([call.weights for call in calls]), read, written, answer)

    def exchange(
        self, ids: Ids, before: SeenPass, heads: Sequence[tuple[int, int]]
    ) -> Float64[np.ndarray, "side head"]:
        """Put each of these heads of the tuned model into the base, and the base's into the tuned.

        Returns how far the answers then are from the other model's. At first no head is exchanged.
        """
        after, own = self.look(self.tuned, ids), self.look(self.tuned, ids, before.states)
        back = self.look(self.base, ids, after.states)
        found = [(self._measure(after.answer, before.answer), self._measure(before.answer, after.answer))]
        for layer, head in heads:
            put = own.written[layer][head] - before.written[layer][head]
            gone = back.written[layer][head] - after.written[layer][head]
            with_head = self._answer_with(self.base, ids, layer, put)
            without_head = self._answer_with(self.tuned, ids, layer, gone)
            found.append((self._measure(after.answer, with_head), self._measure(before.answer, without_head)))
        return np.array(found).T

    def _answer_with(self, weights: Weights, ids: Ids, layer: int, added: Float[Tensor, "token d_model"]) -> Tensor:
        """Answer where something is added to what the heads of a layer write."""
        module = self._projections[layer].module
        with module.register_forward_hook(lambda _, __, written: written + added.reshape(written.shape)):
            return self._run(weights, ids)

    def _measure(self, goal: Tensor, answer: Tensor) -> float:
        """Return how many nats an answer is away, the mean over tokens of the Kullback-Leibler divergence.

        Of numbers, and of states where there is no answer, it is the mean square of the difference.
        """
        if not self._chooses:
            return float(((goal - answer).cpu().double() ** 2).mean())
        known, other = (each.cpu().double().log_softmax(-1) for each in (goal, answer))
        return float((known.exp() * (known - other)).sum(-1).mean())

    def draw_noise(self, seed: int) -> Weights:
        """Return the base with noise: in each tensor of weights as much, by its norm, as tuning changed it."""
        generator, found = torch.Generator().manual_seed(seed), dict(self.base)
        for name, weight in self.base.items():
            if norm := float((self.tuned[name] - weight).norm()):
                noise = torch.randn(weight.shape, generator=generator)
                found[name] = weight + (noise * (norm / noise.norm())).to(weight.device)
        return found


def find_same(base: HuggingFaceModel, model: HuggingFaceModel, weights: Weights) -> Weights:
    """Return a base's weights by their names in a model; those of a head that the base has not are the model's.

    Raises InvalidModel where the base is of another architecture.
    """
    shapes = []
    for each in (base, model):
        of_body = {name: tuple(of.shape) for name, of in each.loaded.model.named_parameters() if "pooler" not in name}
        shapes.append({"model_type": each.loaded.config.model_type, "number of heads": each.n_heads} | of_body)
    for name in shapes[0] | shapes[1]:
        one, other = (of.get(name, "missing") for of in shapes)
        if one != other:
            raise InvalidModel(f"{name} is {one} in {base.name}, {other} in {model.name}", hint=PAIR)
    of_model, headed = model.loaded.headed, base.loaded.headed
    prefix = "" if of_model is None else f"{of_model.base_model_prefix}."
    given = {} if headed is None else dict(headed.named_parameters())
    given |= {f"{prefix}{name}": weight for name, weight in base.loaded.model.named_parameters()}
    same = {name: weight.detach() for name, weight in given.items() if name in weights}
    return {name: same[name] if name in same and same[name].shape == of.shape else of for name, of in weights.items()}


def add_lora(weights: Weights, folder: Path) -> Weights:
    """Return weights with LoRA of a folder of peft: W + (alpha / r) · B · A (Hu et al. 2021, arXiv:2106.09685).

    Raises InvalidModel for other adapters, and for one of another model.
    """
    from safetensors.torch import load_file

    read_header(folder / LORA, InvalidModel, MERGE)
    told = ValueError, KeyError, TypeError, AttributeError, RuntimeError
    with raising(InvalidModel, f"{folder} is no LoRA of this model:", MERGE, told):
        settings = parse_json(read_bytes(folder / ADAPTER, MAX_JSON, InvalidModel))
        if settings["peft_type"] != "LORA" or settings.get("use_dora") or settings.get("alpha_pattern"):
            raise ValueError("it is of another kind, or has alpha_pattern or DoRA")
        given = {
            name.removeprefix("base_model.model."): each.float() for name, each in load_file(folder / LORA).items()
        }
        found = dict(weights)
        for name, each in given.items():
            module, _, part = name.replace(".base_layer", "").partition(".lora_")
            if not part:  # a whole tensor that was tuned beside it
                found[module] = each.expand_as(weights[module])
            elif part == "B.weight":
                rank = each.shape[1] ** (0.5 if settings.get("use_rslora") else 1)
                added = each @ given[f"{module}.lora_A.weight"] * (settings["lora_alpha"] / rank)
                turned = added.T if settings.get("fan_in_fan_out") else added  # of GPT-2
                found[f"{module}.weight"] = weights[f"{module}.weight"] + turned
            elif part != "A.weight":
                raise ValueError(f"it has {name}")
    return found
