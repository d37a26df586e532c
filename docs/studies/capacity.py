"""Where several heads beat one: trains and draws all of docs/heads.md. `python docs/studies/capacity.py --out DIR`.

The task is recall. Of `length` tokens `items` carry a role of their own, a to h, at random places, and every token has
a value, 0 to 15; one query reports the value of each role. A token is the sum of a vector of its role and one of its
value, so that a mean of several tokens under equal weights does not say which value belongs to which role.

Each kind of network gets the best of at least three learning rates, chosen on other networks than the five reported;
more rates are tried where the best is the highest or the lowest. They are trained for `STEPS` steps, or until the loss
rests, see `train`. Networks of a kind are trained side by side. As tokens are sums of a few vectors, scores and values
are looked up, with the same numbers at a tenth of the work.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from math import prod, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

N_VALUES, BATCH, TESTED = 16, 64, 4096
STEPS, WARM = 1600, 0.25  # of networks that are all trained as long; the share in which the rate rises, also of others
WINDOW, AT_LEAST, AT_MOST = 400, 1600, 9600  # steps between two looks at whether the loss rests, and how many there are
GAIN, ENOUGH = 0.01, 0.002  # the loss rests when it has fallen by less than this share, or to so many nats
RATES, RATE_LIMITS = (5e-3, 1e-2, 2e-2), (3e-4, 0.2)
CHOICE_SEED, CHOSEN_ON, REPORT_SEED, REPORTED = 1_000, 3, 2_000, 5  # networks of each rate, and of the best
LEVEL = 0.999  # a share of sequences that counts as all: of rates that reach it, the lowest is the best
NOISES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)  # of the root mean square of the values

Weights = dict[str, Tensor]  # of several networks, by name: [network, …]


@dataclass(frozen=True)
class Kind:
    """What networks have in common. `mixer` connects the query with the tokens. `rest`: train until the loss rests."""

    mixer: str = "attention"
    heads: int = 1
    items: int = 8
    width: int = 32
    length: int = 24
    rest: bool = False

    @property
    def slug(self) -> str:
        """Its key in the results."""
        sizes = f"{self.heads}-heads-{self.items}-of-{self.length}-width-{self.width}"
        return f"{self.mixer}-{sizes}{'-rest' * self.rest}".replace(" ", "-")


def shapes(kind: Kind) -> dict[str, tuple[int, ...]]:
    """The weights of one network; of a matrix the first axis is its output's.

    No mixer has more parameters than attention, 4 (d² + d): recurrent ones are as wide as that allows.
    """
    d, n = kind.width, 3 if kind.mixer == "gated recurrent" else 1
    h = max(h for h in range(1, 4 * d) if n * h * (d + h + 2) + d * (h + 1) <= 4 * (d**2 + d))
    mixers: dict[str, dict[str, tuple[int, int]]] = {
        "attention": dict.fromkeys("qkvo", (d, d)),
        "dilated convolutions": {
            f"{part}{i}": (d, size) for i in range(3) for part, size in (("at", 4), ("across", d))
        },
    }
    matrices = mixers.get(kind.mixer, {"in": (n * h, d), "again": (n * h, h), "o": (d, h)})
    matrices |= {"up": (2 * d, d), "down": (d, 2 * d), "answer": (kind.items * N_VALUES, d)}
    found: dict[str, tuple[int, ...]] = {"tokens": (kind.items + 1 + N_VALUES, d), "query": (d,)}
    for name, (d_out, d_in) in matrices.items():
        found |= {f"{name}.weight": (d_out, d_in), f"{name}.bias": (d_out,)}
    return found | {f"norm{place}.{part}": (d,) for place in (1, 2) for part in ("weight", "bias")}


def initial(kind: Kind, n: int, generator: torch.Generator) -> Tensor:
    """The weights of `n` networks as rows, as torch.nn begins: [network, parameter]."""
    parts = []
    for name, shape in shapes(kind).items():
        size, (module, _, part) = (n, prod(shape)), name.partition(".")
        if not part:
            parts.append(torch.randn(size, generator=generator))
        elif module.startswith("norm"):
            parts.append(torch.full(size, float(part == "weight")))
        else:
            d_in = shapes(kind)[f"{module}.weight"][1]
            parts.append((torch.rand(size, generator=generator) * 2 - 1) / sqrt(d_in))
    return torch.cat(parts, dim=1)


def named(kind: Kind, rows: Tensor) -> Weights:
    """Rows of parameters as the weights they are."""
    sizes = shapes(kind)
    parts = rows.split([prod(shape) for shape in sizes.values()], dim=1)
    return {name: part.unflatten(1, shape) for part, (name, shape) in zip(parts, sizes.items(), strict=True)}


def draw(kind: Kind, n: int, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Roles, 0 for none, and values [network, batch, token]; and what is to be reported, [network, batch, item]."""
    places = torch.rand(n, batch, kind.length, generator=generator).argsort(dim=-1)[..., : kind.items]
    values = torch.randint(N_VALUES, (n, batch, kind.length), generator=generator)
    numbers = torch.arange(1, kind.items + 1).expand_as(places)
    return torch.zeros_like(values).scatter_(-1, places, numbers), values, values.gather(-1, places)


def forward(kind: Kind, weights: Weights, roles: Tensor, values: Tensor, sigma: float = 0.0) -> tuple[Tensor, Tensor]:
    """Logits [network, batch, item, value], and the weights of attention [network, batch, head, token].

    `sigma`: normal noise on every value vector of attention, in multiples of their root mean square.
    """
    parts = torch.zeros(*roles.shape, kind.items + 1 + N_VALUES)  # of what a token is the sum
    parts.scatter_(-1, torch.stack([roles, values + kind.items + 1], dim=-1), 1.0)
    attended = torch.empty(0)
    query = weights["query"].unsqueeze(1)
    if kind.mixer == "attention":
        mixed, attended = attention(kind, weights, parts, sigma)
    else:
        tokens = (parts.flatten(1, 2) @ weights["tokens"]).unflatten(1, roles.shape[1:])
        mixed = (dilated if kind.mixer.startswith("dilated") else recurrent)(kind, weights, tokens)
    states = norm(weights, "norm1", query + mixed)
    states = norm(weights, "norm2", states + linear(weights, "down", functional.gelu(linear(weights, "up", states))))
    return linear(weights, "answer", states).unflatten(-1, (kind.items, N_VALUES)), attended


def attention(kind: Kind, weights: Weights, parts: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
    """What the query gets of the tokens, [network, batch, d]. A key's bias adds the same to every score: left out."""
    heads = (kind.heads, kind.width // kind.heads)
    query = linear(weights, "q", weights["query"].unsqueeze(1)).squeeze(1).unflatten(-1, heads) / sqrt(heads[1])
    key = (weights["tokens"] @ weights["k.weight"].transpose(1, 2)).unflatten(-1, heads)
    value = (weights["tokens"] @ weights["v.weight"].transpose(1, 2)).unflatten(-1, heads)
    scores = parts.flatten(1, 2) @ torch.einsum("nhd,nphd->nph", query, key)
    attended = scores.unflatten(1, parts.shape[1:3]).transpose(2, 3).softmax(dim=-1)
    mixed = torch.einsum("nbhp,nphd->nbhd", attended @ parts, value).flatten(2) + weights["v.bias"].unsqueeze(1)
    if sigma:  # the sum of independent noises, each times its token's weight, is one whose size is that of the weights
        tokens = (parts.flatten(1, 2)[:, : TESTED * 2] @ value.flatten(2)) + weights["v.bias"].unsqueeze(1)
        size = sigma * tokens.square().mean(dim=(1, 2)).sqrt().view(-1, 1, 1, 1) * attended.norm(dim=-1, keepdim=True)
        noise = torch.randn(*mixed.shape, generator=torch.Generator().manual_seed(REPORT_SEED))
        mixed = mixed + (size * noise.unflatten(-1, heads)).flatten(2)
    return linear(weights, "o", mixed), attended


def recurrent(kind: Kind, weights: Weights, tokens: Tensor) -> Tensor:
    """The state after the last token, which is the query (Elman 1990; gated: Cho et al. 2014, arXiv:1406.1078)."""
    tokens = torch.cat([tokens, weights["query"][:, None, None].expand(-1, tokens.shape[1], 1, -1)], dim=2)
    given = linear(weights, "in", tokens.flatten(1, 2)).unflatten(1, tokens.shape[1:3])
    state = torch.zeros(*tokens.shape[:2], weights["again.weight"].shape[-1])
    for token in given.unbind(2):
        before = linear(weights, "again", state)
        if kind.mixer == "recurrent":
            state = torch.tanh(token + before)
        else:
            (reset, update, new), (reset_by, update_by, new_by) = token.chunk(3, -1), before.chunk(3, -1)
            update = torch.sigmoid(update + update_by)
            new = torch.tanh(new + torch.sigmoid(reset + reset_by) * new_by)
            state = new + update * (state - new)
    return linear(weights, "o", state)


def dilated(kind: Kind, weights: Weights, tokens: Tensor) -> Tensor:
    """Three separable convolutions of kernel 4, dilated by 1, 4 and 16 (Yu & Koltun 2016, arXiv:1511.07122).

    Together they see 64 tokens, and their last place needs every fourth of the layer below: a kernel and a stride of 4.
    """
    states = functional.pad(tokens, (0, 0, 64 - kind.length, 0))
    for layer in range(3):
        fours = states.unflatten(2, (-1, 4))
        kernel, bias = (weights[f"at{layer}.{part}"][:, None, None] for part in ("weight", "bias"))
        mixed = (fours.transpose(3, 4) * kernel).sum(dim=-1) + bias
        across = linear(weights, f"across{layer}", mixed.flatten(1, 2)).unflatten(1, mixed.shape[1:3])
        states = fours[:, :, :, -1] + functional.gelu(across)
    return states.squeeze(2)


def linear(weights: Weights, name: str, states: Tensor) -> Tensor:
    """The linear layer `name` of each network: [network, row, d_in] to [network, row, d_out]."""
    matrix, bias = weights[f"{name}.weight"].transpose(1, 2), weights[f"{name}.bias"].unsqueeze(1)
    return torch.baddbmm(bias, states, matrix)


def norm(weights: Weights, name: str, states: Tensor) -> Tensor:
    """Layer norm."""
    states = functional.layer_norm(states, states.shape[-1:])
    return states * weights[f"{name}.weight"].unsqueeze(1) + weights[f"{name}.bias"].unsqueeze(1)


def train(kind: Kind, rates: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Train a network for each of `rates`: its weights as a row, and its steps.

    AdamW, gradients clipped. For `STEPS` steps the rate rises and falls. Until the loss rests, it rises and stays; at
    every `WINDOW` steps, from `AT_LEAST` on, a network whose mean loss has not fallen by `GAIN` since the look before,
    or is down to `ENOUGH`, or comes to `AT_MOST`, is done: its rate falls to 0 over `WINDOW` steps more.
    """
    generator = torch.Generator().manual_seed(seed)
    rows = initial(kind, len(rates), generator).requires_grad_()
    decays = torch.cat([torch.full((prod(shape),), 0.01 * (len(shape) > 1)) for shape in shapes(kind).values()])
    first, second = torch.zeros_like(rows), torch.zeros_like(rows)
    end = torch.full_like(rates, float(AT_MOST) if kind.rest else STEPS)  # of each network
    losses, before, step = torch.zeros_like(rates), torch.full_like(rates, torch.inf), 0
    while step < end.max():
        roles, values, answers = draw(kind, len(rates), BATCH, generator)
        logits, _ = forward(kind, named(kind, rows), roles, values)
        loss = functional.cross_entropy(logits.flatten(0, 2), answers.flatten(), reduction="none")
        loss = loss.unflatten(0, (len(rates), -1)).mean(dim=1)
        (gradient,) = torch.autograd.grad(loss.sum(), rows)
        fall = (end - step).clamp(min=0) / (WINDOW if kind.rest else STEPS)
        rate = (rates * fall.clamp(max=min(1.0, (step + 1) / (WARM * STEPS)))).unsqueeze(1)
        with torch.no_grad():
            gradient /= gradient.norm(dim=1, keepdim=True).clamp(min=1.0)
            first.lerp_(gradient, 0.1)
            second.lerp_(gradient.square_(), 0.02)
            step += 1
            change = first / (1 - 0.9**step) / (second / (1 - 0.98**step)).sqrt_().add_(1e-8)
            rows -= rate * change.addcmul_(decays, rows)
            losses += loss / WINDOW
            if step % WINDOW == 0 and step < end.max():
                if kind.rest and step >= AT_LEAST:
                    falling = (losses < (1 - GAIN) * before) & (losses > ENOUGH)  # NaN is not
                    end = torch.where(falling, end, end.clamp(max=step + WINDOW))
                before, losses = losses, torch.zeros_like(rates)
    return rows.detach(), end


@torch.no_grad()
def measure(kind: Kind, rows: Tensor, seed: int, noises: tuple[float, ...] = (0.0,)) -> list[list[float]]:
    """The share of `TESTED` sequences of which every item is right: [network][noise]."""
    roles, values, right = draw(kind, 1, TESTED, torch.Generator().manual_seed(seed + 10**6))
    found = []
    for weights in (named(kind, row) for row in rows.unsqueeze(1)):
        answers = [forward(kind, weights, roles, values, sigma)[0].argmax(-1) for sigma in noises]
        found.append([round(float((each == right).all(-1).float().mean()), 4) for each in answers])
    return found


def run(kind: Kind) -> tuple[dict[str, Any], Tensor]:
    """Choose the learning rate of a kind, train those that are reported, and measure: the results, and the weights."""
    begun, tried, waiting = time.process_time(), dict[float, float](), list(RATES)
    while waiting:
        rows, _ = train(kind, torch.tensor(waiting).repeat_interleave(CHOSEN_ON), CHOICE_SEED + len(tried))
        for rate, networks in zip(waiting, rows.split(CHOSEN_ON), strict=True):
            tried[rate] = fmean(chain(*measure(kind, networks, CHOICE_SEED)))
        best = max(tried, key=lambda rate: (min(tried[rate], LEVEL), -rate))  # at higher rates some get stuck
        beyond = {min(tried): best / 2, max(tried): best * 2}.get(best, 0.0)
        waiting = [beyond] if tried[best] < LEVEL and RATE_LIMITS[0] < beyond < RATE_LIMITS[1] else []
    rows, steps = train(kind, torch.full((REPORTED,), best), REPORT_SEED)
    shares = measure(kind, rows, REPORT_SEED, NOISES if kind.mixer == "attention" else (0.0,))
    return asdict(kind) | {
        "parameters": rows.shape[1],
        "tried": {f"{rate:g}": round(tried[rate], 4) for rate in sorted(tried)},
        "rate": best,
        "steps": steps.int().tolist(),
        "all_right": [by_noise[0] for by_noise in shares],
        "by_noise": shares,
        "seconds": round(time.process_time() - begun),
    }, rows


HEADS, ITEMS, WIDTHS, LENGTHS = (1, 2, 4, 8), (2, 4, 8), (32, 64, 128, 256), (4, 16, 64)
GRID = {(heads, items): Kind(heads=heads, items=items) for items in ITEMS for heads in HEADS}
WIDER = [Kind(width=width) for width in WIDTHS]
RESTED = [replace(kind, rest=True) for kind in (GRID[8, 8], *WIDER[:2])]
NETWORKS = [GRID[heads, 8] for heads in HEADS] + WIDER[1:] + RESTED
LAYERS = ("attention", "gated recurrent", "dilated convolutions", "recurrent")
FAR = {layer: [Kind(layer, items=1, length=length, rest=True) for length in LENGTHS] for layer in LAYERS}
BY_NOISE = {GRID[1, 8]: "-", RESTED[1]: "--", WIDER[2]: ":", GRID[2, 8]: "-", GRID[8, 8]: "-"}  # kinds and their lines


def name(kind: Kind) -> str:
    """A kind of network with attention, as tables and legends have it."""
    width = f" of width {kind.width}" if kind.width != WIDTHS[0] else ""
    return f"{kind.heads} head{'s' * (kind.heads > 1)}{width}{', until rest' * kind.rest}"


def halving(found: dict[str, Any]) -> float:
    """The noise at which networks are half as often right as without, along a line between `NOISES`: [noise]."""
    means = np.mean(found["by_noise"], axis=0)
    return float(np.interp(means[0] / 2, means[::-1], NOISES[::-1]))


def draw_charts(results: dict[str, Any], file: Path) -> None:
    """Four charts of shares of sequences: a dot is a network, a line goes through the means."""
    figure = Figure(figsize=(10, 7.6), layout="constrained")
    by_items, by_width, by_noise, by_length = figure.subplots(2, 2).flat
    colours = dict(zip(HEADS, mpl.colormaps["viridis"]([0.85, 0.6, 0.35, 0.05]), strict=True))

    def line(chart: Any, xs: Sequence[float], kinds: Sequence[Kind], style: str = "-", **look: Any) -> None:
        shares = [results[kind.slug]["all_right"] for kind in kinds]
        (drawn,) = chart.plot(xs, [fmean(each) for each in shares], style, **look)
        chart.plot(xs, shares, ".", alpha=0.6, color=drawn.get_color())

    for heads in HEADS:
        line(by_items, ITEMS, [GRID[heads, items] for items in ITEMS], label=name(GRID[heads, 8]), color=colours[heads])
    line(by_width, WIDTHS, WIDER, label=f"1 head, {STEPS:,} steps", color=colours[1])
    line(by_width, WIDTHS[:2], RESTED[1:], "s--", label="1 head, until rest", color=colours[1])
    of_eight = f"8 heads, width {WIDTHS[0]}, {STEPS:,} steps"
    line(by_width, WIDTHS, [GRID[8, 8]] * len(WIDTHS), lw=6, alpha=0.4, zorder=0, label=of_eight, color=colours[8])
    for kind, style in BY_NOISE.items():
        half, means = halving(results[kind.slug]), np.mean(results[kind.slug]["by_noise"], axis=0)
        by_noise.plot(NOISES, means, style, color=colours[kind.heads], label=f"{name(kind)}: half at {half:.2f}")
        by_noise.plot(half, means[0] / 2, "o", color=colours[kind.heads])
    for width, (layer, kinds) in zip((6, 4.5, 3, 1.5), FAR.items(), strict=True):  # so that none hides another
        line(by_length, LENGTHS, kinds, label=layer, lw=width)
    for chart, title, x, ticks in (
        (by_items, "Equal parameters, equal steps", "items to recall, of 24 tokens", ITEMS),
        (by_width, "8 items: a single head given more", "width, and parameters", WIDTHS),
        (by_noise, "8 items, noise on the values", "noise, times the values' own size", (0, 0.1, 0.2, 0.3, 0.4, 0.5)),
        (by_length, "1 item, layers of one size, until rest", "tokens that it may be away", LENGTHS),
    ):
        chart.set(title=title, xlabel=x, ylabel="sequences, all items right", ylim=(-0.03, 1.03))
        chart.set_xscale("linear" if chart is by_noise else "log")
        chart.set_xticks(ticks, ticks)
        chart.minorticks_off()
        chart.legend(frameon=False, fontsize=8)
        chart.spines[["top", "right"]].set_visible(False)
    by_width.set_xticks(WIDTHS, [f"{kind.width}\n{results[kind.slug]['parameters']:,}" for kind in WIDER])
    figure.savefig(file, dpi=110, metadata={"Software": None})


def main() -> None:
    """Train what the results in --out lack, then draw; of each kind the weights of one network are kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition(".")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true", help="a few steps of each kind: shows only that all runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.quick:
        globals().update(STEPS=4, WINDOW=2, AT_LEAST=2, AT_MOST=4, REPORTED=2, TESTED=16, RATE_LIMITS=(1.0, 1.0))
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "capacity.json"
    results = json.loads(file.read_bytes()) if file.exists() else {}
    for kind in dict.fromkeys((*NETWORKS, *GRID.values(), *chain(*FAR.values()))):
        if kind.slug not in results:
            results[kind.slug], rows = run(kind)
            first = {name: part[0].contiguous() for name, part in named(kind, rows).items()}
            save_file(first, options.out / kind.slug)
            lines = ",\n".join(f'"{slug}": {json.dumps(found)}' for slug, found in results.items())
            file.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    draw_charts(results, options.out / "capacity.png")


if __name__ == "__main__":
    main()
