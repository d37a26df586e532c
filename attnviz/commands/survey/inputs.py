"""What `attnviz survey` reads and writes."""

from __future__ import annotations

from dataclasses import replace

from attnviz.commands.survey.spec import SurveySpec, check_top, parse_shard
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs, stream_inputs
from attnviz.measures import choose_measures
from attnviz.models.loading import find_model
from attnviz.models.protocols import Ablatable, AttentionModel
from attnviz.running.executors import check_cluster


def survey_inputs(spec: SurveySpec) -> Inputs:
    """One model and a stream of texts. Raises InvalidOption, InvalidModel or InvalidSource."""
    parse_shard(spec.shard)
    check_top(spec.top)
    choose_measures(spec.measure)
    if spec.model.max_tokens is None or spec.model.max_tokens < 2:
        raise InvalidOption(f"--max-tokens {spec.model.max_tokens} is too small", hint="It is at least 2.")
    check_cluster(spec.cluster, spec.workers)
    _ = spec.on_few_texts  # refuses what is not known
    reference = find_model(spec.model)
    reference.check(Ablatable if spec.ablations else AttentionModel)
    inputs = stream_inputs([reference], spec.text, out=spec.figure.out)
    return replace(inputs, n_workers=spec.workers or 1)
