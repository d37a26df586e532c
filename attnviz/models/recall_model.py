"""A network of the recall task at work: what its one query attends to in a text, as AttentionMaps."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError

from attnviz.capacity import Trial, role_name
from attnviz.errors import InvalidModel, InvalidText
from attnviz.inputs import read_bytes
from attnviz.models.device import enough_memory, pick, versions
from attnviz.models.encoder_model import size_of
from attnviz.models.protocols import EVERY, LayersAndHeads
from attnviz.models.recall import RecallNetwork
from attnviz.models.recall_text import RecallText, read_recall
from attnviz.models.sizes import Work, check_memory
from attnviz.records import AttentionMaps, Facts, Provenance, Tokens
from attnviz.specs import ModelOptions

MAX_BYTES = 2**20
QUERY = "?"


@dataclass(frozen=True, eq=False)
class RecallModel:
    """A network of one layer and all that its records have to say about it. Its one query stands behind the text."""

    name: str
    revision: str
    network: RecallNetwork
    trial: Trial
    spec: ModelOptions
    device: torch.device
    n_heads: int
    d_model: int
    n_parameters: int
    n_attention_parameters: int

    trained = True
    n_layers = 1

    def encode(self, text: str, choice: LayersAndHeads = EVERY) -> RecallText:
        """What the network will read. Raises InvalidText for what is no sequence of the task, TooLarge."""
        read = read_recall(text, self.trial.items)
        n_tokens, limit = len(read.values), self.spec.max_tokens
        if limit is not None and n_tokens > limit:
            raise InvalidText(f"{n_tokens} tokens, --max-tokens is {limit}", hint=f"{self.name} reads whole texts.")
        work = Work(
            1, n_tokens, self.n_heads, 1, self.d_model, self.n_parameters, n_maps=choice.n_maps(1, self.n_heads)
        )
        check_memory(work, self.spec.max_memory)
        return read

    def map_size(self, text: str) -> tuple[int, int]:
        """One query, as many keys as tokens. Raises as `encode` does."""
        return 1, len(self.encode(text).values)

    def attention(self, text: str, text_name: str = "text", choice: LayersAndHeads = EVERY) -> AttentionMaps:
        """What the query attends to. Raises as `encode` does, InvalidSelection for a head that there is not."""
        read, heads = self.encode(text, choice), choice.heads_of(self.n_heads, self.name)
        given = self._tensors(read)
        with enough_memory(), torch.inference_mode():
            weights = self.network.mix(*given).weights
            answers = self.network(*given)[0].argmax(dim=-1).tolist()
        assert weights is not None
        end = len(text)
        return AttentionMaps(
            weights=weights[:, list(heads)].cpu().numpy(),
            head_numbers=heads,
            queries=Tokens((QUERY,), ((end, end),), (True,)),
            keys=read.tokens,
            attendable=np.ones((1, len(read.values)), dtype=bool),
            provenance=self._provenance(text, text_name, len(read.values), answers, choice),
        )

    def seconds(self, text: str) -> float:
        """How long one forward pass with its maps takes, tokens at hand."""
        given = self._tensors(self.encode(text))
        with enough_memory(), torch.inference_mode():
            begun = time.perf_counter()
            self.network(*given).flatten()[-1].item()  # waits for the device
            return time.perf_counter() - begun

    def _tensors(self, read: RecallText) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.tensor([read.roles], device=self.device), torch.tensor([read.values], device=self.device)

    def _provenance(
        self, text: str, text_name: str, n_tokens: int, answers: list[int], choice: LayersAndHeads
    ) -> Provenance:
        reported = " ".join(f"{role_name(role)}{value}" for role, value in enumerate(answers, 1))
        return Provenance(
            model=self.name,
            revision=self.revision,
            trained=True,
            text_sha256=hashlib.sha256(text.encode("utf-8")).hexdigest(),
            text_name=text_name,
            settings=(*asdict(self.trial).items(), ("reported", reported)),
            versions=versions(),
            facts=Facts(
                tokens_in_text=n_tokens,
                made_for_tokens=self.trial.length,
                n_layers_in_model=1,
                n_heads_in_model=None if choice == EVERY else self.n_heads,
            ),
        )


def load_recall(file: Path, trial: Trial, name: str, spec: ModelOptions) -> RecallModel:
    """The network with the weights in a file. Raises InvalidModel for a damaged one, InvalidDevice."""
    device, data = pick(spec.device), read_bytes(file, MAX_BYTES, InvalidModel)
    with torch.device("meta"):  # sizes only
        network = RecallNetwork(trial)
    try:
        network.load_state_dict(safetensors.torch.load(data), strict=True, assign=True)
    except (SafetensorError, RuntimeError) as error:
        raise InvalidModel(f"{file} is damaged", hint="Install attnviz again.") from error
    revision = hashlib.sha256(data).hexdigest()
    sizes = trial.heads, trial.d_model, size_of(network), size_of(network.mixer)
    return RecallModel(name, revision, network.eval().to(device), trial, spec, device, *sizes)
