"""A third-party model that goes on with a text: by its own `generate`, then one pass over prompt and answer.

The pass gives the attention that each step had (see tests/models/test_generating.py), in a fifth of the time that it
takes to watch every step.
"""

from collections.abc import Mapping
from typing import Any

import torch

from attnviz.errors import TooLarge
from attnviz.models.device import enough_memory
from attnviz.models.huggingface.model import HuggingFaceModel, Read
from attnviz.models.huggingface.weights import others_failure
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
        n_before, most = len(grown.ids), self.loaded.most_tokens
        if most is not None and n_before + self._n_tokens - 1 > most:
            read_already = "" if read.target else f" after {n_before:,} of the text"
            problem = f"--generate {self._n_tokens:,}{read_already} is beyond the {most:,} positions of {self.name}"
            raise TooLarge(problem, hint=f"--generate {most - n_before + 1} fits.")
        n_queries = n_before + self._n_tokens - 1
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
            ids = write_greedily(self.loaded.headed, self._n_tokens, self._inputs(read), len(grown.ids))
        at = 0 if read.target else len("\n".join(filter(None, (text, self.extras.pair))))
        tokens = self.loaded.tokenizer.decode_written(grown.ids, ids, at)
        grown, read = grown.append_ids(ids[:-1], tokens), read._replace(written=ids, pieces=tokens.pieces)
        return read._replace(target=grown) if read.target else read._replace(source=grown)

    @property
    def _n_tokens(self) -> int:
        assert self.extras.generate is not None
        return self.extras.generate

    def _target(self) -> Encoding:
        return self.loaded.tokenizer.start(self.loaded.start_id)
