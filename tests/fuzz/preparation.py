"""What every fork shares: all libraries, imported once."""

from __future__ import annotations

import os
from importlib import import_module
from pkgutil import walk_packages


def prepare() -> None:
    """Import all of attnviz, and what its parts import late; no network, one thread."""
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # another keeps a thread
    import attnviz

    for module in walk_packages(attnviz.__path__, "attnviz."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    for name in ("datasets", "pyarrow.parquet", "seaborn", "matplotlib.backends.backend_agg", "torch._dynamo"):
        import_module(name)
