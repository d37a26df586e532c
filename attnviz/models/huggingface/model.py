"""A third-party model at work: text in, AttentionMaps out, under whatever kernel it runs."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import torch

from attnviz.bounded import check_room
from attnviz.document import Chat
from attnviz.errors import InvalidModel, InvalidOption, TooLarge
from attnviz.models.ablation import find_projections
from attnviz.models.attention import Norms, OutputWeights
from attnviz.models.attribution.operators import Attending, AttendingCall
from attnviz.models.capture.call import Call
from attnviz.models.capture.tap import Capture, capture
from attnviz.models.device import enough_memory, seeded, versions
from attnviz.models.huggingface.weights import LoadedWeights, others_failure
from attnviz.models.protocols import EVERY, LayersAndHeads
from attnviz.models.recording.assembly import assemble, describe_origin, facts_of
from attnviz.models.recording.groups import Group, group_calls
from attnviz.models.recording.labels import AxisLabels
from attnviz.models.sizes import BASE_PRETRAINED, FLOAT32, ONE_CHARACTER, Work, check_memory
from attnviz.models.tokenizer import Encoding
from attnviz.records import AttentionMaps, Facts, Provenance, Setting
from attnviz.specs import AttentionKind, ModelOptions, PretrainedOptions

FEW = 4  # tokens that show which module does what


class Read(NamedTuple):
    """What a model reads: a text, or two, and what its decoder has written."""

    source: Encoding
    target: Encoding | None
    kind: AttentionKind
    written: tuple[int, ...] = ()  # ids that the model wrote; all but the last have been read again
    pieces: tuple[str, ...] = ()  # of these


@dataclass(frozen=True, eq=False)
class HuggingFaceModel:
    """A third-party model, and which of its attentions is asked for. Its sizes are those of its configuration."""

    name: str
    loaded: LoadedWeights
    device: torch.device
    spec: ModelOptions
    extras: PretrainedOptions

    trained = None  # weights do not tell whether they were trained
    takes_less = ""  # where --max-tokens does not
    n_attention_parameters = None  # which parameters serve attention is not known of somebody else's model

    @property
    def revision(self) -> str:
        """Return the sha256 of the weights, or where they come from."""
        return self.loaded.revision

    @property
    def n_layers(self) -> int:
        """Count the layers of the model, with attention or without."""
        return int(np.sum(getattr(self.loaded.config, "num_hidden_layers", 0) or 1))

    @property
    def n_heads(self) -> int:
        """Count the query heads of a layer; there may be fewer key heads, which queries share."""
        return int(np.max(getattr(self.loaded.config, "num_attention_heads", 0) or 1))  # stages may have their own

    @property
    def d_model(self) -> int:
        """Return the width of the hidden states, 0 where the configuration does not say."""
        return int(np.max(getattr(self.loaded.config, "hidden_size", 0) or 0))

    @property
    def n_parameters(self) -> int:
        """Count the learned numbers of the model."""
        return int(self.loaded.model.num_parameters())

    def encode(self, text: str, choice: LayersAndHeads = EVERY) -> Read:
        """Return what the model will read.

        Raises InvalidText without tokens, InvalidOption, TooLarge before anything is allocated.
        """
        read = self._read(text)
        n_queries, n_keys = (len(each.ids) for each in axes_of(read))
        self._check_room(n_queries, n_keys, choice)
        return read

    def _read(self, text: str) -> Read:
        """Return the same, whatever room its weights take."""
        kind = self._kind()
        text = Chat.ask(text) if self.spec.chat and not isinstance(text, Chat) else text
        check_room(f"the tokens of {len(text):,} characters", ONE_CHARACTER * len(text), self.spec.max_memory)
        source = self.loaded.tokenizer.encode(text, self.extras.pair, self.spec.max_tokens, self.spec.keep)
        read = Read(source, self._target() if kind in ("decoder", "cross") else None, kind)
        for each in (read.source, read.target):
            self._check_length(each)
        return read

    def _target(self) -> Encoding:
        """Return what the decoder has written, and so reads."""
        assert self.extras.target_text is not None
        return self.loaded.tokenizer.targets(self.extras.target_text, self.loaded.start_id)

    def _work(self, n_queries: int, n_keys: int, choice: LayersAndHeads) -> Work:
        sizes = n_queries, n_keys, self.n_heads, self.n_layers, self.d_model, self.n_parameters
        return Work(*sizes, base=BASE_PRETRAINED, n_maps=choice.n_maps(self.n_layers, self.n_heads))

    def _check_room(self, n_queries: int, n_keys: int, choice: LayersAndHeads) -> None:
        check_memory(self._work(n_queries, n_keys, choice), self.spec.max_memory, self.takes_less)

    def map_size(self, text: str) -> tuple[int, int]:
        """Return how many queries and keys its maps will have. Raises as `encode` does."""
        queries, keys = axes_of(self.encode(text))
        return len(queries.ids), len(keys.ids)

    def attention(self, text: str, text_name: str = "text", choice: LayersAndHeads = EVERY) -> AttentionMaps:
        """Attend over one text, of all layers and heads or of some.

        Raises as `encode` does, InvalidModel where no attention is seen, InvalidRecord where it does not give the
        output, InvalidSelection for a layer or head that there is not.
        """
        return self._record(self.encode(text, choice), text, text_name, choice)

    def list_ids(self) -> tuple[int, ...]:
        """List those of its vocabulary that are no special tokens and that it has a vector for, in order."""
        n_vectors = self.loaded.model.get_input_embeddings().num_embeddings
        return tuple(each for each in self.loaded.tokenizer.ordinary_ids if each < n_vectors)

    def find_max_ids(self) -> int | None:
        """Return how many ids it reads at a time beside its markers; None for no limit."""
        limits = [limit for limit in (self.spec.max_tokens, self.loaded.most_tokens) if limit is not None]
        return min(limits) - len(self.loaded.tokenizer.encode_ids(()).ids) if limits else None

    def attention_of_ids(self, ids: Sequence[int], text_name: str = "ids") -> AttentionMaps:
        """Attend over tokens that are no text's. Raises TooLarge, and as `attention` does."""
        source = self.loaded.tokenizer.encode_ids(ids)
        self._check_length(source)
        self._check_room(len(source.ids), len(source.ids), EVERY)
        return self._record(Read(source, None, self._kind()), " ".join(source.tokens.pieces), text_name)

    def attend_factored(self, text: str, text_name: str = "text", choice: LayersAndHeads = EVERY) -> AttentionMaps:
        """Attend over one text, of which only what weights are worked out from is held, of some layers and heads.

        Raises InvalidOption where its attention is not made of that, InvalidSelection for a layer or head that there is
        not, and as `attention` does.
        """
        if self.loaded.eager:
            raise InvalidOption(
                f"{self.name} writes its attention out, as soft-capping and sinks need: it has no q and k to record",
                hint="Leave out factored.",
            )
        read = self._read(text)
        n_queries, n_keys = (len(each.ids) for each in axes_of(read))
        work = self._work(n_queries, n_keys, choice)
        of_layer = 3 * FLOAT32 * self.d_model * (n_queries + n_keys)  # q, k and their copies while one is captured
        n_layers = self.n_layers if choice.layers is None else len(choice.layers)
        needed = work.fixed + work.per_token * max(n_queries, n_keys) + n_layers * of_layer
        check_room(f"{n_queries:,} tokens", needed, self.spec.max_memory)
        return self._record(read, text, text_name, choice, factored=True)

    def _record(
        self, read: Read, text: str, text_name: str, choice: LayersAndHeads = EVERY, *, factored: bool = False
    ) -> AttentionMaps:
        calls: list[Call] = []
        norms: dict[int, Norms] = {}

        def keep_norms(of: AttendingCall) -> None:
            norms[of.call.place] = of.value_norms()[list(of.call.heads)]

        with capture(calls.append, choice, factored=factored) as watching, Attending(calls, projected=keep_norms):
            self._run(read)
        group, value_norms = self._group(calls, watching, read.kind, choice), None
        if all(call.place in norms for call in group.calls):  # else some attention has no projection of its own
            value_norms = np.stack([norms[call.place] for call in group.calls])
        calls.clear()  # the group has them, and lets each go when it is copied
        queries, keys = (side.tokens for side in axes_of(read))
        if group.shape[2:] != (len(queries), len(keys)):
            problem = f"{self.name} attends from {group.shape[2]} to {group.shape[3]} places, the text has "
            problem = f"{problem}{len(queries)} and {len(keys)} tokens"
            raise InvalidModel(problem, hint="attnviz.record shows it in Python.")
        sides = AxisLabels(queries, keys, np.ones(len(queries), dtype=bool), np.ones(len(keys), dtype=bool))
        (maps,) = assemble(group, [sides], [self._describe(read, group, text, text_name)], value_norms)
        return maps

    def list_projections(self) -> list[OutputWeights]:
        """List the linear layers that read the heads of each attention, as far as there are some."""
        few = Read(self.loaded.tokenizer.encode_ids(self.list_ids()[:FEW]), None, self._kind())
        return find_projections(self.loaded.model, partial(self._run, few))

    def with_first_weights(self, seed: int) -> "HuggingFaceModel":
        """Return the same architecture before training, as its own code initialises it."""
        with seeded(seed), others_failure(self.name):
            model = type(self.loaded.model)(self.loaded.model.config).eval().to(self.device)
        return replace(self, loaded=replace(self.loaded, model=model))

    def _kind(self) -> AttentionKind:
        """Tell which attention is asked for, and which it is if nothing is said.

        Raises InvalidOption for one there is not.
        """
        asked, has_target = self.extras.attention, (self.extras.target_text or self.extras.generate) is not None
        if not self.loaded.model.config.is_encoder_decoder:
            if asked not in (None, "self") or self.extras.target_text is not None:
                option = f"--attention {asked}" if self.extras.target_text is None else "--target-text"
                raise InvalidOption(f"{option} is for encoder-decoders, and {self.name} is none", hint="Leave it out.")
            return "self"
        if asked == "self":
            problem = f"{self.name} has three attentions"
            raise InvalidOption(problem, hint="Choose --attention encoder, or with --target-text decoder or cross.")
        kind = asked or ("cross" if has_target else "encoder")
        if (kind == "encoder") == has_target:
            needs = "reads no target text" if has_target else "needs --target-text"
            raise InvalidOption(f"--attention {kind} {needs}", hint="The target text is what the decoder has written.")
        return kind

    def _check_length(self, read: Encoding | None) -> None:
        most = self.loaded.most_tokens
        if read is not None and most is not None and len(read.ids) > most:
            raise TooLarge(
                f"{len(read.ids):,} tokens, and {self.name} reads at most {most:,}",
                hint=f"--max-tokens {most} reads the first; --keep head-tail the beginning and the end.",
            )

    def _inputs(self, read: Read) -> dict[str, Any]:
        ids = self._tensor(read.source.ids)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def _run(self, read: Read) -> None:
        model, inputs = self.loaded.model, self._inputs(read)
        if read.kind == "encoder":
            model = model.get_encoder()
        else:
            n_kinds = getattr(self.loaded.config, "type_vocab_size", 0) or 0  # for models that tell two texts apart
            if n_kinds > 1 and "token_type_ids" in signature(model.forward).parameters:
                inputs["token_type_ids"] = self._tensor(read.source.types)
            if read.target is not None:
                inputs["decoder_input_ids"] = self._tensor(read.target.ids)
            if hasattr(model.config, "use_cache"):
                inputs["use_cache"] = False  # nothing follows
        with enough_memory(), torch.inference_mode(), others_failure(self.name):
            model(**inputs)

    def _tensor(self, numbers: Sequence[int]) -> torch.Tensor:
        return torch.tensor([numbers], device=self.device)

    def _group(self, calls: Sequence[Call], watching: Capture, kind: AttentionKind, choice: LayersAndHeads) -> Group:
        groups = group_calls(calls, watching, choice)
        if kind in ("decoder", "cross"):
            model = self.loaded.model
            encoder = next(name for name, module in model.named_modules() if module is model.get_encoder())
            groups = [group for group in groups if not group.name.startswith(f"{encoder}.")]
            groups = [group for group in groups if group.is_across == (kind == "cross")]
        if not groups:
            raise InvalidModel(f"no {kind} attention was seen in {self.name}", hint=watching.unread.describe_none())
        if len(groups) > 1:
            names = ", ".join(group.name for group in groups[:4])
            problem = f"{self.name} has attentions of several kinds ({names})"
            raise InvalidModel(problem, hint="attnviz.record shows each in Python.")
        return groups[0]

    def _describe(self, read: Read, group: Group, text: str, text_name: str) -> Provenance:
        """Say where a record comes from, and how it was made."""
        factors, causal = group.calls[0].factors, read.kind in ("self", "decoder")
        if factors is not None:
            causal &= factors.factors[0].window[1] == 0
        else:
            attendable = group.calls[0].attendable[0]
            causal &= not np.triu(attendable, 1).any() and len(attendable) > 1
        chat = Chat.ask(text) if self.spec.chat and not isinstance(text, Chat) else text
        speakers = self.loaded.tokenizer.name_speakers(chat, read.source.tokens) if isinstance(chat, Chat) else ""
        ids = ",".join(map(str, read.written))
        settings = (
            ("attention", read.kind),
            ("model_type", str(self.loaded.model.config.model_type)),
            ("kernel", "eager" if self.loaded.eager else "scaled_dot_product_attention"),
            *describe_origin(group),
            *([("guess", group.guess)] if group.guess else []),
            ("causal", causal),
            ("max_tokens", self.spec.max_tokens),
            ("keep", self.spec.keep),
            ("tokens_in_text", read.source.n_tokens),
            ("tokenizer_sha256", self.loaded.tokenizer.sha256),
            ("vocabulary_entries", len(self.loaded.tokenizer)),
            *([("messages", speakers)] if speakers else []),
            *((("generate", self.extras.generate), ("generated_ids", ids)) if read.written else ()),
        )
        facts = replace(
            facts_of(group),
            causal=causal,
            keep=self.spec.keep,
            tokens_in_text=read.source.n_tokens,
            chosen=read.pieces,
        )
        return self._provenance("".join((text, *facts.chosen)), text_name, settings, facts)

    def _provenance(
        self, text: str, text_name: str, settings: tuple[tuple[str, Setting], ...], facts: Facts
    ) -> Provenance:
        texts = (text, self.extras.pair, self.extras.target_text)
        whole = "\n".join(each for each in texts if each is not None)
        return Provenance(
            model=self.name,
            revision=self.revision,
            trained=self.trained,
            text_sha256=hashlib.sha256(whole.encode("utf-8")).hexdigest(),
            text_name=text_name,
            settings=settings,
            versions=versions("tokenizers", "transformers"),
            facts=facts,
        )


def axes_of(read: Read) -> tuple[Encoding, Encoding]:
    """Return what attends, and what is attended to."""
    if read.target is None:
        return read.source, read.source
    return read.target, read.source if read.kind == "cross" else read.target
