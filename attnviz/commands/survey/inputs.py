"""What `attnviz survey` reads and writes."""

from attnviz import store
from attnviz.commands.survey.spec import SurveySpec, parse_shard
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs
from attnviz.measures import choose_measures
from attnviz.models.loading import find_model
from attnviz.models.protocols import Ablatable, AttentionModel
from attnviz.running.executors import check_cluster
from attnviz.text.dataset import stream_corpus


def survey_inputs(spec: SurveySpec) -> Inputs:
    """Read one model and a stream of texts. Raises InvalidOption, InvalidModel or InvalidSource."""
    parse_shard(spec.shard)
    choose_measures(spec.measure)
    if spec.model.max_tokens is None or spec.model.max_tokens < 2:
        raise InvalidOption(f"--max-tokens {spec.model.max_tokens} is too small", hint="It is at least 2.")
    check_cluster(spec.cluster, spec.workers)
    _ = spec.on_few_texts  # refuses what is not known
    reference = find_model(spec.model)
    reference.check(Ablatable if spec.ablations else AttentionModel)
    stream = stream_corpus(spec.text, spec.model.max_memory)
    folder = store.check_output_folder(spec.figure.out)
    return Inputs((reference,), stream=stream, folder=folder, n_workers=spec.workers or 1)
