"""Text to tokens and ids, with offsets back into the text. The only module that knows Hugging Face `tokenizers`.

The vocabulary is a `tokenizer.json` that other tools load too. Offsets count characters of the text as given, so
nothing here changes a text except to lower case (which keeps every offset).
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from attnviz.bounded import MAX_VOCABULARY, is_folder, read_bytes
from attnviz.document import Chat, refuse_chat
from attnviz.errors import InvalidModel, InvalidText
from attnviz.models.sizes import count_kept
from attnviz.models.tokenizer_bounds import check_tokenizer, is_panic, reading_text
from attnviz.records import Tokens, name_tokens
from attnviz.specs import KeepKind, VocabularyOptions

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # faster on few cores, and no warning after a fork

PADDING, UNKNOWN, CLASSIFY = "[PAD]", "[UNK]", "[CLS]"
EMPTY = "It is empty, blank, or holds only line breaks."
RARE = "It is blank, or no word of it occurs often enough for --min-frequency."
BATCH = 256  # texts encoded at a time
SPECIAL = [PADDING, UNKNOWN, CLASSIFY]
# Models and their trainers: only kinds whose training is deterministic are here.
KINDS = {"word": (models.WordLevel, trainers.WordLevelTrainer), "bpe": (models.BPE, trainers.BpeTrainer)}

# Words with their inner apostrophes; a Han or kana character is a word of its own; else any one grapheme, of which a
# space is no part. What combines with a space stands by itself, also where letters follow.
_HAN_OR_KANA = r"[\p{Han}\p{Hiragana}\p{Katakana}]"
_IN_WORDS = rf"[[\p{{L}}\p{{N}}\p{{M}}]&&[^{_HAN_OR_KANA}]]"
_GRAPHEME = r"\S(?:\Y\S)*"  # on to where one ends
_PIECE = rf"(?<=\p{{Zs}})\Y{_GRAPHEME}|[{_IN_WORDS}_]+(?:['’]{_IN_WORDS}+)*|{_HAN_OR_KANA}|{_GRAPHEME}"


@dataclass(frozen=True)
class Encoding:
    """Ids beside the tokens they stand for; `n_tokens` counts all that the text has, also what was cut off, without
    markers.

    `types` tells a second text from the first, for models that ask; offsets of a second text go on where the first and
    one character between them end.
    """

    ids: tuple[int, ...]
    tokens: Tokens
    n_tokens: int
    types: tuple[int, ...] = ()

    def append_ids(self, ids: Sequence[int], tokens: Tokens) -> "Encoding":
        """Append further ids, and as many of their tokens."""
        n = len(ids)
        fields = ("pieces", "offsets", "special", "unknown")
        read = Tokens(*(getattr(self.tokens, field) + getattr(tokens, field)[:n] for field in fields))
        return Encoding((*self.ids, *ids), read, self.n_tokens + n, types=(*self.types, *(0,) * n))


class TextTokenizer:
    """A vocabulary at work. Make one with `train` or `load`. `classify`: each text begins with a [CLS]."""

    def __init__(self, tokenizer: Tokenizer, classify: bool = False) -> None:
        self.classify = classify
        tokenizer.no_padding()
        tokenizer.no_truncation()
        # Else a text that contains "[PAD]" would hold padding. It is not saved, so it is set after every load.
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self._last: tuple[object, Encoding] | None = None

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def to_json(self) -> str:
        """Return the `tokenizer.json`: the same text for the same vocabulary."""
        return str(self._tokenizer.to_str(pretty=True))

    @cached_property
    def sha256(self) -> str:
        """Return the sha256 of the tokenizer."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def encode(self, text: str, max_tokens: int | None = None, keep: KeepKind = "head") -> Encoding:
        """Return at most `max_tokens` tokens of a text, a marker included, and at least one of its own.

        The last text is remembered: whether there is room for it is asked first. Raises InvalidText when the text has
        none or holds a lone surrogate, InvalidOption for a chat.
        """
        if isinstance(text, Chat):
            raise refuse_chat()
        asked, last = (text, max_tokens, keep), self._last  # read once: another thread may ask meanwhile
        if last is None or last[0] != asked:
            last = self._last = asked, self._encode(*asked)
        return last[1]

    def _encode(self, text: str, max_tokens: int | None, keep: KeepKind) -> Encoding:
        with reading_text():
            found = self._tokenizer.encode(text, add_special_tokens=False)
        all_ids, all_offsets, all_special = found.ids, found.offsets, found.special_tokens_mask  # each makes a new list
        if not all_ids:
            raise InvalidText("no tokens in the text", hint=EMPTY)
        unknown_id = self._tokenizer.token_to_id(UNKNOWN)  # None where the vocabulary holds all there can be
        markers = self._markers
        room = None if max_tokens is None else max(1, max_tokens - len(markers))
        head, tail = count_kept(len(all_ids), room, keep)
        ids, offsets, special = ((*of[:head], *of[len(of) - tail :]) for of in (all_ids, all_offsets, all_special))
        tokens = Tokens(
            pieces=(*(CLASSIFY for _ in markers), *[text[start:end] for start, end in offsets]),
            offsets=(*((0, 0) for _ in markers), *offsets),
            special=(*(True for _ in markers), *map(bool, special)),
            unknown=(*(False for _ in markers), *[number == unknown_id for number in ids]),
        )
        return Encoding((*markers, *ids), tokens, n_tokens=len(all_ids))

    def encode_ids(self, ids: Sequence[int]) -> Encoding:
        """Return ids as if a text had been cut into them, with the markers of a text."""
        all_ids = (*self._markers, *ids)
        names = [str(self._tokenizer.id_to_token(each)) for each in all_ids]
        special = [place < len(self._markers) for place in range(len(all_ids))]
        return Encoding(all_ids, name_tokens(names, special), n_tokens=len(ids))

    @property
    def ordinary_ids(self) -> tuple[int, ...]:
        """List the ids of all tokens but special ones, in order."""
        return tuple(sorted(number for entry, number in self._tokenizer.get_vocab().items() if entry not in SPECIAL))

    def ids(self, texts: Iterable[str]) -> Iterator[Int[np.ndarray, " token"]]:
        """Yield the ids of whole texts, markers included; of a text without tokens, its markers or nothing."""
        for encoded in self._encode_each(texts):
            yield np.array((*self._markers, *encoded.ids), dtype=np.int32)

    def _encode_each(self, texts: Iterable[str]) -> Iterator[Any]:
        remaining = iter(texts)
        while batch := list(islice(remaining, BATCH)):  # bounded memory, however many texts
            with reading_text("a text"):
                found = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            yield from found

    @property
    def _markers(self) -> tuple[int, ...]:
        return (SPECIAL.index(CLASSIFY),) if self.classify else ()

    def count(self, texts: Iterable[str]) -> Counter[str]:
        """Return how often each entry occurs in `texts`; a word that is not in the vocabulary counts as `[UNK]`."""
        found: Counter[int] = Counter()
        for encoded in self._encode_each(texts):
            found.update(encoded.ids)
        return Counter({str(self._tokenizer.id_to_token(i)): n for i, n in found.items()})


def train(texts: Iterable[str], spec: VocabularyOptions, classify: bool = False) -> TextTokenizer:
    """Return a vocabulary of the commonest words (or BPE pieces) of `texts`. The same texts give the same bytes.

    Raises InvalidText when the texts hold no token.
    """
    model, trainer = KINDS[spec.tokenizer or "word"]
    tokenizer = Tokenizer(model(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"<br\s*/?>"), behavior="removed"),  # line breaks of web pages, as IMDb has
            pre_tokenizers.Split(Regex(_PIECE), behavior="removed", invert=True),  # white space in between is
        ]
    )
    sizes = {"vocab_size": spec.size, "min_frequency": spec.min_frequency}
    with reading_text("a text"):
        tokenizer.train_from_iterator(texts, trainer(**sizes, special_tokens=SPECIAL, show_progress=False))
    if tokenizer.get_vocab_size() <= len(SPECIAL):
        raise InvalidText("no tokens in the text", hint=EMPTY if spec.min_frequency == 1 else RARE)
    return TextTokenizer(tokenizer, classify)


WRITES = "attnviz vocab writes a tokenizer.json."


def load(path: Path, classify: bool = False) -> TextTokenizer:
    """Return a `tokenizer.json`, or the one in a folder. Raises InvalidModel naming the file."""
    file = path / "tokenizer.json" if is_folder(path) else path
    content = read_bytes(file, MAX_VOCABULARY, InvalidModel, WRITES)
    check_tokenizer(content, file)
    try:
        vocabulary = Tokenizer.from_buffer(content)
    except BaseException as error:  # the library raises bare Exception, and panics
        if not (isinstance(error, Exception) or is_panic(error)):
            raise
        raise InvalidModel(f"{file} is not a tokenizer.json: {error}", hint=WRITES) from error
    if classify and vocabulary.token_to_id(CLASSIFY) != SPECIAL.index(CLASSIFY):
        problem = f"{file} lacks {CLASSIFY}, which this model puts before each text"
        raise InvalidModel(problem, hint="Copy the folder again.")
    return TextTokenizer(vocabulary, classify)
