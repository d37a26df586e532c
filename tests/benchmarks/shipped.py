"""Makes the models that come with attnviz: each number of heads with several seeds, measured on the test split.

    python -m tests.benchmarks.shipped run path/to/imdb runs                 # trains what `runs` does not hold yet
    python -m tests.benchmarks.shipped compare runs                          # eight heads less fewer, paired
    python -m tests.benchmarks.shipped ship runs                             # seed 0 of each into the package

One run is one `attnviz train` of the recipe below, on one core; a run that was stopped goes on. The rates of each
number of heads are those that docs/heads.md says did best. Whoever changes the recipe tries them again.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the commands do

import numpy as np

from attnviz import store
from attnviz.commands.train.run import write_card
from attnviz.commands.train.spec import TrainSpec
from attnviz.measures.classification import compute_score_interval
from attnviz.models.built_in import SHIPPED
from attnviz.models.checkpoint import load_checkpoint
from attnviz.models.predicting import cut_text, logits
from attnviz.options import build
from attnviz.records.answers import AttentionCost, TestMetrics
from attnviz.running.metrics import NAME, encode_metrics, load_metrics
from attnviz.specs import TextOptions
from attnviz.table.intervals import summarize
from attnviz.text import load_corpus
from tests.benchmarks.timing import run_command
from tests.benchmarks.worth import ALIKE, OTHER, describe_costs, measure_costs
from tests.starting import train
from tests.study import compute_seed_interval

HEADS = (1, 2, 4, 8)
SEEDS = (0, 1, 2)  # the first is shipped; the others are measured as far as they were trained
ORDER = [(heads, seed) for group in ((8, 1), (4, 2)) for seed in SEEDS for heads in group]  # what is asked first
TESTED = "tested.json"
COSTS = "costs.npz"
RIGHT = "right.npy"  # which texts of the test split are judged rightly
RECIPE: dict[str, Any] = {"layers": 2, "pretrain": 3, "epochs": 3}
RATES = {1: (0.0024, 0.003), 2: (0.003, 0.0015), 4: (0.003, 0.0015), 8: (0.0015, 0.00075)}  # of either stage
N_COST_TEXTS = 3_000  # of the test split, drawn once, that costs are measured on


def run_one(runs: Path, heads: int, seed: int, tests: TextOptions, name: str | None, **asked: Any) -> None:
    """Train, or go on with a run, then ask its model each text of a test split once, with the weights as stored.

    Which texts it judges rightly is kept beside it, and of some drawn ones which it does with each change of heads.
    """
    folder, begun = runs / f"heads-{heads}-seed-{seed}", time.monotonic()
    if (folder / TESTED).exists():
        return
    list(train(build(TrainSpec, heads=heads, seed=seed, out=str(folder), resume=True, **asked)))
    seconds = time.monotonic() - begun
    saved, corpus = load_checkpoint(folder), load_corpus(tests)
    texts = [cut_text(ids, saved.max_tokens, saved.keep) for ids in saved.tokenizer.ids(corpus.texts)]
    gold = np.array([document.label for document in corpus.documents])
    right = logits(saved.classifier, texts).argmax(dim=-1).numpy() == gold
    drawn = np.random.default_rng(0).permutation(len(texts))[:N_COST_TEXTS]
    costs = measure_costs(saved.classifier, [texts[place] for place in drawn], gold[drawn])
    np.savez(folder / COSTS, allow_pickle=False, **costs)
    np.save(folder / RIGHT, right)
    found = {"data": name or corpus.name, "n_texts": len(right), "accuracy": float(right.mean()), "seconds": seconds}
    (folder / TESTED).write_text(json.dumps(found) + "\n", encoding="utf-8")
    print(folder.name, "is done", flush=True)


def run(data: Path, runs: Path) -> None:
    """Train every number of heads with every seed, one after another, on one thread."""
    tests = TextOptions(dataset=str(data), split="test")
    for heads, seed in ORDER:
        rates = dict(zip(("pretrain_rate", "learning_rate"), RATES[heads], strict=True))
        run_one(runs, heads, seed, tests, None, dataset=str(data), split="train", **rates, **RECIPE)


def ship_each(runs: Path, names: Mapping[int, str]) -> None:
    """Copy seed 0 of each number of heads into the package, with a card that tells how every seed was tested."""
    for heads, name in names.items():
        source, folder = runs / f"heads-{heads}-seed-{SEEDS[0]}", SHIPPED / name
        files = {seed: runs / f"heads-{heads}-seed-{seed}" / TESTED for seed in SEEDS}
        found = {seed: json.loads(file.read_bytes()) for seed, file in files.items() if file.exists()}
        tested = list(found.values())
        accuracies = tuple(each["accuracy"] for each in tested)
        report = TestMetrics(
            data=tested[0]["data"],
            n_texts=tested[0]["n_texts"],
            seeds=tuple(found),
            accuracies=accuracies,
            mean=compute_seed_interval(accuracies)
            if len(found) > 1
            else compute_score_interval(accuracies[0], tested[0]["n_texts"]),
            costs=_read_costs([runs / f"heads-{heads}-seed-{seed}" / COSTS for seed in found]),
            n_cost_texts=N_COST_TEXTS,
        )
        store.make_folder(folder)
        for file in ("model.safetensors", "tokenizer.json", "config.json"):
            store.write(folder / file, (source / file).read_bytes())
        metrics = replace(load_metrics(source), tested=report)
        store.write(folder / NAME, encode_metrics(metrics))
        write_card(folder, metrics)
        print(name, report.mean)


def compare(runs: Path) -> None:
    """Print how many more texts of the test split eight heads judge rightly: paired over texts, and over seeds."""
    right = {
        (heads, seed): np.load(file)
        for heads in HEADS
        for seed in SEEDS
        if (file := runs / f"heads-{heads}-seed-{seed}" / RIGHT).exists()
    }
    for heads in HEADS[:-1]:
        seeds = [seed for seed in SEEDS if {(heads, seed), (HEADS[-1], seed)} <= right.keys()]
        if not seeds:
            continue
        more = np.array([right[HEADS[-1], seed].astype(float) - right[heads, seed] for seed in seeds])
        of = summarize(more.mean(axis=0)[:, None])
        said = f"8 heads less {heads}: {more.mean():+.4f}, over texts {of.low[0]:+.4f} to {of.high[0]:+.4f}"
        if len(seeds) > 1:
            over = compute_seed_interval(more.mean(axis=1).tolist())
            said += f", over {len(seeds)} seeds {over.low:+.4f} to {over.high:+.4f}"
        print(said)


def _read_costs(files: Sequence[Path]) -> tuple[AttentionCost, ...]:
    """Of the model that is shipped, and what other seeds lose where all heads are changed alike.

    Heads of one number are other heads with another seed: they have no mean.
    """
    every = [{name: arrays[name] for name in arrays.files} for arrays in map(np.load, files)]
    described = [{cost.what: cost for cost in describe_costs(right)} for right in every]
    found = []
    for what, cost in described[0].items():
        values = [each[what].texts.value for each in described]
        whole = what in (ALIKE, OTHER) and len(values) > 1
        found.append(replace(cost, seeds=compute_seed_interval(values)) if whole else cost)
    return tuple(found)


def ship(runs: Path) -> None:
    ship_each(runs, {heads: "single" if heads == 1 else f"multi-{heads}" for heads in HEADS})


if __name__ == "__main__":
    run_command(__doc__, run, compare, ship)
