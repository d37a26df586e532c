"""What the walk over a long text's weights takes beside attention itself.

    python -m tests.benchmarks.long_texts [--tokens 8192] [--repeats 5]

Random q and k of 8 heads and their log-sum-exp, as `FactoredMaps` has them. By turns in one process and one thread: the
fused kernel, which gives no weight away, and `measures.rows.compute_statistics`, which gives entropy, peak, distance,
what each key receives, the error of sums and pooled maps. CPU seconds; medians of the ratios, and the smallest and
largest. The bars are 1.5 with 4 numbers in a head and with 64.
"""

import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from attnviz.measures import rows
from attnviz.records import walk as walks
from attnviz.records.factored import FactoredMaps
from attnviz.records.factors import Factors
from tests.benchmarks.timing import read_options
from tests.made import provenance, tokens

N_HEADS = 8
BARS = {4: 1.5, 16: None, 64: 1.5}  # by the numbers in a head


def ratio(n_tokens: int, d_head: int) -> tuple[float, float]:
    """CPU seconds of the kernel and of the walk, once."""
    made = torch.randn(3, 1, N_HEADS, n_tokens, d_head, generator=torch.Generator().manual_seed(0))
    begun = time.process_time()
    _, log_sum_exp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*made)
    kernel = time.process_time() - begun
    query, key = (np.ascontiguousarray(each[0]) for each in made[:2].numpy())
    factors = Factors(query, key, log_sum_exp[0].numpy().copy(), d_head**-0.5)
    named = tokens(*("a",) * n_tokens)
    maps = FactoredMaps(named, named, provenance(), factors=(factors,))
    begun = time.process_time()
    found = rows.compute_statistics(maps, 0)
    walk = time.process_time() - begun
    assert np.abs(found.received.sum(axis=-1) - 1).max() < 1e-4
    return kernel, walk


def main() -> None:
    given = read_options(__doc__, tokens=8192, repeats=5)
    torch.set_num_threads(1)
    walks.MAX_THREADS = 1  # as the kernel has
    for d_head, bar in BARS.items():
        ratio(1024, d_head)
        taken = [ratio(given.tokens, d_head) for _ in range(given.repeats)]
        ratios = sorted(walk / kernel for kernel, walk in taken)
        of_cell = 1e9 / (N_HEADS * given.tokens**2)
        kernel, walk = (statistics.median(each) * of_cell for each in zip(*taken, strict=True))
        print(
            f"{given.tokens:,} tokens, {d_head} in a head: walk / kernel {statistics.median(ratios):.2f} "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f}); {kernel:.2f} and {walk:.2f} ns a weight"
            + ("" if bar is None else f"; bar {bar}")
        )


if __name__ == "__main__":
    main()
