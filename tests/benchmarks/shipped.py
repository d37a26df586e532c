"""Makes the models that come with attnviz: each number of heads with several seeds, measured on the test split.

    python -m tests.benchmarks.shipped run path/to/imdb runs [--at-once 2]    # trains what `runs` does not hold yet
    python -m tests.benchmarks.shipped ship runs                             # seed 0 of each into the package

One run is one `attnviz train` with its defaults, on one core. Whoever changes the recipe runs both again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from attnviz import store
from attnviz.commands.train.outcome import write_card
from attnviz.commands.train.spec import TrainSpec
from attnviz.measures.classification import compute_score_interval
from attnviz.measures.intervals import compute_seed_interval
from attnviz.models.batches import cut_text
from attnviz.models.built_in import SHIPPED
from attnviz.models.checkpoint import load_checkpoint
from attnviz.models.predicting import logits
from attnviz.options import build
from attnviz.records.training_metrics import TestMetrics
from attnviz.running import Result
from attnviz.running.metrics import NAME, encode_metrics, load_metrics
from attnviz.specs import TextOptions
from attnviz.text import load_corpus
from tests.starting import train

HEADS = (1, 2, 4, 8)
SEEDS = (0, 1, 2)  # the first is shipped; the others are measured as far as they were trained
TESTED = "tested.json"


def run_one(data: str, folder: Path, heads: int, seed: int) -> None:
    """Train in this process, then look at the test split once, with the weights as stored."""
    begun = time.monotonic()
    *_, last = train(
        build(TrainSpec, dataset=data, split="train", heads=heads, seed=seed, out=str(folder), resume=True)
    )
    assert isinstance(last, Result)
    seconds = time.monotonic() - begun  # on one core, which other runs may share
    saved = load_checkpoint(folder)
    corpus = load_corpus(TextOptions(dataset=data, split="test"))
    texts = [
        cut_text(ids, saved.max_tokens, saved.keep) for ids in saved.tokenizer.ids(d.text for d in corpus.documents)
    ]
    gold = np.array([document.label for document in corpus.documents])
    stored = logits(saved.classifier, texts).argmax(dim=-1).numpy()
    found = {
        "data": corpus.name,
        "n_texts": len(texts),
        "accuracy": float((stored == gold).mean()),
        "seconds": seconds,
    }
    (folder / TESTED).write_text(json.dumps(found) + "\n", encoding="utf-8")


def run_all(data: str, runs: Path, at_once: int) -> None:
    """Each run in a process of its own, on one thread: side by side they share the cores without waiting."""

    def start(run: tuple[int, int]) -> None:
        heads, seed = run
        folder = runs / f"heads-{heads}-seed-{seed}"
        if (folder / TESTED).exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.benchmarks.shipped", "one", data, str(folder), str(heads), str(seed)]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        print(folder.name, (folder / TESTED).read_text(encoding="utf-8").strip(), flush=True)

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(start, [(heads, seed) for heads in reversed(HEADS) for seed in SEEDS]))


def ship(runs: Path) -> None:
    """Copy seed 0 of each number of heads into the package, with a card that tells of every seed."""
    for heads in HEADS:
        files = {seed: runs / f"heads-{heads}-seed-{seed}" / TESTED for seed in SEEDS}
        found = {seed: json.loads(file.read_bytes()) for seed, file in files.items() if file.exists()}
        tested = list(found.values())
        accuracies = tuple(each["accuracy"] for each in tested)
        source = runs / f"heads-{heads}-seed-{SEEDS[0]}"
        folder = SHIPPED / ("single" if heads == 1 else f"multi-{heads}")
        store.make_folder(folder)
        for name in ("model.safetensors", "tokenizer.json", "config.json"):
            store.write(folder / name, (source / name).read_bytes())
        report = TestMetrics(
            data=tested[0]["data"],
            n_texts=tested[0]["n_texts"],
            seeds=tuple(found),
            accuracies=accuracies,
            mean=compute_seed_interval(accuracies)
            if len(found) > 1
            else compute_score_interval(accuracies[0], tested[0]["n_texts"]),
        )
        metrics = replace(load_metrics(source), tested=report)
        store.write(folder / NAME, encode_metrics(metrics))
        write_card(folder, metrics)
        print(folder.name, [round(a, 4) for a in accuracies], report.mean)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    all_runs = commands.add_parser("run")
    all_runs.add_argument("data")
    all_runs.add_argument("runs", type=Path)
    all_runs.add_argument("--at-once", type=int, default=2)
    one = commands.add_parser("one")
    one.add_argument("data")
    one.add_argument("folder", type=Path)
    one.add_argument("heads", type=int)
    one.add_argument("seed", type=int)
    commands.add_parser("ship").add_argument("runs", type=Path)
    asked = parser.parse_args()
    match asked.command:
        case "run":
            run_all(asked.data, asked.runs, asked.at_once)
        case "one":
            run_one(asked.data, asked.folder, asked.heads, asked.seed)
        case "ship":
            ship(asked.runs)


if __name__ == "__main__":
    main()
