"""What else can connect a query with a sequence before it: recurrence and convolutions of attention's size.

Each takes what attention takes, reads the tokens in their order, and has at most as many parameters as the four
projections of attention have, 4 (d² + d).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from attnviz.models.attention import AttentionOutput

KERNEL = 4  # width of the convolutions
N_DILATED = 3  # of them reach 4³ = 64 tokens

Query = Float[Tensor, "batch 1 d_model"]
States = Float[Tensor, "batch token d_model"]


class Recurrence(nn.Module):
    """A recurrent layer (Elman 1990), or a gated one (Cho et al. 2014, arXiv:1406.1078), as wide as the parameters
    allow.
    """

    def __init__(self, d_model: int, *, gated: bool = False) -> None:
        super().__init__()
        n_matrices = 3 if gated else 1
        allowed = 4 * (d_model**2 + d_model)
        widths = range(1, 4 * d_model)
        fits = [d for d in widths if n_matrices * d * (d_model + d + 2) + d_model * (d + 1) <= allowed]
        self.recurrent = (nn.GRU if gated else nn.RNN)(d_model, fits[-1], batch_first=True)
        self.output = nn.Linear(fits[-1], d_model)

    def forward(self, query: Query, memory: States) -> AttentionOutput:
        """The state after the last token, which is the query."""
        _, last = self.recurrent(torch.cat([memory, query], dim=1))
        return AttentionOutput(self.output(last.transpose(0, 1)), None)


class Convolution(nn.Module):
    """One convolution over the `KERNEL` tokens before the query."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(d_model, d_model, KERNEL)

    def forward(self, query: Query, memory: States) -> AttentionOutput:
        """What the kernel gives where its last place is that of the last token."""
        states = functional.pad(memory, (0, 0, KERNEL, 0))[:, -KERNEL:].transpose(1, 2)
        return AttentionOutput(self.convolution(states).transpose(1, 2), None)


class DilatedConvolutions(nn.Module):
    """`N_DILATED` separable convolutions, dilation `KERNEL` to the power of the layer (Yu & Koltun 2016,
    arXiv:1511.07122): together they see `KERNEL` ** `N_DILATED` tokens.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.by_channel = nn.ModuleList(
            nn.Conv1d(d_model, d_model, KERNEL, dilation=KERNEL**layer, groups=d_model) for layer in range(N_DILATED)
        )
        self.across_channels = nn.ModuleList(nn.Conv1d(d_model, d_model, 1) for _ in range(N_DILATED))

    def forward(self, query: Query, memory: States) -> AttentionOutput:
        """The last place of the last layer."""
        states = memory.transpose(1, 2)
        for layer, (by_channel, across) in enumerate(zip(self.by_channel, self.across_channels, strict=True)):
            padded = functional.pad(states, ((KERNEL - 1) * KERNEL**layer, 0))
            states = states + functional.gelu(across(by_channel(padded)))
        return AttentionOutput(states[:, :, -1:].transpose(1, 2), None)
