"""`attnviz diff`."""

from __future__ import annotations

import sys

from attnviz.cli import show
from attnviz.errors import DifferencesFound
from attnviz.specs.batch import DiffSpec


def diff(spec: DiffSpec) -> None:
    """Say what changed from A to B, head by head: two records of one text, or two batches.

    Example: attnviz diff before/attention.safetensors after/attention.safetensors --threshold jsd=0.01
    """
    from attnviz.workflows.diff import diff as run

    found = run(spec)
    if spec.markdown:
        from attnviz.renderers.markdown import document

        sys.stdout.write(document(found.report))
    else:
        show.report(found.report, spec.json)
    if found.beyond:
        raise DifferencesFound(found.beyond)
