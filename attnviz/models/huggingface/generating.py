"""A third-party model that goes on with a text: by its own `generate`, then one pass over prompt and answer.

The pass gives the attention that each step had (see tests/models/test_generating.py), in a fifth of the time that it
takes to watch every step.

A decoder can also go on behind a text that it has read once, with parts of it knocked out. A part of the text is
knocked out for what stands behind the text only: the queries there may not look at its keys. Everything that the text's
own tokens took from it stays, as it is cached. So a knock-out asks what the answer took from the part *itself*, and it
costs a pass over the last few tokens instead of one over the text. (Taking its words out of the text asks another
question, and moves all others to other positions.)
"""

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from attnviz.errors import InvalidModel, TooLarge
from attnviz.models.capture.call import Call
from attnviz.models.capture.tap import capture
from attnviz.models.device import enough_memory, return_gaps
from attnviz.models.huggingface.answering import NextTokenModel
from attnviz.models.huggingface.model import HuggingFaceModel, Read
from attnviz.models.huggingface.weights import others_failure
from attnviz.models.predicting import check_finite
from attnviz.models.protocols import EVERY, LayersAndHeads
from attnviz.models.tokenizer import Encoding
from attnviz.records import AttentionMaps

KEPT = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_bos_token_id")


def write_greedily(
    writer: Any, n_tokens: int, inputs: Mapping[str, Any], n_before: int, **asked: Any
) -> tuple[int, ...]:
    """Let a model write behind so many tokens, each time the most probable one; an end marker is among them.

    What its files say of penalties is left out, but not what is `asked` of transformers' own generation.
    """
    from transformers import GenerationConfig

    kept = {name: getattr(writer.generation_config, name) for name in KEPT}
    writer.generation_config = GenerationConfig(max_new_tokens=n_tokens, do_sample=False, num_beams=1, **kept, **asked)
    with enough_memory(), torch.inference_mode():
        return tuple(map(int, writer.generate(**inputs)[0, n_before:].tolist()))


class HuggingFaceWriter(HuggingFaceModel):
    """A decoder or an encoder-decoder, with how much it is to write."""

    def encode(self, text: str, choice: LayersAndHeads = EVERY) -> Read:
        """Return what it will read before it writes. Raises as for a text to read, with room for what it will write."""
        read = super().encode(text, choice)
        grown = read.target or read.source
        n_before, n_tokens, most = len(grown.ids), self.extras.generate or 0, self.loaded.most_tokens
        if most is not None and n_before + n_tokens - 1 > most:
            read_already = "" if read.target else f" after {n_before:,} of the text"
            problem = f"--generate {n_tokens:,}{read_already} is beyond the {most:,} positions of {self.name}"
            raise TooLarge(problem, hint=f"--generate {most - n_before + 1} fits.")
        n_queries = n_before + n_tokens - 1
        self._check_room(n_queries, len(read.source.ids) if read.kind == "cross" else n_queries, choice)
        return read

    def attention(self, text: str, text_name: str = "text", choice: LayersAndHeads = EVERY) -> AttentionMaps:
        """Attend over one text and what the model wrote behind it. Raises as for a text to read."""
        read = self.generate(text, choice)
        n_written = len(read.written)
        name = f"{text_name} and {n_written} {'token' if n_written == 1 else 'tokens'} that it wrote (greedy)"
        return self._record(read, text, name, choice)

    def generate(self, text: str, choice: LayersAndHeads = EVERY) -> Read:
        """Return what the model has read once it has written, each time the most probable token: all but the last.

        Raises as `encode` does.
        """
        read = self.encode(text, choice)
        grown = read.target or read.source
        with others_failure(self.name):
            ids = write_greedily(self.loaded.headed, self.extras.generate or 0, self._inputs(read), len(grown.ids))
        at = 0 if read.target else len("\n".join(filter(None, (text, self.extras.pair))))
        tokens = self.loaded.tokenizer.decode_written(grown.ids, ids, at)
        grown, read = grown.append_ids(ids[:-1], tokens), read._replace(written=ids, pieces=tokens.pieces)
        return read._replace(target=grown) if read.target else read._replace(source=grown)

    def _target(self) -> Encoding:
        return self.loaded.tokenizer.start(self.loaded.start_id)


SAME = 1e-2  # nats by which a token may differ under a mask that forbids nothing: kernels sum in another order


class Continuation:
    """What comes behind `ids`, of which those from `start` on are read anew each time, the ones before once.

    Raises InvalidModel where the model does not attend as its mask says, so that nothing can be knocked out.
    """

    def __init__(self, model: NextTokenModel, ids: Sequence[int], start: int) -> None:
        from transformers.cache_utils import DynamicCache, DynamicLayer

        self._model, self._ids, self._start = model, list(ids), start
        self._cache = DynamicCache()  # of full length in every layer, so that it can be cut back
        layers = DynamicCache(config=model.loaded.headed.config.get_text_config()).layers
        if not all(isinstance(layer, DynamicLayer) for layer in layers):  # such as a state that is carried on
            raise self._refuse()
        self._run(self._ids[:start])

    def _run(
        self, ids: Sequence[int], mask: Tensor | None = None, n_logits: int = 1
    ) -> Float64[np.ndarray, "token id"]:
        """Read further ids, which stay in the cache; return the log-probabilities at the last of them."""
        headed, device = self._model.loaded.headed, self._model.device
        given = {"input_ids": torch.tensor([list(ids)], device=device), "use_cache": True}
        if mask is not None:
            places = torch.arange(mask.shape[-1] - len(ids), mask.shape[-1], device=device)
            given |= {"attention_mask": mask.to(device)[None, None], "position_ids": places[None]}
        if "logits_to_keep" in signature(headed.forward).parameters:
            given["logits_to_keep"] = n_logits
        with enough_memory(), torch.inference_mode(), others_failure(self._model.name):
            logits = headed(**given, past_key_values=self._cache).logits[0, -n_logits:]
            found: np.ndarray = logits.cpu().double().log_softmax(dim=-1).numpy()
        return_gaps()  # around what the cache keeps of each layer
        check_finite(found)
        return found

    def write(self, n_tokens: int) -> tuple[int, ...]:
        """Go on by the most probable token each time, to an end marker or for so many tokens, but for one at least.

        Chat models that are asked without their template would often end at once.
        """
        headed, ids = self._model.loaded.headed, torch.tensor([self._ids], device=self._model.device)
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "past_key_values": self._cache}
        with others_failure(self._model.name):
            written = write_greedily(headed, n_tokens, given, len(self._ids), min_new_tokens=1)
        self._cache.crop(self._start - self._cache.get_seq_length())
        ends = headed.generation_config.eos_token_id
        ends = {ends} if isinstance(ends, int) else {*(ends or ())}
        return written[:-1] if written[-1] in ends else written

    def score(self, answer: Sequence[int], hidden: Sequence[int] | None = ()) -> Float64[np.ndarray, " token"]:
        """Return the log-probability of each token of an answer where these places of the text may not be looked at.

        None: the model's own mask is left to it.
        """
        ids = [*self._ids[self._start :], *answer[:-1]]
        mask = None
        if hidden is not None:
            mask = torch.zeros(len(ids), self._start + len(ids))
            mask[:, self._start :] = torch.full((len(ids), len(ids)), torch.finfo(mask.dtype).min).triu(1)
            mask[:, list(hidden)] = torch.finfo(mask.dtype).min
        found = self._run(ids, mask, len(answer))
        self._cache.crop(-len(ids))
        return np.array([row[token] for row, token in zip(found, answer, strict=True)])

    def check(self, answer: Sequence[int]) -> None:
        """Hold a mask that forbids nothing against the model's own, and one that forbids the text against both.

        Raises InvalidModel.
        """
        own, same = self.score(answer, None), self.score(answer)
        blind = self.score(answer, range(1, self._start))
        if np.abs(own - same).max() > SAME or np.array_equal(same, blind):
            raise self._refuse()

    def _refuse(self) -> InvalidModel:
        return InvalidModel(
            f"{self._model.name} does not attend as it is told which keys to leave out, as with windows or states",
            hint="attnviz sources takes decoders with full attention, such as Llama or GPT-2.",
        )

    def look(self, answer: Sequence[int], parts: Sequence[Sequence[int]]) -> Float64[np.ndarray, "layer head part"]:
        """Return the share of the attention of the queries that chose the answer on each part of the text, their mean.

        The text's first token, where attention rests that is needed nowhere, is in no part.
        """
        shares: list[np.ndarray] = []

        def take(call: Call) -> None:
            return_gaps()  # of the layer before: else they come to a third of a pass
            weights = call.weights[0, :, -len(answer) :]  # head, query, key
            shares.append(np.stack([weights[:, :, list(part)].sum(-1).mean(-1) for part in parts], axis=-1))

        with capture(take, EVERY):
            self.score(answer, None)
        return np.stack(shares).astype(np.float64)
