"""What every fork shares: all libraries, imported once."""

import os
from importlib import import_module
from importlib.util import find_spec
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
    if find_spec("transformers"):  # what a folder of BERT is opened with, and what hands that its weights
        for name in ("auto.tokenization_auto", "auto.modeling_auto", "bert.modeling_bert", "bert.tokenization_bert"):
            import_module(f"transformers.models.{name}")
    vars(import_module("attnviz.commands.train.run"))["N_RANDOM"] = 2  # of which no law asks how many there are
