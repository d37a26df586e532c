"""A third-party model whose answers are explained: a classifier, or a decoder and the token that it chooses."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attnviz.errors import InvalidOption
from attnviz.models.attribution.subject import Answering, Subject, make_subject
from attnviz.models.huggingface.model import HuggingFaceModel
from attnviz.models.huggingface.weights import others_failure
from attnviz.records import Facts
from attnviz.records.attribution import Question, Target


class HuggingFaceAnswering(HuggingFaceModel):
    """A model with the head that its answers come from."""

    def subject(self, text: str, text_name: str, question: Question) -> Subject:
        """One answer of one text. Raises as `encode` does, InvalidOption for a label or token that there is not."""
        read = self.encode(text)
        headed = self.loaded.headed
        assert headed is not None
        words = headed.get_input_embeddings().weight
        answering = Answering(headed, words, self._logits, self.device)
        n_tokens = read.source.n_tokens
        settings = (("model_type", str(self.loaded.model.config.model_type)), ("tokens_in_text", n_tokens))
        facts = Facts(tokens_in_text=n_tokens, keep=self.spec.keep)
        provenance = self._provenance(text, text_name, settings, facts)
        if "ForSequenceClassification" in type(headed).__name__:
            names = headed.config.id2label
            labels = [str(names[number]) for number in sorted(names)]
            return make_subject(answering, read.source.ids, read.source.tokens, labels, question, provenance)
        logits = answering.whole_logits(torch.tensor([read.source.ids]))[0].double().cpu()
        answer = int(logits.argmax()) if question.target is None else self._token(question.target, "target")
        against = None if question.against is None else self._token(question.against, "against")
        if against == answer:
            raise InvalidOption(f"--against {question.against!r} is the target itself", hint="Choose another token.")
        named = [
            self.loaded.tokenizer.decode_written(read.source.ids, (i,), 0).pieces[0] for i in (answer, against or 0)
        ]
        probability = float(logits.softmax(dim=-1)[answer])
        target = Target(named[0], "" if against is None else named[1], probability)
        return Subject(
            answering, read.source.ids, read.source.tokens, target, answer, against, provenance, question.seed
        )

    def _logits(self, ids: Tensor) -> Tensor:
        """Of labels, or of the token that comes next."""
        headed = self.loaded.headed
        assert headed is not None
        given: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if hasattr(headed.config, "use_cache"):
            given["use_cache"] = False
        with others_failure(self.name):
            logits = headed(**given).logits
        return torch.as_tensor(logits if logits.ndim == 2 else logits[:, -1])

    def _token(self, text: str, option: str) -> int:
        """The token that goes on with `text`. Raises InvalidOption where that takes several."""
        found = self.loaded.tokenizer.next_id(text)
        if found is None:
            raise InvalidOption(
                f"--{option} {text[:60]!r} is not one token of this model",
                hint="Give its first piece, with its space.",
            )
        return found
