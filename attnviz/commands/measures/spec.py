"""The options of `attnviz measures`."""

from dataclasses import dataclass

from attnviz.specs import PrintOptions


@dataclass(frozen=True, kw_only=True)
class MeasuresSpec:
    """List the measures of attention: what each says, its unit and its source.

    Example: attnviz measures --json
    """

    printing: PrintOptions = PrintOptions()
