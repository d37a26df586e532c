"""What explains a shipped model's answers, on held-out reviews: the card, its bars, and what it costs.

    python -m tests.benchmarks.attribution path/to/imdb [model] [--texts 500]

Reviews of the test split of 40 to 130 tokens, drawn by a seed.
"""

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the commands do

import numpy as np

from attnviz.commands.attribute.card import test_methods
from attnviz.commands.attribute.card_report import NUMBERS, write_mean
from attnviz.models.attribution import METHODS, Attributable
from attnviz.models.loading import find_model
from attnviz.records.attribution import Question
from attnviz.specs import ModelOptions, TextOptions
from attnviz.table.intervals import summarize
from attnviz.table.numbers import Numbers
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
    asked = parser.parse_args()
    methods = [each.name for each in METHODS]
    model = find_model(ModelOptions(model=asked.model, device="cpu")).open(())
    assert isinstance(model, Attributable)
    documents = reviews(asked.data, model, asked.texts)
    begun, rows = time.process_time(), []
    for document in documents:
        subject = model.subject(document.text, document.name, Question())
        rows += [{"text": document.name, **row} for row in test_methods(subject, methods)]
    spent = time.process_time() - begun
    print(f"{asked.model}, {len(documents)} texts, {spent:.0f} CPU s")
    table = Numbers.from_rows(rows, ("text", "method"))
    by_method = {str(name): part for (name,), part in table.group("method")}
    lost = {name: part.array("comprehensiveness") for name, part in by_method.items()}
    best = max(lost, key=lambda name: float(lost[name].mean()))
    for name, part in by_method.items():
        found = summarize(part.matrix(NUMBERS))
        means = map(write_mean, found.mean[:2], found.low[:2], found.high[:2])
        says = "comprehensiveness {}, sufficiency {}".format(*means)
        print(f"  {name:20} {says}, τ {found.mean[2]:.3f} {found.mean[3]:.3f}, {found.mean[4]:.0f} passes")
        behind = summarize((lost[best] - lost[name])[:, None])
        paired = write_mean(behind.mean[0], behind.low[0], behind.high[0])
        print(f"  {'':20} comprehensiveness behind the best, paired: {paired}", flush=True)


if __name__ == "__main__":
    main()
