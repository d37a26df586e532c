"""What `attnviz heatmap` reads and writes."""

from __future__ import annotations

from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.inputs import Inputs, read_inputs
from attnviz.models.loading import find_model
from attnviz.models.protocols import AttentionModel, Generates
from attnviz.selection import select_numbers, select_pairs


def heatmap_inputs(spec: HeatmapSpec) -> Inputs:
    """Find one model and the texts to draw. Raises InvalidOption, InvalidModel, InvalidSource or InvalidSelection."""
    reference = find_model(spec.model, spec.pretrained)
    reference.check(AttentionModel if spec.pretrained.generate is None else Generates)
    if reference.n_layers is not None and reference.n_heads is not None:
        select_numbers(spec.figure.layer, reference.n_layers, "layer")
        select_numbers(spec.figure.head, reference.n_heads, "head", mean=True)
        if spec.figure.pick:
            select_pairs(spec.figure.pick, range(reference.n_layers), range(reference.n_heads))
    return read_inputs([reference], spec.text, every=spec.text.inline, out=spec.figure.out)
