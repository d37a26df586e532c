"""One trial of `attnviz capacity`: a network trained and measured. Knows torch; no files and no pictures."""

from __future__ import annotations

from collections.abc import Iterator

import safetensors.torch
import torch
from torch import Tensor

from attnviz.capacity import NOISES, Outcome, Trial, role_name
from attnviz.models.encoder_model import size_of
from attnviz.models.recall import RecallNetwork, Sequences, noise, sequences_to_test, train_recall

DIGITS = 4  # of every number that is kept


def run_trial(trial: Trial) -> tuple[Outcome, bytes]:
    """Train and measure, and the weights as a safetensors file: with one thread the same bytes on one machine."""
    torch.set_num_threads(1)
    network = train_recall(trial)
    return measure_recall(network, trial), bytes(safetensors.torch.save(dict(network.state_dict())))


@torch.inference_mode()
def measure_recall(network: RecallNetwork, trial: Trial) -> Outcome:
    """What the network can do, on the sequences that all networks are measured on."""
    tested = sequences_to_test(trial)
    logits = network(tested.roles, tested.values)
    right = logits.argmax(dim=-1) == tested.answers
    weights = network.mix(tested.roles, tested.values).weights
    attends = weights is not None
    return Outcome(
        trial=trial,
        n_parameters=size_of(network),
        all_right=_share(right.all(dim=1)),
        item_right=_share(right),
        by_noise=tuple(_noisy(network, tested)) if attends else (),
        margins=_rounded(_margins(logits, tested.answers).mean(dim=0)),
        weights=() if weights is None else _rows(_of_items(weights, tested.places).mean(dim=0)),
        text=sequence_text(tested.roles[0], tested.values[0]),
        maps=() if weights is None else _rows(weights[0, :, 0]),
    )


def sequence_text(roles: Tensor, values: Tensor) -> str:
    """One sequence as it is written: a3 is value 3 in the role a, 12 is a value without a role."""
    pairs = zip(roles.tolist(), values.tolist(), strict=True)
    return " ".join(f"{role_name(role) if role else ''}{value}" for role, value in pairs)


def _noisy(network: RecallNetwork, tested: Sequences) -> Iterator[float]:
    for sigma in NOISES:
        with noise(network.mixer, sigma):
            answers = network(tested.roles, tested.values).argmax(dim=-1)
        yield _share((answers == tested.answers).all(dim=1))


def _margins(logits: Tensor, answers: Tensor) -> Tensor:
    """How far the right value's logit lies above the highest of the others: [sequence, item]."""
    of_right = logits.gather(-1, answers.unsqueeze(-1))
    others = logits.scatter(-1, answers.unsqueeze(-1), -torch.inf)
    return of_right.squeeze(-1) - others.amax(dim=-1)


def _of_items(weights: Tensor, places: Tensor) -> Tensor:
    """[sequence, head, 1, token] to [sequence, head, item]."""
    return weights.squeeze(2).gather(-1, places.unsqueeze(1).expand(-1, weights.shape[1], -1))


def _share(right: Tensor) -> float:
    return round(float(right.float().mean()), DIGITS)


def _rounded(numbers: Tensor) -> tuple[float, ...]:
    return tuple(round(number, DIGITS) for number in numbers.tolist())


def _rows(table: Tensor) -> tuple[tuple[float, ...], ...]:
    return tuple(map(_rounded, table))
