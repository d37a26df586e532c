"""What the record of a generation costs: stories260K goes on for 40 tokens, beside its own `generate`, in CPU time.

    python -m tests.benchmarks.generating [--rounds 20] [--tokens 40]

Each round lets the model write, lets it write and records what it read and wrote as `attnviz heatmap --generate` does,
and takes the ratio; the bar is the median. Beside it, without a bar, `attnviz.record` around `generate`, which watches
every step. Needs `pip install attnviz[hf]` and ../shared/models/stories260K.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from attnviz.models.huggingface.generating import HuggingFaceWriter
from attnviz.models.loading import find_model
from attnviz.models.recording.record import record
from attnviz.specs import ModelOptions, PretrainedOptions
from tests.pretrained import STORIES

BAR = 2.0
TEXT = "Once upon a time"


def seconds(run: Callable[[], object]) -> float:
    begun = time.process_time()
    run()
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=40)
    asked = parser.parse_args()
    if not STORIES.is_dir():
        print("needs ../shared/models/stories260K, a real decoder")
        return
    model = find_model(ModelOptions(model=str(STORIES)), PretrainedOptions(generate=asked.tokens)).open(())
    assert isinstance(model, HuggingFaceWriter)
    writer, ids = model.loaded.headed, torch.tensor([model.encode(TEXT).source.ids])
    assert writer is not None

    def generated() -> None:
        with torch.inference_mode():
            writer.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=asked.tokens, do_sample=False)

    def watched() -> None:
        with record():
            generated()

    kinds = {"generate": generated, "with its record": lambda: model.attention(TEXT), "each step watched": watched}
    for run in kinds.values():
        run()
    rounds = [[seconds(run) for run in kinds.values()] for _ in range(asked.rounds)]
    print(f"{asked.tokens} tokens, {asked.rounds} rounds, {torch.get_num_threads()} thread(s), CPU time")
    ratios = {}
    for place, name in enumerate(kinds):
        of_kind = [times[place] for times in rounds]
        ratios[name] = statistics.median(times[place] / times[0] for times in rounds)
        print(f"{name}: median {1000 * statistics.median(of_kind):.0f} ms, ratio: median {ratios[name]:.2f}")
    kept = ratios["with its record"] <= BAR
    print(f"the bar of {BAR} is {'kept' if kept else 'missed'}")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
