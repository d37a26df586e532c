"""What a config asks for: jobs, each a command with its settings. Knows specs; no files, no texts, no models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from attnviz.options import changed_values
from attnviz.specs.attribute import AttributeSpec
from attnviz.specs.compare import CompareSpec
from attnviz.specs.explain import ExplainSpec
from attnviz.specs.heatmap import HeatmapSpec
from attnviz.specs.predict import PredictSpec
from attnviz.specs.render import RenderSpec
from attnviz.specs.survey import SurveySpec

# Of commands that make something of inputs.
AnySpec: TypeAlias = HeatmapSpec | CompareSpec | ExplainSpec | PredictSpec | AttributeSpec | SurveySpec | RenderSpec

JOBS: dict[str, type[AnySpec]] = {  # commands that a config may name
    "heatmap": HeatmapSpec,
    "compare": CompareSpec,
    "explain": ExplainSpec,
    "predict": PredictSpec,
    "attribute": AttributeSpec,
    "survey": SurveySpec,
    "render": RenderSpec,
}
# What a flag can say and a config cannot: where things go, who makes them and what the terminal shows is the batch's.
NOT_IN_CONFIGS = frozenset({"out", "json", "open", "table", "quiet", "print", "time", "inline_text", "resume"})
NOT_IN_CONFIGS |= {"workers", "shard", "scheduler", "scheduler_file", "tls_ca", "tls_cert", "tls_key"}


@dataclass(frozen=True)
class Job:
    """One thing to make. `name` is its folder, `where` the place in a config that asks for it: "figures.yaml:12:5"."""

    name: str
    command: str
    spec: AnySpec
    where: str
    # Paths as the config writes them. The spec has them from the current folder, which must not show in a manifest.
    written: dict[str, object] = field(default_factory=dict, hash=False)

    @property
    def settings(self) -> dict[str, object]:
        """What was chosen: every setting that a config can say and that is not at its default."""
        return {
            name: self.written.get(name, value)
            for name, value in changed_values(self.spec).items()
            if name not in NOT_IN_CONFIGS
        }


@dataclass(frozen=True)
class BatchPlan:
    """All that configs ask for. `out` is None where none says it; `configs` are file names with sha256 of the bytes."""

    jobs: tuple[Job, ...]
    out: str | None
    configs: dict[str, str]
