"""What `attnviz capacity` found as a report: charts over seeds, maps of one sequence, tables. Knows `capacity`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import isnan, nan

import numpy as np

from attnviz.capacity import LAYERS, LENGTHS, NOISES, Outcome, Plan, Trial
from attnviz.display import pluralize
from attnviz.measures.intervals import seeds_interval
from attnviz.report import Column, Curve, Curves, Heatmap, Line, Note, Report, Row, Scale, Table
from attnviz.views.head_pictures import lift_scale
from attnviz.views.theory import theory_blocks

RIGHT = "share of sequences, all items right"
ACCURACY = Scale("fixed", 0.0, 1.0, f"{RIGHT} (0 to 1)")
KERNEL = 4  # of the convolutions
COLUMNS = (
    *(Column(name) for name in ("network", "items", "parameters")),
    *(Column(name) for name in ("all right", "from", "to")),
    Column("half at noise", digits=2),
)


@dataclass(frozen=True)
class Group:
    """Networks that differ in nothing but their seed, which is 0 in `trial`."""

    trial: Trial
    outcomes: tuple[Outcome, ...]

    @property
    def all_right(self) -> tuple[float, float, float]:
        """Mean over the seeds, and its 95 % interval."""
        return seeds_interval([outcome.all_right for outcome in self.outcomes])

    def by(self, name: str) -> list[tuple[float, float, float]]:
        """Likewise, of each number of `by_noise`."""
        numbers = zip(*(getattr(outcome, name) for outcome in self.outcomes), strict=True)
        return [seeds_interval(of_seeds) for of_seeds in numbers]

    @property
    def half_at(self) -> float:
        """The noise that halves the accuracy."""
        return half_at([mean for mean, _, _ in self.by("by_noise")])

    @property
    def heads(self) -> str:
        """As a legend has it."""
        return f"{self.trial.heads} {pluralize(self.trial.heads, 'heads')}"


class Findings:
    """Groups by the question that they answer; the first of those with more of something is the one with less."""

    def __init__(self, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        by_trial: dict[Trial, list[Outcome]] = {}
        for outcome in outcomes:
            by_trial.setdefault(replace(outcome.trial, seed=0), []).append(outcome)
        groups = {trial: Group(trial, tuple(same)) for trial, same in by_trial.items()}
        self.n_seeds = plan.seeds
        self.grid = {(trial.heads, trial.items): groups[trial] for trial in plan.grid}
        self.heads = sorted({heads for heads, _ in self.grid})
        self.items = sorted({items for _, items in self.grid})
        hardest = self.at(self.heads[0], self.items[-1])
        self.wider = [hardest, *(groups[trial] for trial in plan.wider)]
        self.longer = [hardest, *(groups[trial] for trial in plan.longer)]
        self.layers = [groups[trial] for trial in plan.layers]

    def at(self, heads: int, items: int) -> Group:
        """One cell of the grid."""
        return self.grid[heads, items]


def capacity_report(plan: Plan, outcomes: Sequence[Outcome], *, theory: bool) -> Report:
    """Charts, maps, tables and notes of the outcomes of all of the plan."""
    found = Findings(plan, outcomes)
    trial = plan.grid[0]
    of_theory = theory_blocks(LENGTHS[-1], trial.d_model, KERNEL) if theory else ()
    revision = hashlib.sha256(repr(tuple(outcomes)).encode()).hexdigest()
    return Report(
        title="recall: what one layer keeps apart",
        subtitle=f"width {trial.d_model}, equal parameters for every number of heads where nothing else is said",
        blocks=(
            *(charts(found) for charts in (_accuracy, _controls, _distance)),
            _heat(found),
            *_maps(found),
            *_tables(found),
            *_notes(found),
            *of_theory,
        ),
        scale=ACCURACY,
        facts=(("revision", revision),),
        data={"outcomes": [asdict(outcome) for outcome in outcomes]},
    )


def capacity_rows(outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """A line per network, header first."""
    yield "layer", "heads", "items", "width", "length", "steps", "seed", "parameters", "all_right", "item_right"
    for each in outcomes:
        trial = each.trial
        sizes = trial.heads, trial.items, trial.d_model, trial.length, trial.steps, trial.seed
        yield trial.layer, *sizes, each.n_parameters, each.all_right, each.item_right


def _line(name: str, x: Sequence[int | float], points: Sequence[tuple[float, float, float]]) -> Line:
    means, bounds = tuple(mean for mean, _, _ in points), tuple((low, high) for _, low, high in points)
    return Line(name, tuple(map(float, x)), means, marked=True, bounds=bounds)


def _accuracy(found: Findings) -> Curves:
    most, longest = found.items[-1], found.longer[-1]
    rows = [[found.at(heads, items) for items in found.items] for heads in found.heads]
    accuracy = [_line(row[0].heads, found.items, [group.all_right for group in row]) for row in rows]
    noisy = [_line(row[-1].heads, NOISES, row[-1].by("by_noise")) for row in rows]
    noisy.append(_line(f"{longest.heads}, {_times(found)} × the training", NOISES, longest.by("by_noise")))
    return Curves(
        "accuracy",
        f"{found.wider[0].trial.length} tokens, {_over_seeds(found)}",
        (
            Curve("without noise", "items to recall", RIGHT, tuple(accuracy)),
            Curve(f"{most} items, noise on the values", "noise, × the values' own size", RIGHT, tuple(noisy)),
        ),
    )


def _controls(found: Findings) -> Curves:
    """The network with the fewest heads, given more, beside the one with the most heads."""
    one, several = found.wider[0], found.at(found.heads[-1], found.items[-1])
    steps = [group.trial.steps / one.trial.steps for group in found.longer]
    wider = _line(one.heads, _thousands(found.wider), [group.all_right for group in found.wider])
    longer = _line(one.heads, steps, [group.all_right for group in found.longer])
    level = [_line(several.heads, x, [several.all_right]) for x in (_thousands([several]), [1])]
    margins = [line for group in dict.fromkeys((one, several)) for line in _margins(group)]
    return Curves(
        "controls",
        f"{one.heads} given more, {found.items[-1]} items, {_over_seeds(found)}; each item: of seed 0",
        (
            Curve("more parameters", "thousands of parameters", RIGHT, (wider, level[0])),
            Curve("more training", "times the steps", RIGHT, (longer, level[1])),
            Curve("each item", "largest weight of a head on it", "margin of its value (logits)", tuple(margins)),
        ),
    )


def _distance(found: Findings) -> Curves:
    lines = tuple(
        _line(name, [group.trial.length for group in groups], [group.all_right for group in groups])
        for name, groups in _by_layer(found).items()
    )
    chart = Curve("one item to recall", "tokens that it may be away from the query", "share of items right", lines)
    return Curves("distance", f"attention beside other layers of its size, {_over_seeds(found)}", (chart,))


def _over_seeds(found: Findings) -> str:
    """What the points of curves are."""
    n_seeds = found.n_seeds
    return f"mean of {n_seeds} {pluralize(n_seeds, 'seeds')}{', bars: 95 % intervals' if n_seeds > 1 else ''}"


def _by_layer(found: Findings) -> dict[str, list[Group]]:
    """The shortest sequences first."""
    by_layer: dict[str, list[Group]] = {}
    for group in found.layers:
        trial = group.trial
        by_layer.setdefault(f"attention, {group.heads}" if trial.layer == LAYERS[0] else trial.layer, []).append(group)
    return by_layer


def _times(found: Findings) -> int:
    """How many times as long the longest training is."""
    return found.longer[-1].trial.steps // found.longer[0].trial.steps


def _thousands(groups: Sequence[Group]) -> list[int | float]:
    return [group.outcomes[0].n_parameters / 1000 for group in groups]


def _margins(group: Group) -> Iterator[Line]:
    """Each item of the first seed's network: by its weight, how far its value is ahead of the others."""
    first = group.outcomes[0]
    for weight, margin in zip(np.max(first.weights, axis=0).tolist(), first.margins, strict=True):
        yield Line(group.heads, (weight,), (margin,), marked=True)


def _heat(found: Findings) -> Heatmap:
    values = np.array([[found.at(heads, items).all_right[0] for items in found.items] for heads in found.heads])
    return Heatmap(
        "heads-by-items",
        f"heads × items, mean of {found.n_seeds} {pluralize(found.n_seeds, 'seeds')}",
        values.astype(np.float32),
        np.ones(values.shape, dtype=bool),
        tuple(map(str, found.heads)),
        tuple(map(str, found.items)),
        row_axis="heads",
        column_axis="items to recall",
        scale=ACCURACY,
    )


def _maps(found: Findings) -> Iterator[Heatmap]:
    """What the query attends to in one sequence: the one head, and each of as many heads as there are items."""
    for items in [n for n in found.items if n > 1][-2:]:
        most = max((heads for heads in found.heads if heads <= items), default=found.heads[-1])
        groups = dict.fromkeys((found.heads[0], most))
        networks = [(heads, found.at(heads, items).outcomes[0]) for heads in groups]
        rows = [
            (f"{heads} heads · {head}" if heads > 1 else "1 head", weights)
            for heads, outcome in networks
            for head, weights in sorted(enumerate(outcome.maps), key=lambda row: int(np.argmax(row[1])))
        ]
        values = np.array([weights for _, weights in rows], dtype=np.float32)
        yield Heatmap(
            f"maps-{items}-items",
            f"what the query attends to in one sequence with {items} items (seed 0)",
            values,
            np.ones(values.shape, dtype=bool),
            tuple(name for name, _ in rows),
            tuple(networks[0][1].text.split()),
            row_axis="head",
            scale=lift_scale(),
        )


def _tables(found: Findings) -> Iterator[Table]:
    title = f"{RIGHT}, mean of the seeds"
    columns = (Column("heads"), *(Column(f"{items} {pluralize(items, 'items')}") for items in found.items))
    rows = [(heads, *(found.at(heads, items).all_right[0] for items in found.items)) for heads in found.heads]
    yield Table("heads-by-items", title, "compared", columns, tuple(rows))
    kinds = {"": found.grid.values(), "width {0.d_model}": found.wider[1:], "{0.steps:,} steps": found.longer[1:]}
    of_all = tuple(_row(group, more.format(group.trial)) for more, groups in kinds.items() for group in groups)
    yield Table("networks", "each kind of network, 95 % intervals", "compared", COLUMNS, of_all)
    lengths = sorted({group.trial.length for group in found.layers})
    names = (*(f"{length} {pluralize(length, 'tokens')}" for length in lengths), "parameters")
    layers: list[Row] = [
        (name, *(group.all_right[0] for group in groups), groups[0].outcomes[0].n_parameters)
        for name, groups in _by_layer(found).items()
    ]
    title = "other layers of attention's size, one item: mean share right"
    yield Table("layers", title, "compared", (Column("layer"), *map(Column, names)), tuple(layers))


def _row(group: Group, more: str) -> Row:
    half = group.half_at
    numbers = group.trial.items, group.outcomes[0].n_parameters, *group.all_right
    return ", ".join(filter(None, (group.heads, more))), *numbers, "-" if isnan(half) else half


def half_at(by_noise: Sequence[float]) -> float:
    """The noise at which accuracy has fallen to half of what it is without, between NOISES along a line."""
    half = by_noise[0] / 2
    for place in range(1, len(NOISES)):
        before, after = by_noise[place - 1], by_noise[place]
        if after <= half < before:
            share = (before - half) / (before - after)
            return NOISES[place - 1] + share * (NOISES[place] - NOISES[place - 1])
    return nan


def _notes(found: Findings) -> Iterator[Note]:
    most = found.items[-1]
    few, many = found.at(found.heads[0], most), found.at(found.heads[-1], most)
    yield Note(
        f"Of {most} items, all are right in {_said(few)} of the sequences with {few.heads} and in {_said(many)} "
        f"with {many.heads}, at {few.outcomes[0].n_parameters:,} parameters each."
    )
    longer = found.longer[-1]
    better = "That is no bound: trained" if longer.all_right[1] > few.all_right[2] else "Trained"
    yield Note(f"{better} for {_times(found)} times as many steps, {longer.heads} reaches {_said(longer)}.")
    if longer.half_at < many.half_at:  # not where either is unknown
        yield Note(
            f"It tells items apart by unequal weights, and what it has to tell apart lies closer together: noise of "
            f"{longer.half_at:.2f} times the values' size halves its accuracy, of {many.half_at:.2f} times that of "
            f"{many.heads}."
        )
    weights = np.array(few.outcomes[0].weights).max(axis=0)
    yield Note(
        f"{few.heads} gives each of {most} items {weights.min():.3f} to {weights.max():.3f} of its attention in the "
        f"mean (seed 0); an equal share is {1 / most:.3f}."
    )
    yield Note(
        "A token is the sum of a vector for its role and one for its value, so that a mean of several under equal "
        "weights does not say which value belongs to which role. Noise is normal, its standard deviation in multiples "
        "of the root mean square of the value vectors; networks were trained without. Wider networks learn at a rate "
        "that is lower in proportion."
    )


def _said(group: Group) -> str:
    mean, low, high = group.all_right
    return f"{mean:.3f}" + (f" ({low:.3f} to {high:.3f})" if high > low else "")
