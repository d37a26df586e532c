"""`attnviz verify`."""

from __future__ import annotations

from attnviz.cli import show_batch
from attnviz.specs.batch import VerifySpec


def verify(spec: VerifySpec) -> None:
    """Make a batch again elsewhere, from its manifest, and say what comes out differently: exit code 3.

    Example: attnviz verify figures --root sample_configs
    """
    from attnviz.workflows.verify import verify as make_again

    show_batch.verified(make_again(spec))
