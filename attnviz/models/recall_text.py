"""What a network of the recall task reads: texts such as "5 a3 b7". Knows no torch."""

from __future__ import annotations

import re
from typing import NamedTuple

from attnviz.capacity import N_VALUES, role_name
from attnviz.errors import InvalidText
from attnviz.records import Tokens

TOKEN = re.compile(r"([a-z]?)([0-9]{1,2})", re.ASCII)
EXAMPLE = "5 a3 b7 12 c0 d15 h1 9 e4 g2 f11 8"
HOW = f"Write it as {EXAMPLE!r}: each of a to h once with a value of 0 to {N_VALUES - 1}, other values alone."


class RecallText(NamedTuple):
    """A text as the task has it: of each token its role, 0 for none, and its value."""

    roles: tuple[int, ...]
    values: tuple[int, ...]
    tokens: Tokens


def read_recall(text: str, n_items: int) -> RecallText:
    """What the network reads. Raises InvalidText for anything that is no sequence of the task."""
    found = [(match.group(), match.span()) for match in re.finditer(r"\S+", text)]
    if not found:
        raise InvalidText("no tokens in the text", hint=HOW)
    roles, values = zip(*(_parts(piece, n_items) for piece, _ in found), strict=True)
    for number in range(1, n_items + 1):
        if (count := roles.count(number)) != 1:
            problem = f"no {role_name(number)}" if count == 0 else f"{role_name(number)} {count} times"
            raise InvalidText(f"the text has {problem}, to be recalled once", hint=HOW)
    pieces, spans = zip(*found, strict=True)
    return RecallText(roles, values, Tokens(pieces, spans, (False,) * len(pieces)))


def _parts(piece: str, n_items: int) -> tuple[int, int]:
    match = TOKEN.fullmatch(piece)
    role = next((n for n in range(1, n_items + 1) if match and role_name(n) == match[1]), 0)
    if not match or int(match[2]) >= N_VALUES or (match[1] and not role):
        raise InvalidText(f"{piece[:20]!r} is no token of the recall task", hint=HOW)
    return role, int(match[2])
