"""Our own models at work: text in, AttentionMaps out, and one query worked out by hand."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor, nn

from attnviz.bounded import check_room
from attnviz.errors import ExecutionError, InvalidOption
from attnviz.models.attention import AttentionOutput, DotAttention, MultiHeadAttention, Norms, OutputWeights, causal
from attnviz.models.device import enough_memory, seeded, versions
from attnviz.models.encoder import DotEncoder, Encoder, choose_heads, encoder_factors
from attnviz.models.protocols import EVERY, LayersAndHeads
from attnviz.models.sizes import Work, check_memory
from attnviz.models.tokenizer import Encoding, TextTokenizer
from attnviz.records import AttentionMaps, Facts, Provenance, Setting
from attnviz.records.attention_trace import VerifiedTrace
from attnviz.records.factored import FactoredMaps
from attnviz.specs import ModelOptions

Look = Callable[[int, Tensor, AttentionOutput], None]  # at a layer, what its attention gets, and what it gives


class PassEnded(BaseException):
    """All that was to be seen of a pass. No error: what comes after it is not worked out."""


@dataclass(frozen=True, eq=False)
class EncoderModel:
    """A tokenizer and an encoder, with all that their records have to say about them."""

    name: str
    revision: str
    trained: bool
    tokenizer: TextTokenizer
    encoder: Encoder | DotEncoder
    device: torch.device
    spec: ModelOptions
    settings: tuple[tuple[str, Setting], ...]
    made_for_tokens: int | None = None

    @cached_property
    def attentions(self) -> tuple[MultiHeadAttention | DotAttention, ...]:
        """List the attention modules, one per layer."""
        return tuple(each for each in self.encoder.modules() if isinstance(each, MultiHeadAttention | DotAttention))

    @property
    def n_layers(self) -> int:
        """Count the layers."""
        return self.encoder.config.n_layers

    @property
    def n_heads(self) -> int:
        """Count the heads of a layer."""
        return self.encoder.config.n_heads

    @property
    def d_model(self) -> int:
        """Return the width of the hidden states."""
        return self.encoder.config.d_model

    @property
    def n_parameters(self) -> int:
        """Count the learned numbers of the model."""
        return size_of(self.encoder)

    @property
    def n_attention_parameters(self) -> int:
        """Count the learned numbers in the projections of attention."""
        return sum(map(size_of, self.attentions))

    def encode(self, text: str, choice: LayersAndHeads = EVERY) -> Encoding:
        """Return the tokens that will attend.

        Raises InvalidText without tokens, TooLarge before anything large is allocated: weights of the chosen heads.
        """
        encoding = self.tokenizer.encode(text, self.spec.max_tokens, self.spec.keep)
        check_memory(self._work(len(encoding.ids), choice), self.spec.max_memory)
        return encoding

    def _work(self, n_tokens: int, choice: LayersAndHeads) -> Work:
        sizes = self.n_heads, self.n_layers, self.d_model, self.n_parameters
        return Work(n_tokens, n_tokens, *sizes, n_maps=choice.n_maps(self.n_layers, self.n_heads))

    def map_size(self, text: str) -> tuple[int, int]:
        """Return how many queries and keys its maps will have. Raises as `encode` does."""
        n_tokens = len(self.encode(text).ids)
        return n_tokens, n_tokens

    def attention(self, text: str, text_name: str = "text", choice: LayersAndHeads = EVERY) -> AttentionMaps:
        """Attend over one text, of all layers and heads or of some.

        Raises as `encode` does, InvalidSelection for a layer or head that there is not.
        """
        return self._record(self.encode(text, choice), text, text_name, choice)

    def list_ids(self) -> tuple[int, ...]:
        """List those of its vocabulary that are no special tokens, in order."""
        return self.tokenizer.ordinary_ids

    def find_max_ids(self) -> int | None:
        """Return how many ids it reads at a time beside its markers; None for no limit."""
        return None if self.spec.max_tokens is None else self.spec.max_tokens - len(self.tokenizer.encode_ids(()).ids)

    def attention_of_ids(self, ids: Sequence[int], text_name: str = "ids") -> AttentionMaps:
        """Attend over tokens that are no text's. Raises TooLarge before anything large is allocated."""
        encoding = self.tokenizer.encode_ids(ids)
        check_memory(self._work(len(encoding.ids), EVERY), self.spec.max_memory)
        return self._record(encoding, " ".join(encoding.tokens.pieces), text_name, EVERY)

    def list_projections(self) -> list[OutputWeights]:
        """List the linear layers that read the heads of each layer, as far as there are some."""
        projected = (each for each in self.attentions if isinstance(each, MultiHeadAttention))
        return [OutputWeights(each.output, self.n_heads) for each in projected]

    def _record(self, encoding: Encoding, text: str, text_name: str, choice: LayersAndHeads) -> AttentionMaps:
        layers, heads = choice.layers_of(self.n_layers, self.name), choice.heads_of(self.n_heads, self.name)
        attendable, n_tokens, norms = self.attendable(encoding), len(encoding.ids), list[Norms]()
        weights = np.empty((len(layers), len(heads), n_tokens, n_tokens), dtype=np.float32)

        def keep(layer: int, given: Tensor, attended: AttentionOutput) -> None:
            nonlocal weights
            if layer not in layers:
                return
            assert attended.weights is not None
            chosen = attended.weights if len(heads) == self.n_heads else attended.weights[list(heads)]
            if len(layers) == 1:
                weights = chosen.cpu().numpy()[None]  # not copied
            else:
                torch.from_numpy(weights[layers.index(layer)]).copy_(chosen)  # at once: each copy waits for the device
            attention = self.attentions[layer]
            if choice.value_norms and isinstance(attention, MultiHeadAttention):
                norms.append(attention.value_norms(given)[list(heads)])

        self._watch(encoding, attendable, layers[-1], keep)
        return AttentionMaps(
            weights=weights,
            queries=encoding.tokens,
            keys=encoding.tokens,
            attendable=attendable.numpy(),
            provenance=self.provenance(text, text_name, encoding.n_tokens, choice),
            layer_numbers=layers,
            head_numbers=heads,
            value_norms=np.stack(norms) if norms else None,
        )

    def attend_factored(self, text: str, text_name: str = "text", choice: LayersAndHeads = EVERY) -> FactoredMaps:
        """Attend over one text, worked out on the CPU, of which only what weights are worked out from is held.

        Raises InvalidOption where that is not known, InvalidText without tokens, TooLarge as `encode` does,
        InvalidSelection for a layer or head that there is not.
        """
        if not isinstance(self.encoder, Encoder):
            raise InvalidOption(f"{self.name} has no q and k to record", hint="Leave out factored.")
        if self.device.type != "cpu":  # only the CPU's kernel gives the sums of the rows' exponentials
            on_cpu = replace(self, encoder=deepcopy(self.encoder).cpu(), device=torch.device("cpu"))
            return on_cpu.attend_factored(text, text_name, choice)
        layers, heads = choice.layers_of(self.n_layers, self.name), choice.heads_of(self.n_heads, self.name)
        encoding = self.tokenizer.encode(text, self.spec.max_tokens, self.spec.keep)
        n_tokens = len(encoding.ids)
        work = self._work(n_tokens, choice)
        check_room(f"{n_tokens:,} tokens", work.fixed + work.per_token * n_tokens, self.spec.max_memory)
        with enough_memory(), torch.inference_mode():
            every = encoder_factors(self.encoder, torch.tensor(encoding.ids), layers[-1], causal=self.spec.causal)
            chosen = [(choose_heads(of, heads), norms) for layer, (of, norms) in enumerate(every) if layer in layers]
        return FactoredMaps(
            queries=encoding.tokens,
            keys=encoding.tokens,
            provenance=self.provenance(text, text_name, encoding.n_tokens, choice),
            layer_numbers=layers,
            head_numbers=heads,
            factors=tuple(factors for factors, _ in chosen),
            value_norms=np.stack([norms[list(heads)] for _, norms in chosen]),
        )

    def with_first_weights(self, seed: int) -> "EncoderModel":
        """Return the same encoder before training. Not for a model without attention parameters."""
        with seeded(seed):
            encoder = Encoder(self.encoder.config)
        return replace(self, encoder=encoder.eval().to(self.device))

    def trace(self, text: str, text_name: str, layer: int, query: int) -> VerifiedTrace:
        """Trace one query's arithmetic in a layer. Raises ExecutionError where the model's own result differs."""
        from attnviz.models.attention import TOLERANCE, work_through

        encoding, attention = self.encode(text), self.attentions[layer]
        attendable, seen = self.attendable(encoding), list[tuple[Tensor, AttentionOutput]]()
        self._watch(encoding, attendable, layer, lambda _, *of_layer: seen.append(of_layer))
        given, attended = seen[layer]
        states, of_query = given.cpu().double().numpy(), attendable[query].numpy()
        worked = work_through(attention, encoding.tokens, query, states, of_query, self.n_heads)
        assert attended.weights is not None
        model_output = attended.output[query].cpu().double().numpy()
        model_weights = attended.weights[:, query].cpu().double().numpy()
        error = float(np.abs(worked.output - model_output).max())
        weights_error = float(np.abs(np.stack([head.weights for head in worked.heads]) - model_weights).max())
        allowed = TOLERANCE * float(np.abs(model_output).max())
        if not (error <= allowed and weights_error <= TOLERANCE):  # written so that NaN is wrong too
            raise ExecutionError(
                f"the arithmetic does not give what layer {layer} of the model gives: the output is off by "
                f"{error:.3g}, the weights by {weights_error:.3g}; allowed are {allowed:.3g} and {TOLERANCE:g}"
            )
        provenance = self.provenance(text, text_name, encoding.n_tokens)
        checked = model_output, error, weights_error, allowed
        return VerifiedTrace(
            worked, provenance, layer, self.n_layers, dict(self.settings).get("norm") == "pre", *checked
        )

    def attendable(self, encoding: Encoding) -> Bool[Tensor, "query key"]:
        """Tell who may attend to whom: with `causal` nobody to what comes later."""
        n_tokens = len(encoding.ids)
        return causal(n_tokens) if self.spec.causal else torch.ones(1, 1, dtype=torch.bool).expand(n_tokens, n_tokens)

    def _watch(self, encoding: Encoding, attendable: Bool[Tensor, "query key"], last: int, look: Look) -> None:
        """Run a text through, and show each attention up to that of the `last` layer, behind which nothing is run."""

        def show(layer: int, _: nn.Module, given: tuple[Tensor, ...], attended: AttentionOutput) -> None:
            look(layer, given[0], attended)
            if layer == last:
                raise PassEnded

        with ExitStack() as stack:
            for layer, attention in enumerate(self.attentions):
                stack.enter_context(attention.register_forward_hook(partial(show, layer)))
            ids = torch.tensor(encoding.ids, device=self.device)
            with suppress(PassEnded), enough_memory(), torch.inference_mode():
                self.encoder(ids, attendable.to(self.device), need_weights=True)

    def provenance(self, text: str, text_name: str, n_tokens: int, choice: LayersAndHeads = EVERY) -> Provenance:
        """Return where a record of this text comes from; `n_tokens` counts the whole text, also what was cut off."""
        return Provenance(
            model=self.name,
            revision=self.revision,
            trained=self.trained,
            text_sha256=hashlib.sha256(text.encode("utf-8")).hexdigest(),
            text_name=text_name,
            settings=(
                *self.settings,
                ("causal", self.spec.causal),
                ("max_tokens", self.spec.max_tokens),
                ("keep", self.spec.keep),
                ("tokens_in_text", n_tokens),
                ("tokenizer_sha256", self.tokenizer.sha256),
                ("vocabulary_entries", len(self.tokenizer)),
            ),
            versions=versions("tokenizers"),
            facts=Facts(
                causal=self.spec.causal,
                keep=self.spec.keep,
                tokens_in_text=n_tokens,
                made_for_tokens=self.made_for_tokens,
                n_layers_in_model=self.n_layers,
                n_heads_in_model=None if choice == EVERY else self.n_heads,
            ),
        )


def size_of(module: nn.Module) -> int:
    """Return how many parameters it has."""
    return sum(parameter.numel() for parameter in module.parameters())
