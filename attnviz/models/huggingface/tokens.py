"""The tokenizer of a third-party model at work: text to ids, and to tokens called by the text that they cover.

Knows the tokenizers of transformers and no models. What a tokenizer does to a text is left to it, messages are
written by its template of chats, and a marker that is written in a text is read as its own tokenizer reads it.
"""

import copy
import hashlib
from collections.abc import Sequence, Set
from functools import cached_property
from typing import Any

from tokenizers import Encoding as Encoded

from attnviz.document import Chat, refuse_chat
from attnviz.errors import InvalidModel, InvalidOption, InvalidText, describe_error, raising
from attnviz.models.sizes import count_kept
from attnviz.models.tokenizer import EMPTY, Encoding
from attnviz.models.tokenizer_bounds import reading_text
from attnviz.records import Tokens, name_tokens
from attnviz.specs import KeepKind

ROLES = "Roles are mostly system, user and assistant, by turns."
MAX_BYTES = 4  # of one character in UTF-8
LONE_SPACE = "▁Ġ "  # what vocabularies call the space that they put before a text's first word


class HuggingFaceTokenizer:
    """Wraps a tokenizer of transformers.

    Raises InvalidModel for one that cannot say where in the text its tokens are.
    """

    def __init__(self, tokenizer: Any) -> None:
        if not getattr(tokenizer, "is_fast", False):
            problem = f"{type(tokenizer).__name__} cannot say where in a text its tokens are"
            raise InvalidModel(problem, hint="A tokenizer.json is needed: save the model with its fast tokenizer.")
        self._tokenizer = tokenizer
        self._backend = tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()

    def __len__(self) -> int:
        return len(self._tokenizer)

    @cached_property
    def sha256(self) -> str:
        """Return the sha256 of the tokenizer."""
        return hashlib.sha256(self._backend.to_str().encode()).hexdigest()

    def write_chat(self, chat: Chat) -> str:
        """Write messages as the model's own template does, and what its answer begins with behind the last question.

        Raises InvalidOption without a template, InvalidText where it refuses the messages.
        """
        if not getattr(self._tokenizer, "chat_template", None):
            raise refuse_chat()
        asks = chat.messages[-1]["role"] != "assistant"
        problem = "the template of this model refuses the messages:"  # a program of whoever made the model
        with raising(InvalidText, problem, ROLES, (Exception,), describe_error):
            return str(self._tokenizer.apply_chat_template(chat.messages, tokenize=False, add_generation_prompt=asks))

    def encode(
        self, text: str, pair: str | None = None, max_tokens: int | None = None, keep: KeepKind = "head"
    ) -> Encoding:
        """Return at most `max_tokens` tokens with markers, and one of each text; of two, the longer is cut first.

        Messages are written by the model's template. Raises InvalidText where a text has no tokens, InvalidOption for
        a pair that the model has no form for, and as `write_chat` does.
        """
        is_chat = isinstance(text, Chat)
        markers = {*self._tokenizer.all_special_ids} if is_chat else set[int]()
        text = self.write_chat(text) if isinstance(text, Chat) else text
        texts = [text] if pair is None else [text, pair]
        whole = [self._encode(each) for each in texts]
        lengths = [len(each.ids) for each in whole]
        n_tokens = sum(number not in markers for each in whole for number in each.ids)
        if pair is not None and self._backend.num_special_tokens_to_add(True) == 0:
            problem = "this model has no form for two texts"
            raise InvalidOption(problem, hint="Leave out --pair, or write both in one text.")
        if max_tokens is not None:
            room = max_tokens - (0 if is_chat else self._backend.num_special_tokens_to_add(pair is not None))
            whole = [_cut_middle(each, n, keep) for each, n in zip(whole, _shares(lengths, room), strict=True)]
        found = self._backend.post_process(*whole, add_special_tokens=not is_chat)  # a template writes its markers
        tokens = self._tokens(found, texts, markers)
        return Encoding(tuple(found.ids), tokens, n_tokens, types=tuple(found.type_ids))

    def name_speakers(self, chat: Chat, tokens: Tokens) -> str:
        """Say which tokens each message has: "system 3:21, user 25:30", without the last as in `--tokens`."""
        written, said, at = self.write_chat(chat), [], 0
        for message in chat.messages:
            words = message["content"].strip()
            at = max(at, written.find(words, at))
            end = at + len(words)
            places = [i for i, (first, last) in enumerate(tokens.offsets) if first < last and at < last and first < end]
            at = end
            said += [f"{message['role']} {places[0]}:{places[-1] + 1}"] if places else []
        return ", ".join(said)

    def encode_ids(self, ids: Sequence[int]) -> Encoding:
        """Return ids as if a text had been cut into them, between the markers of a text; a beginning also where the
        tokenizer leaves it out.
        """
        some = self._backend.encode("a", add_special_tokens=False)
        around = self._backend.post_process(some, add_special_tokens=True)
        n_before = around.special_tokens_mask.index(0)
        before, after = around.ids[:n_before], around.ids[n_before + len(some.ids) :]
        if not before and self._tokenizer.bos_token_id is not None:
            before = [self._tokenizer.bos_token_id]
        whole = (*before, *ids, *after)
        special = [not len(before) <= place < len(whole) - len(after) for place in range(len(whole))]
        names = list(map(str, self._tokenizer.convert_ids_to_tokens(whole)))
        types = (around.type_ids[n_before],) * len(whole)
        return Encoding(whole, name_tokens(names, special), len(ids), types=types)

    @property
    def mask(self) -> tuple[int, str] | None:
        """Return the id and the name of the mask token; None for models that fill in none."""
        found = self._tokenizer.mask_token_id
        return None if found is None else (found, str(self._tokenizer.mask_token))

    @property
    def ordinary_ids(self) -> tuple[int, ...]:
        """List the ids of all tokens but special ones, in order."""
        added = self._backend.get_added_tokens_decoder()
        special = {*self._tokenizer.all_special_ids, *(number for number, token in added.items() if token.special)}
        return tuple(sorted(set(self._tokenizer.get_vocab().values()) - special))

    def targets(self, text: str, start_id: int) -> Encoding:
        """Return what a decoder has read when it has written `text`: a start marker, and all but an end marker."""
        with reading_text("the target text"):
            found = self._tokenizer(text_target=text).encodings[0]
        tokens = self._tokens(found, [text])
        n = len(found.ids) - (tokens.special[-1] if found.ids else 0)
        if not any(not special for special in tokens.special[:n]):
            raise InvalidText("no tokens in the target text", hint=EMPTY)
        return self.start(start_id).append_ids(found.ids[:n], tokens)

    def next_id(self, text: str) -> int | None:
        """Return the token that adds just `text` to what is before it; None where no single one does.

        Looked up by what each entry stands for, since tokenizers put a space before what they take for a beginning.
        """
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        if text in vocabulary:
            return vocabulary[text]
        spaced = [text.replace(" ", sign, 1) for sign in ("▁", "Ġ") if text.startswith(" ")]
        return next((vocabulary[each] for each in spaced if each in vocabulary), None)

    def start(self, start_id: int) -> Encoding:
        """Return what a decoder has read when it has written nothing."""
        name = str(self._tokenizer.convert_ids_to_tokens(start_id))
        return Encoding((start_id,), Tokens((name,), ((0, 0),), (True,)), 0, types=(0,))

    def decode_written(self, before: Sequence[int], ids: Sequence[int], at: int) -> Tokens:
        """Decode what a model wrote behind the ids `before` by what each token adds; `at`: where it begins.

        Tokens that are bytes of one character cover all of it.
        """
        special = set(self._tokenizer.all_special_ids)
        whole, first = (*before[-1:], *ids), len(before[-1:])
        shown, pieces, offsets = 0, [], []
        begin = first
        for end in range(first + 1, len(whole) + 1):
            already = self._backend.decode(list(whole[shown:begin]), skip_special_tokens=False)
            text = self._backend.decode(list(whole[shown:end]), skip_special_tokens=False)
            if text.endswith("\ufffd") and end - begin < MAX_BYTES and end < len(whole):
                continue
            marker = end - begin == 1 and whole[begin] in special
            piece = self._tokenizer.convert_ids_to_tokens(whole[begin]) if marker else text[len(already) :]
            span = (at, at if marker else at + len(piece))
            pieces += [str(piece)] * (end - begin)
            offsets += [span] * (end - begin)
            at, shown, begin = span[1], begin, end
        return Tokens(tuple(pieces), tuple(offsets), tuple(i in special for i in ids))

    def _encode(self, text: str) -> Encoded:
        with reading_text():
            found: Encoded = self._backend.encode(text, add_special_tokens=False)
        if not found.ids:
            raise InvalidText("no tokens in the text", hint=EMPTY)
        return found

    def _tokens(self, found: Encoded, texts: list[str], markers: Set[int] = frozenset()) -> Tokens:
        marked = zip(found.special_tokens_mask, found.ids, strict=True)
        special = tuple(bool(mask) or number in markers for mask, number in marked)
        pieces, offsets = [], []
        for place, (name, (start, end)) in enumerate(zip(found.tokens, found.offsets, strict=True)):
            which = found.sequence_ids[place] or 0
            text, before = texts[which], sum(len(each) + 1 for each in texts[:which])
            if special[place]:
                piece, end = name, start
            elif not name.strip(LONE_SPACE) and not text[start:end].isspace():
                piece, end = " ", start  # put in by the tokenizer, so that it covers nothing
            else:
                piece = text[start:end]
            pieces.append(piece)
            offsets.append((before + start, before + end))
        name_of_unknown = self._tokenizer.unk_token  # whose id transformers seeks for ever where no entry has the name
        unknown_id = None if name_of_unknown is None else self._backend.token_to_id(name_of_unknown)
        unknown = tuple(
            i == unknown_id and not marker and piece != name_of_unknown
            for i, marker, piece in zip(found.ids, special, pieces, strict=True)
        )
        return Tokens(tuple(pieces), tuple(offsets), special, unknown)


def _shares(lengths: list[int], room: int) -> list[int]:
    """Return how many tokens of each text stay: the longer gives way until both are alike."""
    if len(lengths) == 1:
        return [max(1, room)]
    first, second = lengths
    of_second = min(second, max(room // 2, room - first))
    return [max(1, min(first, room - of_second)), max(1, of_second)]


def _cut_middle(found: Encoded, room: int, keep: KeepKind) -> Encoded:
    head, tail = count_kept(len(found.ids), room, keep)
    if head + tail == len(found.ids):
        return found
    first = copy.deepcopy(found)
    first.truncate(head)
    if not tail:
        return first
    last = copy.deepcopy(found)
    last.truncate(tail, direction="left")
    return Encoded.merge([first, last], growing_offsets=False)
