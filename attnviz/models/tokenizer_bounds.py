"""What a tokenizer.json may ask of the library that reads it: it is somebody else's file until it is checked.

The library allocates by the largest id, not by how many there are, repeats templates and replacements as often as the
file says, and panics where a pattern backtracks too long or a table is damaged. So sizes and tables are checked before
it reads the file, and panics, which no `except Exception` sees, become errors of ours. Knows JSON; neither torch nor
the library.
"""

import json
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

from attnviz.errors import InvalidModel, InvalidText, raising

MAX_ID = 10_000_000  # BPE makes room for as many before it begins
MAX_TEMPLATE = 64  # markers around a text
MAX_GROWTH = 64  # × a text's length, of all replacements together
MAX_AFFIX = 64  # characters before or behind a piece
MAX_WORD = 1_000  # characters: WordPiece takes their number cubed
MAX_ADDED = 2**20  # characters of all added tokens: the library takes some 70 bytes for each
HINT = "Take the tokenizer.json that came with the model."


def check_tokenizer(content: bytes, file: Path) -> None:
    """Raise InvalidModel for ids, templates or replacements beyond what a tokenizer needs, or no vocabulary."""
    with raising(InvalidModel, f"{file} is not a tokenizer.json: it is not JSON", HINT):
        found = json.loads(content)
    model = found.get("model") if isinstance(found, dict) else None
    if not isinstance(model, dict):
        raise InvalidModel(f"{file} is not a tokenizer.json: it has no model", hint=HINT)
    for problem in _problems(found, model):
        raise InvalidModel(f"{file} {problem}", hint=HINT)


def _problems(found: dict[str, Any], model: dict[str, Any]) -> Iterator[str]:
    entries, added = model.get("vocab"), found.get("added_tokens")
    ids = list(entries.values()) if isinstance(entries, dict) else list(range(len(entries or ())))
    if not ids:
        yield "has an empty vocabulary"
    ids += [each.get("id") for each in added or () if isinstance(each, dict)]
    largest = max((each for each in ids if isinstance(each, int)), default=0)
    if largest > MAX_ID:
        yield f"has the id {largest:,}, at most {MAX_ID:,} is read"
    n_added = sum(len(str(each.get("content"))) for each in added or () if isinstance(each, dict))
    if n_added > MAX_ADDED:
        yield f"adds tokens of {n_added:,} characters, at most {MAX_ADDED:,} are read"
    yield from _problems_of_pieces(model)
    unknown = model.get("unk_token")
    if isinstance(entries, dict) and isinstance(unknown, str) and unknown not in entries and model.get("type") != "BPE":
        yield f"lacks its token for unknown words, {unknown!r:.40}"
    parts = (value for each in _dicts_in(found.get("post_processor")) for value in each.values())
    lists = (value for value in parts if isinstance(value, list))
    n_markers = max(map(len, lists), default=0)
    if n_markers > MAX_TEMPLATE:
        yield f"puts {n_markers:,} markers around a text, at most {MAX_TEMPLATE} are"
    steps = [*_dicts_in(found.get("normalizer")), *_dicts_in(found.get("pre_tokenizer"))]
    written = [each[name] for each in steps for name in ("content", "prepend") if isinstance(each.get(name), str)]
    if any(_is_damaged(each.get("precompiled_charsmap")) for each in steps):
        yield "has a damaged table of characters"
    growth = prod(max(1, len(each)) for each in written)
    if growth > MAX_GROWTH:
        yield f"makes a text up to {growth:,.0f} times as long, at most {MAX_GROWTH} times is read"


def _problems_of_pieces(model: dict[str, Any]) -> Iterator[str]:
    prefix = model.get("continuing_subword_prefix")
    for affix in (prefix, model.get("end_of_word_suffix")):
        if isinstance(affix, str) and len(affix) > MAX_AFFIX:
            yield f"marks pieces by {len(affix):,} characters, at most {MAX_AFFIX} are"
    n_characters = model.get("max_input_chars_per_word")
    if isinstance(n_characters, int) and n_characters > MAX_WORD:
        yield f"cuts words of up to {n_characters:,} characters, at most {MAX_WORD:,} are"
    if isinstance(prefix, str) and prefix and isinstance(model.get("merges"), list):
        second = (each.split(" ")[-1] if isinstance(each, str) else each[-1:] for each in model["merges"])
        if not prefix.isascii() or not all("".join(map(str, each)).startswith(prefix) for each in second):
            yield f"has merges whose second part does not begin with {prefix!r:.40}"


def _is_damaged(table: object) -> bool:
    """Return whether the library would fail on a table: it begins with the size of its first part."""
    if not isinstance(table, str):
        return False
    try:
        found = b64decode(table, validate=True)
    except ValueError:
        return True
    return len(found) < 4 or int.from_bytes(found[:4], "little") > len(found) - 4


def _dicts_in(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
        for each in part.values():
            yield from _dicts_in(each)
    elif isinstance(part, list):
        for each in part:
            yield from _dicts_in(each)


def is_panic(error: BaseException) -> bool:
    """Return whether the library failed an assumption of its own: PanicException is no subclass of Exception."""
    return type(error).__name__ == "PanicException"


@contextmanager
def reading_text(what: str = "the text") -> Iterator[None]:
    """Raise InvalidText for half of a surrogate pair, InvalidModel for what a file's own patterns and tables lead to.

    The library raises bare Exception, and panics.
    """
    try:
        yield
    except (TypeError, UnicodeEncodeError) as error:
        raise InvalidText(f"{what} holds half of a surrogate pair", hint="Decode it with errors='replace'.") from error
    except BaseException as error:
        if type(error) is not Exception and not is_panic(error):
            raise
        reason = " ".join(str(error).split())[:200]
        raise InvalidModel(f"the tokenizer of this model fails on this text: {reason}", hint=HINT) from error
