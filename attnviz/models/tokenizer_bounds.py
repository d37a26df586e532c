"""What a tokenizer.json may ask of the library that reads it: it is somebody else's file until it is checked.

The library allocates by the largest id, not by how many there are, repeats templates and replacements as often as the
file says, and panics where a pattern backtracks too long. So sizes are checked before it reads the file, and panics,
which no `except Exception` sees, become errors of ours. Knows JSON; neither torch nor the library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

from attnviz.errors import InvalidModel

MAX_ID = 10_000_000  # BPE makes room for as many before it begins
MAX_TEMPLATE = 64  # markers around a text
MAX_GROWTH = 64  # × a text's length, of all replacements together
HINT = "Take the tokenizer.json that came with the model."


def check_tokenizer(content: str, file: Path) -> None:
    """Raises InvalidModel for ids, templates or replacements beyond what a tokenizer needs, or no vocabulary."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"{file} is not a tokenizer.json: it is not JSON", hint=HINT) from error
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
    unknown = model.get("unk_token")
    if isinstance(entries, dict) and isinstance(unknown, str) and unknown not in entries and model.get("type") != "BPE":
        yield f"lacks its token for unknown words, {unknown!r:.40}"
    n_markers = max((len(each) for each in _lists_in(found.get("post_processor"))), default=0)
    if n_markers > MAX_TEMPLATE:
        yield f"puts {n_markers:,} markers around a text, at most {MAX_TEMPLATE} are"
    steps = [*_dicts_in(found.get("normalizer")), *_dicts_in(found.get("pre_tokenizer"))]
    written = [each[name] for each in steps for name in ("content", "prepend") if isinstance(each.get(name), str)]
    growth = prod(max(1, len(each)) for each in written)
    if growth > MAX_GROWTH:
        yield f"makes a text up to {growth:,.0f} times as long, at most {MAX_GROWTH} times is read"


def _dicts_in(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
        for each in part.values():
            yield from _dicts_in(each)
    elif isinstance(part, list):
        for each in part:
            yield from _dicts_in(each)


def _lists_in(part: Any) -> Iterator[list[Any]]:
    for each in _dicts_in(part):
        yield from (value for value in each.values() if isinstance(value, list))


@contextmanager
def caught_panics(what: str) -> Iterator[None]:
    """Raise InvalidModel for what the library raises about a file's own patterns and tables, its panics included."""
    try:
        yield
    except BaseException as error:
        # Bare Exception is what the library raises, and PanicException no subclass of it.
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        reason = " ".join(str(error).split())[:200]
        raise InvalidModel(f"the tokenizer of {what} fails on this text: {reason}", hint=HINT) from error
