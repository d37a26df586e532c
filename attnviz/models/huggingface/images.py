"""A third-party model that reads images at work: an image in, perhaps a question, AttentionMaps out.

What makes images ready is read from the model's own files. Which of its positions are which part of the image is
measured, see `attnviz.models.locating`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.bounded import check_room
from attnviz.errors import InvalidModel, InvalidOption, InvalidText
from attnviz.images import Photo
from attnviz.models import locating
from attnviz.models.device import enough_memory, versions
from attnviz.models.huggingface.generating import write_greedily
from attnviz.models.huggingface.model import HuggingFaceModel
from attnviz.models.huggingface.weights import is_asked, others_failure
from attnviz.models.protocols import EVERY, LayersAndHeads
from attnviz.models.recording.record import record
from attnviz.models.sizes import FLOAT32
from attnviz.records import AttentionMaps, name_tokens
from attnviz.records.attribution import CoverTest, LossKind
from attnviz.records.grid import Grid

# What is known of an image before its attention is recorded: of which kind of token what is written is, that, the group
# of attentions that has patches, and where these are.
Seen = tuple[int, tuple[int, ...], str, locating.Places]
MAX_RATIO = 8  # of an image's longer side to the shorter one: many models make the shorter one as long as they want it
OF_PIXELS = 14  # numbers of each that is given: its gradients, and where it lies
SMALLER = "An image that is smaller, or less long and narrow, has fewer; "
SMALLEST, TOO_SMALL = 64, "Enlarge the image to 64 × 64 pixels or more."  # of few pixels some patches are alike
HINT = "attnviz.record shows its attention in Python, and a Grid says where patches are."
ASK = 'Ask in quotes behind the file: attnviz heatmap photo.jpg "What is on the desk?" --model FOLDER --generate 12'


@dataclass(frozen=True, eq=False)
class ImageModel(HuggingFaceModel):
    """A model that reads images, with or without a question. Its `tokenizer` is the processor of its files."""

    takes_less = SMALLER
    seen: dict[str, Seen] = field(default_factory=dict, init=False)  # by the sha256 of the image that was read last

    def encode(self, text: str, choice: LayersAndHeads = EVERY) -> Any:
        """Return what the model is given. Raises as `attention` does."""
        inputs = self._prepare(self._check_photo(text))
        side = int(np.min(getattr(self.loaded.model.config, "patch_size", None) or 16))
        n_tokens = inputs["pixel_values"].numel() // (3 * side**2) + 1
        if is_asked(self.loaded.model):
            n_tokens = inputs["input_ids"].shape[1] + (self.extras.generate or 1) - 1
        self._check_room(n_tokens, n_tokens, choice)
        return inputs, n_tokens

    def map_size(self, text: str) -> tuple[int, int]:
        """Return about how many queries and keys an image's maps will have. Raises as `attention` does."""
        _, n_tokens = self.encode(text)
        return n_tokens, n_tokens

    def attend_factored(self, text: str, text_name: str = "text", choice: LayersAndHeads = EVERY) -> AttentionMaps:
        """Raise InvalidOption: of an image weights are recorded."""
        raise InvalidOption(f"q and k of {text} are not recorded", hint="Leave out factored.")

    def attention(self, text: str, text_name: str = "text", choice: LayersAndHeads = EVERY) -> AttentionMaps:
        """Attend over one image, of all layers and heads or of some.

        Raises InvalidText for what is no image, InvalidOption without a question that is needed, InvalidModel where it
        is not known which position is which part of the image, TooLarge.
        """
        photo = self._check_photo(text)
        inputs, _ = self.encode(photo, choice)
        kind, written, group, places = self._see(photo, inputs)
        with record(model=self.name, revision=self.revision, layers=choice.layers, heads=choice.heads) as recording:
            self._attend(_append(inputs, written[:-1], kind))
        (maps,) = recording.only(group)
        left, top, right, bottom = (share * side for share, side in zip(places.box, photo.image.size * 2, strict=True))
        shown = photo.image.crop((round(left), round(top), round(right), round(bottom)))
        grid = Grid(places.n_rows, places.n_columns, image=shown, at=places.at)
        names = dict(enumerate(grid.names(len(maps.keys)))) | places.markers
        if is_asked(self.loaded.model):
            ids = [*inputs["input_ids"][0].tolist(), *written[:-1]]
            names |= {place: self._decode(each) for place, each in enumerate(ids) if place not in {*places.at}}
        tokens = replace(name_tokens(tuple(names.values())), special=tuple(place in places.markers for place in names))
        measured = ("patches", f"{places.n_rows} × {places.n_columns}"), ("places_margin", round(places.margin, 3))
        provenance = replace(
            maps.provenance,
            text_sha256=photo.sha256,
            text_name=text_name,
            settings=(*maps.provenance.settings, *measured),
            versions=versions("transformers"),
            facts=replace(maps.provenance.facts, chosen=tuple(map(self._decode, written))),
        )
        return replace(maps, queries=tokens, keys=tokens, grid=grid, provenance=provenance)

    def test_cover(self, text: str, look: Float[np.ndarray, "row column"], queries: Sequence[int]) -> CoverTest | None:
        """Measure what an answer loses where the patches are covered that a look gives most, and where others are.

        The answer is what some queries wrote, the model's label, or the output of a query; None where there is none.
        Raises as `attention` does.
        """
        photo = self._check_photo(text)
        kind, written, _, places = self._see(photo, self._prepare(photo))

        def answer(image: Any) -> Any:
            return self._attend(_append(self._prepare(photo, image), written[:-1], kind))

        def measure(image: Any) -> float:
            lost = whole - read(answer(image))
            return float(lost.norm() / whole.norm() if what == "output" else lost.sum())

        with_all = answer(photo.image)
        found = self._choose_answer(with_all, written, queries)
        if found is None:
            return None
        what, said, read = found
        whole = read(with_all)
        number, (shown, *elsewhere) = locating.measure_covers(measure, photo.image, places.box, look)
        return CoverTest(what, said, number, shown, tuple(elsewhere))

    def _choose_answer(
        self, output: Any, written: Sequence[int], queries: Sequence[int]
    ) -> tuple[LossKind, str, Callable[[Any], Tensor]] | None:
        """Choose what is measured of an output, its name, and how it is read; None where there is nothing."""
        logits: Any = getattr(output, "logits", None)
        states = getattr(output, "last_hidden_state", None)
        if is_asked(self.loaded.model):
            before = len(logits[0]) - len(written)
            if not written or min(queries) < before:
                return None
            words = [written[query - before] for query in queries]
            said = "".join(map(self._decode, words)).strip()
            return "words", said, lambda each: each.logits[0, queries].log_softmax(-1)[range(len(words)), words]
        if logits is not None and logits.ndim == 2:
            best = int(logits.argmax())
            return "label", str(self.loaded.model.config.id2label[best]), lambda each: each.logits[0, best]
        if states is None or states.ndim != 3 or states.shape[1] <= queries[0]:
            return None
        return "output", "", lambda each: each.last_hidden_state[0, queries[0]]

    def _see(self, photo: Photo, inputs: locating.Inputs) -> Seen:
        """Find where in its input the image is, and let the model write: once, while it reads one image."""
        if photo.sha256 not in self.seen:
            written: tuple[int, ...] = ()
            group, places = self._find_places(photo, inputs)
            if self.extras.generate is not None:
                ids = inputs["input_ids"][0]
                never = ids[[*places.at]].unique().tolist()  # which stand for an image
                with others_failure(self.name, InvalidModel, HINT):
                    written = write_greedily(
                        self.loaded.model, self.extras.generate, inputs, len(ids), suppress_tokens=never
                    )
            self.seen.clear()
            self.seen[photo.sha256] = self._find_kind(inputs, written, group), written, group, places
        return self.seen[photo.sha256]

    def _find_kind(self, inputs: locating.Inputs, written: Sequence[int], group: str) -> int:
        """Find by which kind of token what is written is told from what is read, where that may look ahead."""
        if len(written) < 2:
            return 0
        with record(heads=[0]) as recording:
            self._attend(_append(inputs, written[:-1], 0))
        (maps,) = recording.only(group)
        n_read = len(maps.keys) - len(written[:-1])
        return int(maps.weights[:, :, :n_read, n_read:].any())

    def _check_photo(self, text: str) -> Photo:
        if not isinstance(text, Photo):
            raise InvalidText(f"{self.name} is to read an image, and this is a text", hint=ASK)
        width, height = text.image.size
        if max(width, height) > MAX_RATIO * min(width, height):
            hint = f"An image may be {MAX_RATIO} times as long as it is wide: cut it."
            raise InvalidText(f"{text} is {width:,} × {height:,} pixels", hint=hint)
        if is_asked(self.loaded.model) and not text.question:
            raise InvalidOption(f"{self.name} answers questions about an image", hint=ASK)
        if not is_asked(self.loaded.model) and (text.question or self.extras.generate is not None):
            raise InvalidOption(f"{self.name} reads no words", hint="Leave out the question and --generate.")
        return text

    def _prepare(self, photo: Photo, image: Any = None) -> dict[str, Any]:
        """Return what the model is given of an image, or of another in its place."""
        processor: Any = self.loaded.tokenizer
        given: dict[str, Any] = {"images": [photo.image if image is None else image], "return_tensors": "pt"}
        with others_failure(f"what reads images for {self.name}", InvalidModel, HINT):
            if getattr(processor, "chat_template", None):
                content = [{"type": "image"}, {"type": "text", "text": photo.question}]
                message = {"role": "user", "content": content}
                given["text"] = [processor.apply_chat_template([message], add_generation_prompt=True)]
            elif is_asked(self.loaded.model):
                given["text"] = [f"{getattr(processor, 'image_token', '')}{photo.question}"]
            found = processor(**given).to(self.device)
        taken = {*signature(self.loaded.model.forward).parameters} - {"labels"}
        return {name: each for name, each in found.items() if name in taken}

    def _attend(self, inputs: locating.Inputs) -> Any:
        with enough_memory(), torch.inference_mode(), others_failure(self.name, InvalidModel, HINT):
            return self.loaded.model(**inputs)

    def _decode(self, token: int) -> str:
        processor: Any = self.loaded.tokenizer
        return str(processor.tokenizer.decode([token]))

    def _find_places(self, photo: Photo, inputs: locating.Inputs) -> tuple[str, locating.Places]:
        """Find the last attention whose positions are parts of the image, and name those that are not."""
        model, why, followed = self.loaded.model, "no attention of one text to itself", list[str]()
        with record(heads=[0]) as recording:
            self._attend(inputs)
        layers = {group: _list_layers(group, model) for group in recording.groups}
        for group in reversed(recording.groups):
            maps = recording.only(group)
            if maps[0].provenance.facts.n_windows:
                why = f"{group} looks within each of {len(maps)} windows, which are records of their own"
            elif len(maps) == 1 and maps[0].self_attention and layers[group]:
                followed.append(group)
        del recording, maps  # whose weights take room
        shares = locating.read_shares(lambda image: self._prepare(photo, image), photo.image.size)
        name, pixels = locating.find_pixels(inputs)
        markers = locating.find_markers(model)
        pixels = pixels.clone().requires_grad_()
        room = self._work(0, 0, EVERY).fixed + OF_PIXELS * FLOAT32 * pixels.numel()

        def check(n_bytes: int) -> None:
            check_room("gradients, which tell where patches are,", room + n_bytes, self.spec.max_memory, SMALLER)

        for group in followed:
            before = [each for name, several in layers.items() if name != group for each in several]
            with enough_memory(), others_failure(self.name, InvalidModel, HINT):
                states = locating.read_states(model, {**inputs, name: pixels}, layers[group][0], before, check)
            found = locating.locate(states, pixels, shares, {} if is_asked(model) else markers)
            if isinstance(found, locating.Places):
                return group, found
            why = f"in {group} {found}"
        problem = f"which position of {self.name} is which part of the image is not known: {why}"
        raise InvalidModel(problem, hint=HINT if min(photo.image.size) >= SMALLEST else TOO_SMALL)


def _list_layers(group: str, model: nn.Module) -> list[nn.Module]:
    """List the modules of a group of attentions, such as "encoder.layer.*.attention #2", in their order: by numbers."""
    pattern = re.compile(re.escape(group.split(" #", maxsplit=1)[0]).replace(r"\*", "[0-9]+"))
    return [module for name, module in model.named_modules() if pattern.fullmatch(name)]


def _append(inputs: locating.Inputs, written: Sequence[int], kind: int) -> Mapping[str, Any]:
    """Append written tokens to every input that has one number per token: ids, mask, and else their `kind`."""
    length, found = inputs["input_ids"].shape if written else (), dict(inputs)
    for name, each in inputs.items():
        if written and isinstance(each, Tensor) and each.shape == length:
            numbers = {"input_ids": written, "attention_mask": [1] * len(written)}.get(name, [kind] * len(written))
            found[name] = torch.cat([each, torch.tensor([numbers], dtype=each.dtype, device=each.device)], 1)
    return found
