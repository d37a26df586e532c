"""A third-party model with the head that its answers come from: labels, numbers, the next token or a masked one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnviz.bounded import check_room
from attnviz.document import Chat, Document
from attnviz.errors import InvalidModel, InvalidOption, InvalidText
from attnviz.models.ablation import Seen, find_projecting_layers, repeat_layers, silence_heads
from attnviz.models.attention import OutputWeights
from attnviz.models.attribution.subject import Answering, Subject, make_labelled_subject, make_subject
from attnviz.models.decomposition.stream import Stream, take_apart
from attnviz.models.decomposition.stream_pass import FORMS
from attnviz.models.device import enough_memory
from attnviz.models.huggingface.model import HuggingFaceModel
from attnviz.models.huggingface.weights import others_failure
from attnviz.models.predicting import BATCH, BATCH_TOKENS, batch_by_length, classify, read_logits
from attnviz.models.protocols import EVERY
from attnviz.models.sizes import FLOAT32
from attnviz.models.tokenizer import Encoding
from attnviz.records import Facts, Provenance
from attnviz.records.answers import AnswerInfo, AnswerKind, Prediction
from attnviz.records.attribution import Question, Target
from attnviz.specs import KeepKind

SCORES = 4  # numbers for each cell of each head, where attention is written out
KINDS: dict[str, AnswerKind] = {"regression": "score", "multi_label_classification": "labels"}  # by `problem_type`


class HeadedModel(HuggingFaceModel):
    """A model with its head. What it is explained by is what all kinds of head share, and those without one."""

    def _answering(self) -> Answering:
        headed = self.loaded.headed
        return Answering(headed, headed.get_input_embeddings().weight, self._logits)

    def _logits(self, ids: Tensor) -> Tensor:
        """Compute logits of labels, or of the next token. Texts are of one length, so that none is padded."""
        headed = self.loaded.headed
        if len(ids) > 1 and headed.config.get_text_config().pad_token_id is None:
            # A decoder seeks the last token of each text by it, and refuses several texts without.
            return torch.cat([self._logits(each) for each in torch.split(ids, 1)])
        given: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if hasattr(headed.config, "use_cache"):
            given["use_cache"] = False
        if "logits_to_keep" in signature(headed.forward).parameters:  # of a decoder, which answers at the last token
            given["logits_to_keep"] = 1
        with others_failure(self.name):
            logits = headed(**given).logits
        return self._choose_logits(logits, ids)

    def _choose_logits(self, logits: Tensor, ids: Tensor) -> Tensor:
        """Return those of the answer, where each token has some."""
        return logits if logits.ndim == 2 else logits[:, -1]

    def take_apart(self, text: str, text_name: str, question: Question | None) -> Stream:
        """Take one text apart without its head. Raises as `encode` does, InvalidModel for a form that is no sum."""
        read, body = self.encode(text), self.loaded.model
        if body.config.is_encoder_decoder:
            raise InvalidModel(f"{self.name} is an encoder-decoder, which cannot be taken apart", hint=FORMS)

        def read_first(ids: Tensor) -> Tensor:
            given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            with others_failure(self.name):
                return torch.as_tensor(body(**given, use_cache=False)[0][:, 0])

        answering = Answering(body, body.get_input_embeddings().weight, read_first)
        provenance, target = self.describe_reading(text, text_name, read.source.n_tokens), Target("", probability=1.0)
        return Stream(Subject(answering, read.source.ids, read.source.tokens, target, 0, None, provenance))

    def describe_reading(self, text: str, text_name: str, n_tokens: int) -> Provenance:
        """Say where numbers on a text come from that has so many tokens."""
        settings = (("model_type", str(self.loaded.model.config.model_type)), ("tokens_in_text", n_tokens))
        return self._provenance(text, text_name, settings, Facts(tokens_in_text=n_tokens, keep=self.spec.keep))


class NextTokenModel(HeadedModel):
    """A decoder, whose answer to a text is the token that comes next."""

    def subject(self, text: str, text_name: str, question: Question) -> Subject:
        """Choose one answer of one text. Raises as `encode` does, InvalidOption for a token that there is not."""
        read, answering = self.encode(text), self._answering()
        given = read.source.ids, read.source.tokens, self.describe_reading(text, text_name, read.source.n_tokens)
        return make_subject(answering, given, question, self._token, partial(self._name, read.source.ids))

    def take_apart(self, text: str, text_name: str, question: Question | None) -> Stream:
        """Take one answer of one text apart. Raises as `subject` does, InvalidModel for a form that is no sum."""
        if question is None:
            return super().take_apart(text, text_name, None)
        target, against = (self._spell(each, text) for each in (question.target, question.against))
        return take_apart(self.subject(text, text_name, replace(question, target=target, against=against)))

    def read_once(self, text: str) -> tuple[str, Encoding]:
        """Return a text as the model reads it, messages in its template, and its tokens, with room for one pass.

        Raises as `encode` does, whatever the weights of all heads would take.
        """
        read = self._read(text).source
        n_tokens = len(read.ids)
        work = self._work(n_tokens, n_tokens, EVERY)
        check_room(f"{n_tokens:,} tokens", work.fixed + work.per_token * n_tokens, self.spec.max_memory)
        return (self.loaded.tokenizer.write_chat(text) if isinstance(text, Chat) else text), read

    def spell_answer(self, text: str) -> tuple[int, ...]:
        """Return the tokens of an answer without markers. Raises InvalidText where it has none."""
        found = self.loaded.tokenizer.encode(text)
        return tuple(i for i, is_marker in zip(found.ids, found.tokens.special, strict=True) if not is_marker)

    def read_ids(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text as it is read. Raises as `encode` does."""
        return tuple(self.encode(text).source.ids)

    @contextmanager
    def without_heads(self, heads: Sequence[tuple[int, int]]) -> Iterator[None]:
        """Let heads, pairs of a layer and a head, give zeros meanwhile.

        Raises InvalidModel where not every layer projects what its heads give by weights of its own.
        """
        if len(self._projections) != self.n_layers:
            raise InvalidModel(f"the heads of {self.name} cannot be left out one by one", hint="Leave out --ablate.")
        n_same = min((layer for layer, _ in heads), default=0)
        with silence_heads(self._projections, heads), repeat_layers(self._layers[:n_same]):
            yield

    def losses(self, ids: Sequence[int]) -> np.ndarray:
        """Return [token]: nats that each token but the first costs behind those before it."""
        batch = self._tensor(ids)
        with enough_memory(), torch.inference_mode(), others_failure(self.name):
            logits = self.loaded.headed(input_ids=batch, attention_mask=torch.ones_like(batch), use_cache=False).logits
        return np.asarray(cross_entropy(logits[0, :-1].float(), batch[0, 1:], reduction="none").cpu().double())

    @cached_property
    def _projections(self) -> list[OutputWeights]:
        return self.list_projections()

    @cached_property
    def _layers(self) -> list[tuple[nn.Module, Seen]]:
        return [(layer, []) for layer in find_projecting_layers(self.loaded.headed, self._projections)]

    def _name(self, ids: Sequence[int], answer: int) -> str:
        """Name a token by what it adds behind the text, or where it adds nothing by its number."""
        return self.loaded.tokenizer.decode_written(ids, (answer,), 0).pieces[0] or f"token {answer}"

    def _spell(self, word: str | None, text: str) -> str | None:
        """Put a space before a word where the model is rather going to write it so behind the text."""
        if word is None:
            return None
        logits = self._answering().compute_logits(torch.tensor([self.read_ids(text)]))[0]
        found = {each: self.loaded.tokenizer.next_id(each) for each in (word, f" {word}")}
        known = {each: float(logits[i]) for each, i in found.items() if i is not None}
        return max(known, key=lambda each: known[each], default=word)

    def _token(self, text: str, option: str) -> int:
        """Return the token that goes on with `text`. Raises InvalidOption where that takes several."""
        found = self.loaded.tokenizer.next_id(text)
        if found is None:
            problem = f"--{option} {text[:60]!r} is not one token of this model"
            raise InvalidOption(problem, hint="Give its first piece, with its space.")
        return found


class MaskedTokenModel(NextTokenModel):
    """An encoder that was trained to fill in tokens, whose answer to a text is the one in place of its mask."""

    def take_apart(self, text: str, text_name: str, question: Question | None) -> Stream:
        """Take what is filled in apart. Raises InvalidText where a text has no mask or several."""
        mask = self.loaded.tokenizer.mask
        if question is not None:
            name = "[MASK]" if mask is None else mask[1]
            n_masks = 0 if mask is None else self.encode(text).source.ids.count(mask[0])
            if n_masks != 1:
                said = f"{n_masks or 'no'} {name} in the text, and {self.name} answers with what stands in place of one"
                raise InvalidText(said, hint=f"Write {name} once, or ask for one look: --head 1.0 --query WORD.")
        return super().take_apart(text, text_name, question)

    def _answering(self) -> Answering:
        return replace(super()._answering(), form="masked token")

    def _choose_logits(self, logits: Tensor, ids: Tensor) -> Tensor:
        assert self.loaded.tokenizer.mask is not None
        return logits[ids == self.loaded.tokenizer.mask[0]]


class HuggingFaceClassifier(HeadedModel):
    """A model that answers a text with a label, with several, or with a number, as its configuration says."""

    folder = None  # no metrics of attnviz lie there
    keep: KeepKind = "head"

    @property
    def answers(self) -> AnswerInfo:
        """Return what the model answers with.

        One output without a `problem_type` is a number, as transformers trains it.
        """
        config = self.loaded.headed.config
        names = [str(config.id2label[number]) for number in sorted(config.id2label)]
        kind = KINDS.get(str(config.problem_type), "score" if len(names) == 1 else "label")
        if kind == "score" and names == ["LABEL_0"]:  # what transformers calls a label that nobody named
            names = ["score"]
        return AnswerInfo.from_names(names, kind)

    @property
    def max_tokens(self) -> int | None:
        """Return the length of the longest text that the model reads, in tokens with markers."""
        return self.loaded.most_tokens

    def limit_tokens(self, max_tokens: int | None, keep: KeepKind) -> "HuggingFaceClassifier":
        """Return the same model with another limit, for its attention and its answers alike."""
        return replace(self, spec=replace(self.spec, max_tokens=max_tokens, keep=keep))

    def subject(self, text: str, text_name: str, question: Question) -> Subject:
        """Choose one answer of one text. Raises as `encode` does, InvalidOption for a label that there is not."""
        read = self.encode(text)
        given = read.source.ids, read.source.tokens, self.describe_reading(text, text_name, read.source.n_tokens)
        return make_labelled_subject(self._answering(), given, self.answers, question)

    def take_apart(self, text: str, text_name: str, question: Question | None) -> Stream:
        """Take one answer of one text apart. Raises as `subject` does, InvalidModel for a form that is no sum."""
        if question is None:
            return super().take_apart(text, text_name, None)
        return take_apart(self.subject(text, text_name, question))

    def classify(self, documents: Sequence[Document]) -> Iterator[Prediction]:
        """Return one prediction per text, in order.

        Raises InvalidText for a text without tokens, by its name, TooLarge before a batch is too large.
        """
        return classify(documents, lambda text: self._read(text).source, self._outputs, self.answers.kind)

    def _outputs(self, encodings: Sequence[Encoding]) -> np.ndarray:
        """Compute [text, label] of the model. Texts of one length are read together: padding changes some."""
        lengths = [len(each.ids) for each in encodings]
        longest = max(lengths)
        n_texts = min(BATCH, len(lengths), max(1, BATCH_TOKENS // longest))
        work = self._work(longest, longest, EVERY)
        cells = SCORES * self.n_heads * longest**2 if self.loaded.eager else 0
        needed = work.fixed + n_texts * (longest * work.per_token + FLOAT32 * cells)
        check_room(f"texts of {longest:,} tokens, {n_texts} at a time,", needed, self.spec.max_memory)
        found = np.empty((len(lengths), len(self.answers.labels)))
        for places in batch_by_length(lengths, BATCH, BATCH_TOKENS, alike=True):
            ids = torch.tensor([encodings[place].ids for place in places], device=self.device)
            with enough_memory(), torch.inference_mode():
                found[places] = read_logits(self._logits(ids), self.answers.kind)
        return found
