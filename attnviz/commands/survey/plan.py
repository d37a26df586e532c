"""What a survey measures: of which texts, in which blocks, within which bounds."""

import hashlib
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import count, islice
from operator import itemgetter

import numpy as np

from attnviz.commands.survey.facts import N_TEXTS, check_facts
from attnviz.commands.survey.knockouts import check_knockouts
from attnviz.commands.survey.measure import BLOCK, text_hash
from attnviz.commands.survey.spec import SurveySpec, parse_shard
from attnviz.commands.survey.survey import ABLATION, N_SAMPLED, TOKENS, SurveyInfo, SurveyMeasure
from attnviz.errors import InputError, InvalidModel, InvalidSource, InvalidText
from attnviz.inputs import Inputs
from attnviz.measures import choose_measures
from attnviz.measures.patterns import has_own_bracket
from attnviz.measures.rows import MAX_OFFSET
from attnviz.models.decomposition import Decomposable
from attnviz.models.loading import ModelReference
from attnviz.models.protocols import Ablatable
from attnviz.records import AttentionMaps, Setting
from attnviz.running.executors import open_model
from attnviz.running.versions import read_versions
from attnviz.text import Document
from attnviz.text.dataset import TextStream
from attnviz.views.captions import describe_status

N_SEARCHED = 1_000  # texts of a random sample, which are searched for some with pairs
N_VOCABULARY = 1_000  # texts at the beginning that make the vocabulary of a model that brings none


@dataclass(frozen=True, eq=False)
class SurveyPlan:
    """What is to be measured. `vocabulary` are the texts that the model is opened with."""

    reference: ModelReference
    stream: TextStream
    vocabulary: tuple[str, ...]
    info: SurveyInfo
    shard: tuple[int, int]  # which of how many, from 0
    on_few_texts: tuple[str, ...]  # see `SurveySpec`
    few: tuple[Document, ...]  # on which that is
    knocks_out: bool = False  # whether named heads of a decoder are to be left out
    means: np.ndarray | None = None  # what heads give on average, where they are to be replaced by that

    def blocks(self) -> Iterator[tuple[int, tuple[Document, ...]]]:
        """Yield the blocks of this shard with their numbers: every n-th, so that no shard has to know their count."""
        number, of = self.shard
        documents = self.stream.documents()
        for block in count():
            of_block = tuple(islice(documents, BLOCK))
            if not of_block:
                return
            if block % of == number:
                yield block, of_block


def plan_survey(spec: SurveySpec, inputs: Inputs) -> SurveyPlan:
    """Read the texts once to count them, and the first of them with the model.

    Raises InvalidSource where there is none, InvalidText where none has tokens, InvalidModel where the
    model does not attend to what it reads, InvalidOption where it cannot be held against what is asked for.
    """
    from attnviz.models.device import return_gaps  # torch comes with it

    reference, stream = inputs.model, inputs.stream
    assert stream is not None
    n_texts, of_texts, sample = _read_texts(stream)
    if not n_texts:
        raise InvalidSource(f"{stream.name} selects no texts", hint="--split says which.")
    learns = reference.learns_from_texts and spec.model.vocab is None
    vocabulary = tuple(each.text for each in islice(stream.documents(), N_VOCABULARY if learns else 1))
    model = open_model(reference, vocabulary)
    if knocks_out := bool(spec.ablations) and not isinstance(model, Ablatable):
        check_knockouts(spec, open_model(reference.answering()))
    for document in stream.documents():
        with suppress(InvalidText):
            maps = model.attention(document.text, document.name)
            break
    else:
        raise InvalidText(f"no tokens in the texts of {stream.name}", hint="Each is empty, blank, or only line breaks.")
    if not maps.self_attention:
        raise InvalidModel(f"{reference} attends from one text to another", hint="A survey needs self-attention.")
    check_facts(model, spec.on_few_texts)
    abilities = ["ablate"] if isinstance(model, Ablatable) else []
    with suppress(InputError):
        reference.answering(Decomposable).check(Decomposable)
        abilities.append("explain")
    info, means = replace(_info(spec, stream, of_texts, maps, tuple(abilities)), n_texts=n_texts), None
    if "mean" in spec.ablations and isinstance(model, Ablatable):
        means = model.mean_outputs([document.text for document in sample[:N_SAMPLED]])
    return_gaps()  # what was taken to read a text, which is drawn over many later
    shard, few = parse_shard(spec.shard), _choose_few(sample)
    return SurveyPlan(reference, stream, vocabulary, info, shard, spec.on_few_texts, few, knocks_out, means)


def _read_texts(stream: TextStream) -> tuple[int, dict[str, Setting], list[Document]]:
    """Return how many texts there are, what they are known by, and a random sample of them.

    That is the sha256 of them all with their labels. The sample are the texts of the smallest hashes, none blank
    and none twice: the same ones for every shard, and in any order of the texts.
    """
    n_texts, digest, seen = 0, hashlib.sha256(), set[int]()

    def read_once() -> Iterator[tuple[int, Document]]:
        nonlocal n_texts
        for document in stream.documents():
            digest.update(f"{len(document.text)} {document.label} {document.text}".encode("utf-8", "replace"))
            n_texts += 1
            if document.text.strip() and (number := text_hash(0, document.text)) not in seen:
                seen.add(number)
                yield number, document

    sample = nsmallest(N_SEARCHED, read_once(), key=itemgetter(0))
    return n_texts, {"texts_sha256": digest.hexdigest()}, [document for _, document in sample]


def _choose_few(sample: Sequence[Document]) -> tuple[Document, ...]:
    """Return the first of the sample, and the next with a pair of brackets or quotes until there are as many."""
    first = sample[:N_TEXTS]
    n_missing = N_TEXTS - sum(has_own_bracket(document.text) for document in first)
    having = (document for document in sample[N_TEXTS:] if has_own_bracket(document.text))
    return (*first, *islice(having, n_missing))


def _info(
    spec: SurveySpec, stream: TextStream, of_texts: dict[str, Setting], maps: AttentionMaps, abilities: tuple[str, ...]
) -> SurveyInfo:
    provenance, text = maps.provenance, spec.text
    options = {"dataset": text.dataset or "sample", "split": text.split, "text-column": text.text_column}
    written = " ".join(f"--{name} {shlex.quote(value)}" for name, value in options.items() if value and not text.inline)
    settings: dict[str, Setting] = {**dict(provenance.settings), "on_few_texts": ",".join(spec.on_few_texts)}
    settings |= {"seed": spec.model.seed, **of_texts}
    settings.pop("tokens_in_text", None)  # of this text alone
    assert spec.model.max_tokens is not None
    has_sink = maps.sink is not None or "to_sink" in spec.measure
    asked = (measure for measure in choose_measures(spec.measure) if measure.name != "to_sink" or has_sink)
    measures = [SurveyMeasure(measure.name, measure.unit, measure.level) for measure in asked]
    if "ablate" in abilities:  # of a decoder that is no measure of each text: see `leave_out_heads`
        measures += (SurveyMeasure(f"{ABLATION}{kind}", "probability lost", "head") for kind in spec.ablations)
    return SurveyInfo(
        model=provenance.model,
        option=spec.model.model,
        revision=provenance.revision,
        status=describe_status(provenance),
        trained=provenance.trained,
        layer_numbers=maps.layer_numbers,
        n_heads=maps.n_heads,
        causal=provenance.facts.causal,
        corpus=stream.name,
        n_texts=0,
        dataset=written,
        max_tokens=spec.model.max_tokens,
        keep=spec.model.keep,
        reach=MAX_OFFSET,
        can=abilities,
        has_words=not spec.no_text,
        measures=(*measures, SurveyMeasure(TOKENS, "tokens", "text")),
        settings=dict(sorted(settings.items())),  # as a file has them
        versions=dict(sorted(read_versions().items())),
    )
