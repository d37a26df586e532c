"""What explains a shipped model's answers, on held-out reviews: the card, its bars, and what it costs.

    python -m tests.benchmarks.attribution path/to/imdb [model] [--texts 500] [--methods relevance,attention]

Reviews of the test split of 40 to 130 tokens, drawn by a seed. Of the methods all but `pooling`, which is for models
that pool by attention.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the commands do

import numpy as np

from attnviz.commands.attribute.card import test_methods
from attnviz.commands.attribute.card_report import Mean
from attnviz.models.attribution import METHODS, Attributable
from attnviz.models.loading import find_model
from attnviz.records.attribution import MethodTest, Question
from attnviz.specs import ModelOptions, TextOptions
from attnviz.text import Document, load_corpus

TOKENS = range(40, 131)


def reviews(data: str, model: Attributable, n_texts: int) -> list[Document]:
    documents = load_corpus(TextOptions(dataset=data, split="test")).documents
    found: list[Document] = []
    for place in np.random.default_rng(0).permutation(len(documents)):
        if model.map_size(documents[place].text)[0] in TOKENS:
            found.append(documents[place])
        if len(found) == n_texts:
            break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("model", nargs="?", default="multi:8")
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--methods", default="")
    asked = parser.parse_args()
    methods = asked.methods.split(",") if asked.methods else [each.name for each in METHODS if each.name != "pooling"]
    methods = ["random", *(name for name in methods if name != "random")]
    model = find_model(ModelOptions(model=asked.model, device="cpu")).open(())
    assert isinstance(model, Attributable)
    documents = reviews(asked.data, model, asked.texts)
    begun, rows = time.process_time(), []
    for document in documents:
        subject = model.subject(document.text, document.name, Question())
        rows.append([numbers for _, numbers in test_methods(subject, methods)])
    spent = time.process_time() - begun
    print(f"{asked.model}, {len(documents)} texts, {spent:.0f} CPU s")
    tests = [MethodTest(name, *of) for name, of in zip(methods, np.array(rows).transpose(1, 2, 0), strict=True)]
    best = max(tests, key=lambda each: each.comprehensiveness.mean())
    for name, each in zip(methods, tests, strict=True):
        taus = [Mean.from_numbers(of).value for of in (each.tau_leave_one_out, each.tau_gradient)]
        means = map(Mean.from_numbers, (each.comprehensiveness, each.sufficiency))
        says = "comprehensiveness {}, sufficiency {}".format(*means)
        behind = Mean.from_numbers(best.comprehensiveness - each.comprehensiveness)
        print(f"  {name:20} {says}, τ {taus[0]:.3f} {taus[1]:.3f}, {each.n_passes.mean():.0f} passes")
        print(f"  {'':20} comprehensiveness behind the best, paired: {behind}", flush=True)


if __name__ == "__main__":
    main()
