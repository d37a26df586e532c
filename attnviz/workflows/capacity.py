"""`attnviz capacity`: where several heads beat one, shown as it was measured before or measured anew."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from attnviz import store
from attnviz.arithmetic import cores
from attnviz.capacity import Outcome, Plan, Trial
from attnviz.errors import InvalidOption
from attnviz.specs.capacity import CapacitySpec
from attnviz.workflows import Events, Progress
from attnviz.workflows.capacity_trials import TRIALS, outcomes_bytes, plan, shipped, trained
from attnviz.workflows.executors import check_cluster

RECORD = "capacity.json"
PICTURES = ("accuracy", "heads-by-items", "resolution", "controls", "distance", "maps-*-items", "attention")


def capacity(spec: CapacitySpec) -> Events:
    """Show or train. Raises InvalidOption before anything is trained or written."""
    planned = plan(spec)
    trials = planned.trials
    check_cluster(spec.cluster, spec.workers)
    if not spec.train and (spec.workers is not None or spec.cluster.asked):
        raise InvalidOption("nothing is trained that workers could share", hint="Add --train, or leave them out.")
    before = shipped()
    if not spec.train and (missing := [trial for trial in trials if trial not in before]):
        raise InvalidOption(
            f"{len(missing)} of the {len(trials)} networks asked for were not measured before, such as "
            f"{missing[0].slug}",
            hint="--train trains and measures them.",
        )
    folder = store.output_folder(spec.figure.out)
    return store.while_locked(folder, _shown(spec, folder, planned, before))


def _shown(spec: CapacitySpec, folder: Path, planned: Plan, before: Mapping[Trial, Outcome]) -> Events:
    from attnviz.views.capacity import capacity_report, capacity_rows
    from attnviz.workflows.pictures import Pictures

    drawing = Pictures.of(spec.figure, PICTURES, RECORD)
    outcomes = yield from _outcomes(spec, folder, planned.trials, before)
    report = capacity_report(planned, outcomes, theory=spec.theory)
    drawn = yield from drawing.write(report, folder, {RECORD: outcomes_bytes(outcomes)})
    closing = (_agreement(outcomes, before),) if spec.train else ()
    yield replace(drawn, rows=capacity_rows(outcomes), closing=closing)


def _outcomes(
    spec: CapacitySpec, folder: Path, trials: Sequence[Trial], before: Mapping[Trial, Outcome]
) -> Generator[Progress, None, tuple[Outcome, ...]]:
    if not spec.train:
        return tuple(before[trial] for trial in trials)
    store.make_folder(folder / TRIALS)
    found = yield from trained(trials, folder / TRIALS, spec.cluster, spec.workers or cores())
    return tuple(found[trial] for trial in trials)


def _agreement(outcomes: Sequence[Outcome], before: Mapping[Trial, Outcome]) -> str:
    """Whether what was trained here is what ships, network by network."""
    both = [(outcome, before[outcome.trial]) for outcome in outcomes if outcome.trial in before]
    if not both:
        return "none of these networks ships measured, so there is nothing to agree with"
    same = sum(new == old for new, old in both)
    new, old = max(both, key=lambda pair: abs(pair[0].all_right - pair[1].all_right))
    if same == len(both):
        return f"agrees with what ships: all {same} networks come to the same numbers"
    return (
        f"{same} of {len(both)} networks come to the numbers that ship, others to other bits; all items right differs "
        f"most in {new.trial.slug}: {new.all_right:.4f} here, {old.all_right:.4f} there"
    )
