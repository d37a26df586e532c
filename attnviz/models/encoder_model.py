"""Our own models at work: text in, AttentionMaps out, and one query worked out by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnviz.bounded import check_room
from attnviz.errors import ExecutionError, InvalidOption
from attnviz.models.attention import AttentionOutput, Norms, causal, not_padding, own_norms
from attnviz.models.device import enough_memory, seeded, versions
from attnviz.models.encoder import Encoder, EncoderBlock
from attnviz.models.protocols import EVERY, LayersAndHeads
from attnviz.models.sizes import Work, check_memory
from attnviz.models.tokenizer import Encoding, TextTokenizer
from attnviz.models.without import OutputWeights, remove_heads
from attnviz.records import AttentionMaps, Facts, Provenance, Setting
from attnviz.specs import ModelOptions

if TYPE_CHECKING:
    from attnviz.records.attention_trace import VerifiedTrace
    from attnviz.records.factored import FactoredMaps

# From ids and what may be attended to, the weights of each layer in turn.
Forward = Callable[[Int[Tensor, " token"], Bool[Tensor, "#token token"]], Iterable[Float[Tensor, "head token token"]]]


@dataclass(frozen=True, eq=False)
class EncoderModel:
    """A tokenizer and a forward pass, with all that their records have to say about them."""

    name: str
    revision: str
    trained: bool
    n_layers: int
    n_heads: int
    d_model: int
    n_parameters: int
    n_attention_parameters: int  # of them in the projections of attention
    tokenizer: TextTokenizer
    forward: Forward
    attentions: tuple[nn.Module, ...]  # that `forward` calls, one per layer, each giving `AttentionOutput`
    device: torch.device
    spec: ModelOptions
    settings: tuple[tuple[str, Setting], ...]
    made_for_tokens: int | None = None
    encoder: Encoder | None = None  # that `forward` is of, where its factors are known

    def encode(self, text: str, choice: LayersAndHeads = EVERY) -> Encoding:
        """Return the tokens that will attend.

        Raises InvalidText without tokens, TooLarge before anything large is allocated: weights of the chosen heads.
        """
        if self.spec.max_tokens is not None and self.spec.max_tokens < 1:
            raise InvalidOption(f"--max-tokens {self.spec.max_tokens} is too small", hint="It is at least 1.")
        if self.spec.show_padding and self.spec.max_tokens is None:
            raise InvalidOption("--show-padding pads up to --max-tokens, which is not given", hint="Give both.")
        encoding = self.tokenizer.encode(text, self.spec.max_tokens, self.spec.keep)
        n_padded = max(len(encoding.ids), (self.spec.max_tokens or 0) if self.spec.show_padding else 0)
        self._check_room(n_padded, choice)
        return self.tokenizer.pad(encoding, n_padded) if self.spec.show_padding else encoding

    def _check_room(self, n_tokens: int, choice: LayersAndHeads) -> None:
        work = Work(n_tokens, n_tokens, self.n_heads, self.n_layers, self.d_model, self.n_parameters)
        check_memory(replace(work, n_maps=choice.n_maps(self.n_layers, self.n_heads)), self.spec.max_memory)

    def map_size(self, text: str) -> tuple[int, int]:
        """Return how many queries and keys its maps will have. Raises as `encode` does."""
        n_tokens = len(self.encode(text).ids)
        return n_tokens, n_tokens

    def attention(self, text: str, text_name: str = "text", choice: LayersAndHeads = EVERY) -> AttentionMaps:
        """Attend over one text, of all layers and heads or of some.

        Raises as `encode` does, InvalidSelection for a layer or head that there is not.
        """
        return self._record(self.encode(text, choice), text, text_name, choice, self.attentions)

    @property
    def ordinary_ids(self) -> tuple[int, ...]:
        """Those of its vocabulary that are no special tokens, in order."""
        return self.tokenizer.ordinary_ids

    @property
    def max_ids(self) -> int | None:
        """How many it reads at a time beside its markers; None for no limit."""
        return None if self.spec.max_tokens is None else self.spec.max_tokens - len(self.tokenizer.encode_ids(()).ids)

    def attention_of_ids(self, ids: Sequence[int], text_name: str = "ids") -> AttentionMaps:
        """Attend over tokens that are no text's. Raises TooLarge before anything large is allocated."""
        encoding = self.tokenizer.encode_ids(ids)
        self._check_room(len(encoding.ids), EVERY)
        return self._record(encoding, " ".join(encoding.tokens.pieces), text_name, EVERY, self.attentions)

    def remove_heads(self, texts: Iterable[str]) -> None:
        """Leave heads out for good, as its options say. Raises InvalidSelection, InvalidModel: see `remove_heads`."""
        remove_heads(self, self.spec, texts, self.attention_to_measure)

    def list_projections(self) -> list[OutputWeights]:
        """List the linear layers that read the heads of each layer, as far as there are some."""
        outputs = (getattr(attention, "output", None) for attention in self.attentions)
        return [OutputWeights(output, self.n_heads) for output in outputs if isinstance(output, nn.Linear)]

    def attention_to_measure(self, text: str, text_name: str = "text") -> AttentionMaps:
        """Attend without value norms, which no measure reads. Raises as it does."""
        return self._record(self.encode(text), text, text_name, EVERY, norms_of=())

    def _record(
        self, encoding: Encoding, text: str, text_name: str, choice: LayersAndHeads, norms_of: Sequence[nn.Module]
    ) -> AttentionMaps:
        layers, heads = self._choose(choice)
        attendable = self.attendable(encoding)
        with own_norms(norms_of, self.n_heads) as norms:
            weights = self._weights(encoding.ids, attendable, layers, heads)
        return AttentionMaps(
            weights=weights,
            queries=encoding.tokens,
            keys=encoding.tokens,
            attendable=attendable.numpy(),
            provenance=self.provenance(text, text_name, encoding.n_tokens, choice),
            layer_numbers=layers,
            head_numbers=heads,
            value_norms=_choose_norms(norms, layers, heads),
        )

    def _choose(self, choice: LayersAndHeads) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the numbers of layers and heads. Raises InvalidSelection for one that there is not."""
        return choice.layers_of(self.n_layers, self.name), choice.heads_of(self.n_heads, self.name)

    def attend_factored(self, text: str, text_name: str = "text", choice: LayersAndHeads = EVERY) -> FactoredMaps:
        """Attend over one text, worked out on the CPU, of which only what weights are worked out from is held.

        Raises InvalidOption where that is not known, InvalidText without tokens, TooLarge as `encode` does,
        InvalidSelection for a layer or head that there is not.
        """
        from attnviz.models.encoder import choose_heads, encoder_factors
        from attnviz.records.factored import FactoredMaps

        if self.encoder is None:
            raise InvalidOption(f"{self.name} has no q and k to record", hint="Leave out factored.")
        if self.device.type != "cpu":  # only the CPU's kernel gives the sums of the rows' exponentials
            on_cpu = self._with(deepcopy(self.encoder), torch.device("cpu"))
            return on_cpu.attend_factored(text, text_name, choice)
        layers, heads = self._choose(choice)
        encoding = self.tokenizer.encode(text, self.spec.max_tokens, self.spec.keep)
        n_tokens = len(encoding.ids)
        work = Work(n_tokens, n_tokens, self.n_heads, self.n_layers, self.d_model, self.n_parameters)
        check_room(f"{n_tokens:,} tokens", work.fixed + work.per_token * n_tokens, self.spec.max_memory)
        with enough_memory(), torch.inference_mode(), own_norms(self.attentions, self.n_heads) as norms:
            every = encoder_factors(self.encoder, torch.tensor(encoding.ids), layers[-1], causal=self.spec.causal)
            factors = tuple(choose_heads(of, heads) for layer, of in enumerate(every) if layer in layers)
        return FactoredMaps(
            queries=encoding.tokens,
            keys=encoding.tokens,
            provenance=self.provenance(text, text_name, encoding.n_tokens, choice),
            layer_numbers=layers,
            head_numbers=heads,
            factors=factors,
            value_norms=_choose_norms(norms, layers, heads),
        )

    def with_first_weights(self, seed: int) -> EncoderModel:
        """Return the same encoder before training. Not for a model without attention parameters."""
        assert self.encoder is not None
        with seeded(seed):
            encoder = Encoder(self.encoder.config)
        return self._with(encoder, self.device)

    def _with(self, encoder: Encoder, device: torch.device) -> EncoderModel:
        parts = encoder_parts(encoder, device)
        return EncoderModel(**{field.name: getattr(self, field.name) for field in fields(EncoderModel)} | parts)

    def trace(self, text: str, text_name: str, layer: int, query: int) -> VerifiedTrace:
        """Trace one query's arithmetic in a layer. Raises ExecutionError where it gives not what the model gives."""
        from attnviz.models.arithmetic import TOLERANCE, work_through
        from attnviz.records.attention_trace import VerifiedTrace

        encoding, attention = self.encode(text), self.attentions[layer]
        attendable, seen = self.attendable(encoding), list[tuple[Tensor, AttentionOutput]]()

        def look(_: nn.Module, given: tuple[Tensor, ...], attended: AttentionOutput) -> None:
            seen.append((given[0], attended))

        with attention.register_forward_hook(look), enough_memory(), torch.inference_mode():
            run = self.forward(torch.tensor(encoding.ids, device=self.device), attendable.to(self.device))
            for _ in islice(run, layer + 1):
                pass
        ((given, attended),) = seen
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
        """Tell who may attend to whom: nobody to padding, and with `causal` nobody to what comes later."""
        n_tokens = len(encoding.ids)
        attendable = not_padding(torch.arange(n_tokens) < n_tokens - encoding.n_padding)
        if self.spec.causal:
            attendable = attendable & causal(n_tokens)
        return attendable.expand(n_tokens, n_tokens)

    def _weights(
        self, ids: tuple[int, ...], attendable: Tensor, layers: Sequence[int], heads: Sequence[int]
    ) -> np.ndarray:
        """Compute the weights of these layers and heads; layers behind the last of them are not run."""
        with enough_memory(), torch.inference_mode():
            every = self.forward(torch.tensor(ids, device=self.device), attendable.to(self.device))
            if self.n_layers == 1 and len(heads) == self.n_heads:
                (only,) = every
                return np.asarray(only.cpu().numpy())[None]  # not copied
            weights = np.empty((len(layers), len(heads), len(ids), len(ids)), dtype=np.float32)
            for layer, of_layer in zip(range(layers[-1] + 1), every, strict=False):
                if layer in layers:
                    kept = torch.from_numpy(weights[layers.index(layer)])
                    # At once: each copy waits for the device.
                    kept.copy_(of_layer if len(heads) == self.n_heads else of_layer[list(heads)])
        return weights

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


def _choose_norms(norms: Sequence[Norms], layers: Sequence[int], heads: Sequence[int]) -> np.ndarray | None:
    """Choose the norms of some of the layers that were run; None of modules without values of their own."""
    return np.stack([norms[layer][list(heads)] for layer in layers]) if len(norms) > layers[-1] else None


def size_of(module: nn.Module) -> int:
    """Return how many parameters it has."""
    return sum(parameter.numel() for parameter in module.parameters())


def encoder_parts(encoder: Encoder, device: torch.device) -> dict[str, Any]:
    """Return what an EncoderModel has to know of its encoder."""
    config = encoder.config
    attentions = tuple(block.attention for block in encoder.blocks if isinstance(block, EncoderBlock))
    return {
        "n_layers": config.n_layers,
        "n_heads": config.n_heads,
        "d_model": config.d_model,
        "n_attention_parameters": sum(map(size_of, attentions)),
        "forward": encoder.eval().to(device).attention,
        "attentions": attentions,
        "device": device,
        "encoder": encoder,
    }
