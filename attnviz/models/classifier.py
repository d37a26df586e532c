"""From an encoded text to a label: pooling and one linear layer. Knows torch and the encoder; no texts and no files."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from attnviz.models.attention import not_padding
from attnviz.models.encoder import Encoder, EncoderConfig
from attnviz.specs import PoolKind

STEPS = 100  # of the search for a temperature, which ends far earlier


@dataclass(frozen=True)
class ClassifierConfig:
    """An encoder, how its states become one vector, and the names of the labels."""

    encoder: EncoderConfig
    labels: tuple[str, ...] = ("negative", "positive")
    pool: PoolKind = "mean"


class Classifier(nn.Module):
    """Encoder, pooling, dropout, linear layer.

    `temperature` divides the logits so that probabilities are calibrated. `dropout` (of the pooled encoding) and
    `reach` (see `TextEmbedding`) are at work in training only.
    """

    temperature: Tensor

    def __init__(self, config: ClassifierConfig, dropout: float = 0.0, reach: int = 0) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config.encoder, reach)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(config.encoder.d_model, len(config.labels))
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, ids: Int[Tensor, "text token"], real: Bool[Tensor, "text token"]) -> Float[Tensor, "text label"]:
        """Return logits, not yet divided by the temperature. `real` is False for padding."""
        return self.classify(self.states(ids, real), real)

    def states(
        self, ids: Int[Tensor, "text token"], real: Bool[Tensor, "text token"], *, need_weights: bool = False
    ) -> Float[Tensor, "text token d"]:
        """Return what the encoder makes of each token."""
        return torch.as_tensor(self.encoder(ids, not_padding(real), need_weights=need_weights))

    def classify(
        self, states: Float[Tensor, "text token d"], real: Bool[Tensor, "text token"]
    ) -> Float[Tensor, "text label"]:
        """Return logits of each text from the states of its tokens, `real` but for padding.

        Pooled are the states of the first token, a [CLS] (Devlin et al. 2019, arXiv:1810.04805), or the mean over all.
        """
        counted = real.unsqueeze(-1)
        pooled = states[:, 0] if self.config.pool == "cls" else (states * counted).sum(dim=1) / counted.sum(dim=1)
        return torch.as_tensor(self.output(self.dropout(pooled)))


def fit_temperature(logits: Float[Tensor, "text label"], labels: Int[Tensor, " text"]) -> float:
    """Fit the temperature of the least cross-entropy (Guo et al. 2017, arXiv:1706.04599). Fit it on texts held out.

    It changes no label, as it divides all logits alike.
    """
    logits = logits.detach().cpu().double()
    log_temperature = torch.zeros((), dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([log_temperature], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> float:
        search.zero_grad()
        value = functional.cross_entropy(logits / log_temperature.exp(), labels)
        value.backward()  # type: ignore[no-untyped-call]
        return value.item()

    search.step(loss)  # type: ignore[no-untyped-call]
    # Logits that are never wrong want an infinite one: no further than to a tenth or tenfold.
    return float(log_temperature.detach().exp().clamp(0.1, 10.0))
