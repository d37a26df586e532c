"""What benchmarks share: how one is asked, and what a piece of work takes."""

import argparse
import time
from collections.abc import Callable


def read_options(doc: str | None, **options: int) -> argparse.Namespace:
    """Read a benchmark's command line: options with their defaults."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in options.items():
        if default is False:
            parser.add_argument(f"--{name}", action="store_true")
        else:
            parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds that `work` takes."""
    begun = time.process_time()
    work()
    return time.process_time() - begun
