"""Explaining an answer: gradients of attention, what adds up, what is refused, and a model whose answer is known."""

import copy
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnviz.commands.attribute import card as attribution_card
from attnviz.errors import InvalidModel, InvalidOption
from attnviz.models.attribution import METHODS
from attnviz.models.attribution.held import HeldPass
from attnviz.models.attribution.operators import AttendingCall, WordInputs, attending
from attnviz.models.attribution.subject import Answering, Subject, attribute, make_labelled_subject
from attnviz.models.capture.tap import Operators
from attnviz.models.checkpoint import Classifier, ClassifierConfig
from attnviz.models.encoder import EncoderConfig
from attnviz.records import Provenance
from attnviz.records.answers import AnswerInfo
from attnviz.records.attribution import Attribution, Question
from tests.made import tokens
from tests.pretrained import built, opened, saved, stories

TEXT = "not a good film, but the acting saves it"
IDS = torch.tensor([[2, 7, 4, 9, 11, 5, 9, 3]])
CAUSAL, LABELS = "AutoModelForCausalLM", "AutoModelForSequenceClassification"
NAMES = [method.name for method in METHODS]


class Softmaxes(Operators):
    """The weights of an eager model as autograd has them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[Tensor] = []

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        result = super().run(name, func, args, kwargs)
        if name == "_softmax":
            self.found.append(result)
        return result


def of_weights(run: Callable[[], Tensor], words: Tensor) -> list[Tensor]:
    """∂L/∂A of each attention, by our rule."""
    seen: list[AttendingCall] = []
    with attending(attended=seen.append), WordInputs(words):
        logit = run()
    found = torch.autograd.grad(logit, [each.mixed for each in seen])
    return [each.weight_gradient(of_mixed) for each, of_mixed in zip(seen, found, strict=True)]


def agree(ours: Sequence[Tensor], exact: Sequence[Tensor]) -> None:
    assert len(ours) == len(exact) > 0
    for one, other in zip(ours, exact, strict=True):
        assert float((one - other).abs().max()) <= 1e-5 * float(other.abs().max())
        assert float(other.abs().max()) > 0


@pytest.mark.parametrize(
    ("kind", "auto", "kernel"),
    [
        *(("mistral", CAUSAL, "sdpa"), ("bert", LABELS, "sdpa"), ("t5", "AutoModelForSeq2SeqLM", "sdpa")),
        *(("llama", CAUSAL, "sdpa"), ("deberta-v2", LABELS, "eager")),  # Llama's kernel itself shares keys among heads
    ],
)
def test_gradients_of_weights_under_a_kernel_are_those_of_autograd(kind: str, auto: str, kernel: str) -> None:
    fused, eager = (built(kind, each, auto) for each in (kernel, "eager"))
    seen, given = Softmaxes(), {"input_ids": IDS} | ({"decoder_input_ids": IDS[:, :3]} if kind == "t5" else {})
    for each in (fused, eager):
        each.requires_grad_(False)
    with torch.enable_grad():
        words = eager.get_input_embeddings().weight
        with WordInputs(words), seen:
            logit = eager(**given).logits.flatten()[1]
        exact = torch.autograd.grad(logit, seen.found)
        ours = of_weights(lambda: fused(**given).logits.flatten()[1], fused.get_input_embeddings().weight)
    agree(ours, exact)
    assert kind != "t5" or {tuple(each.shape[2:]) for each in ours} == {(8, 8), (3, 3), (3, 8)}


@pytest.mark.parametrize("need_weights", [False, True])
def test_gradients_in_torchs_own_module_are_those_of_autograd(need_weights: bool) -> None:
    torch.manual_seed(0)
    module, words = nn.MultiheadAttention(12, 3, batch_first=True).requires_grad_(False), torch.randn(32, 12)
    weight = torch.randn(12)

    def run() -> Tensor:
        states = functional.embedding(IDS, words)
        output: Tensor = module(states, states, states, need_weights=need_weights)[0]
        return (output.mean(dim=1) @ weight).sum()

    states = words[IDS[0]].requires_grad_()
    query, key, value = functional.linear(states, module.in_proj_weight, module.in_proj_bias).chunk(3, dim=-1)
    query, key, value = (each.view(-1, 3, 4).transpose(0, 1) for each in (query, key, value))
    weights = (query @ key.transpose(-1, -2) / 2).softmax(dim=-1)
    output = module.out_proj((weights @ value).transpose(0, 1).flatten(1))
    logit = output.mean(dim=0) @ weight
    (exact,) = torch.autograd.grad(logit, weights, retain_graph=True)
    agree(of_weights(run, words), [exact.unsqueeze(0)])
    held = HeldPass(words, module)
    with held.hooks(), held:
        ours = run()
    (gradient,) = torch.autograd.grad(ours, held.vectors)
    assert float((gradient * held.vectors.detach()).sum()) + held.constants == pytest.approx(logit.item(), abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "kernel", "auto"),
    [
        *(("bert", "sdpa", LABELS), ("distilbert", "sdpa", LABELS), ("modernbert", "sdpa", LABELS)),
        *(("gpt2", "sdpa", CAUSAL), ("mixtral", "sdpa", CAUSAL)),
        *(("gemma2", "eager", CAUSAL), ("gpt2", "eager", CAUSAL), ("deberta-v2", "eager", LABELS)),
    ],
)
def test_held_passes_give_the_same_logit_and_add_up_to_it(kind: str, kernel: str, auto: str) -> None:
    model = built(kind, kernel, auto)
    with torch.no_grad():
        for parameter in model.parameters():  # biases that are 0 are not seen to be missing
            parameter.add_(0.1 * torch.randn_like(parameter))
        expected = model(input_ids=IDS).logits.flatten()[1]
    held = HeldPass(model.get_input_embeddings().weight, model)
    model.requires_grad_(False)
    with torch.enable_grad(), held.hooks(), held:
        logit = model(input_ids=IDS).logits.flatten()[1]
    (gradient,) = torch.autograd.grad(logit, held.vectors)
    assert logit.item() == pytest.approx(float(expected), abs=1e-5)
    assert float((gradient * held.vectors.detach()).sum()) + held.constants == pytest.approx(float(expected), abs=1e-4)
    assert abs(held.constants) > 1e-3 or kind in ("mixtral", "gemma2")


def test_a_model_that_is_not_linear_when_held_is_refused_by_name() -> None:
    model = built("mamba", "", CAUSAL)
    words, answers = model.get_input_embeddings().weight, AnswerInfo.from_training([*map(str, range(32))])
    answering = Answering(model, words, lambda ids: model(input_ids=ids).logits[:, -1])
    subject = make_labelled_subject(answering, ((5, 6, 7), tokens("a", "b", "c"), PROVENANCE), answers, Question())
    with pytest.raises(InvalidModel, match=r"adds up to .* not linear even when held: .*backbone\.layers\.0"):
        attribute(subject, "relevance")
    with pytest.raises(InvalidModel, match="no attention was seen"):
        attribute(subject, "attention")


def test_every_method_scores_each_token_of_a_decoder() -> None:
    model = opened(stories())
    text = "Once upon a time, there was a little girl who loved to"
    answered: list[int] = []  # positions of a text: all of a vocabulary's logits at each of them would be too many
    vocabulary = model.loaded.headed.get_output_embeddings()
    vocabulary.register_forward_hook(lambda _, __, made: answered.append(made.shape[1]))
    for method in NAMES:
        found = attribute(model.subject(text, "text", Question(target=" play", against=" be")), method)
        assert len(found.scores) == len(found.tokens) > 8
    assert {*answered} == {1}
    with pytest.raises(InvalidOption, match="not one token"):
        model.subject(text, "text", Question(target="a whole sentence"))


def test_answers_that_there_are_not_are_refused() -> None:
    shipped = opened("multi:8")
    with pytest.raises(InvalidOption, match="not a label") as refused:
        shipped.subject(TEXT, "text", Question(target="positiv"))
    assert "positive" in refused.value.hint
    with pytest.raises(InvalidOption, match="is the target itself"):
        shipped.subject(TEXT, "text", Question(target="positive", against="1"))


PROVENANCE = Provenance("tiny", "seed 0", True, "0" * 64)


PLANTED, N_WORDS = 9, 24
YES_OR_NO = AnswerInfo.from_training(("no", "yes"))


@pytest.fixture(scope="module")
def planted() -> Classifier:
    """Learns, in two seconds, to answer by whether one word stands in the text."""
    torch.manual_seed(0)
    encoder = EncoderConfig(N_WORDS, 16, 2, 1, 32, max_distance=4)
    found = Classifier(ClassifierConfig(encoder, pool="mean"))
    found.train()
    optimizer = torch.optim.Adam(found.parameters(), 1e-2)
    generator = torch.Generator().manual_seed(1)
    for _ in range(150):
        ids, labels = drawn(generator, 64)
        loss = functional.cross_entropy(found(ids, torch.ones_like(ids, dtype=torch.bool)), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return found.eval()


def drawn(generator: torch.Generator, n_texts: int) -> tuple[Tensor, Tensor]:
    ids = torch.randint(4, N_WORDS - 1, (n_texts, 12), generator=generator)
    ids = torch.where(ids >= PLANTED, ids + 1, ids)
    labels = torch.randint(2, (n_texts,), generator=generator)
    places = torch.randint(12, (n_texts,), generator=generator)
    ids[torch.arange(n_texts), places] = torch.where(labels == 1, PLANTED, ids[:, 0])
    return ids, labels


def subjects(model: Classifier, n_texts: int) -> Iterator[Subject]:
    """Texts that hold the planted word, asked for the label that it stands for."""

    def logits(ids: Tensor) -> Tensor:
        real = torch.ones_like(ids, dtype=torch.bool)
        return model.classify(model.states(ids, real, need_weights=torch.is_grad_enabled()), real)

    answering = Answering(model, model.encoder.embedding.words.weight, logits)
    ids, labels = drawn(torch.Generator().manual_seed(2), 4 * n_texts)
    for text in ids[labels == 1][:n_texts]:
        given = tuple(text.tolist()), tokens(*"abcdefghijkl"), PROVENANCE
        yield make_labelled_subject(answering, given, YES_OR_NO, Question(target="yes"))


HONEST = [name for name in NAMES if name not in ("random", "attention", "gradient")]


@pytest.mark.parametrize("method", HONEST)
def test_the_token_that_decides_is_first(planted: Classifier, method: str) -> None:
    for subject in subjects(planted, 10):
        assert subject.target.value > 0.9
        found: Attribution = attribute(subject, method)
        assert subject.ids[int(found.scores.argmax())] == PLANTED


def test_of_a_model_that_ignores_its_text_every_method_reads_as_chance(planted: Classifier) -> None:
    """Through the arithmetic of the card: nothing is lost by any deletion, whatever a method ranks first."""
    ignoring = copy.deepcopy(planted)
    torch.nn.init.zeros_(ignoring.output.weight)
    for subject in subjects(ignoring, 3):
        for row in attribution_card.test_methods(subject, NAMES):
            assert row["comprehensiveness"] == pytest.approx(0, abs=1e-7), row["method"]
            assert row["sufficiency"] == pytest.approx(0, abs=1e-7), row["method"]


def test_a_classifier_of_others_is_explained_from_its_folder(tmp_path: Path) -> None:
    names = {0: "bad", 1: "good", 2: "neither"}
    folder = saved(tmp_path, "bert", auto=LABELS, id2label=names, label2id={name: i for i, name in names.items()})
    model = opened(folder)
    found = attribute(model.subject("the acting saved the film", "text", Question("good", against="bad")), "relevance")
    assert (found.target.name, found.target.against) == ("good", "bad")
    assert found.tokens.pieces == ("[CLS]", "the", "acting", "saved", "the", "film", "[SEP]")
    assert found.tokens.special == (True, *(False,) * 5, True)
    assert float(found.scores.sum()) + sum(share for _, share in found.others) == pytest.approx(found.total, abs=1e-4)
    alone = model.subject("the acting saved the film", "text", Question("2"))
    assert (alone.target.name, alone.target.against) == ("neither", "")  # of three labels none stands against another
    assert attribute(alone, "leave-one-out").scores[[0, -1]].tolist() == [0, 0]
