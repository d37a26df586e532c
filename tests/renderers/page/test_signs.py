"""Bytes as signs, held against the standard library's base 85, which has the same digits in other signs."""

from __future__ import annotations

from base64 import b85decode, b85encode

from hypothesis import example, given
from hypothesis import strategies as st

from attnviz.renderers.page.signs import signs_of

THEIRS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
OURS = bytes(range(ord("("), ord("|") + 1)).replace(b"<", b"}")


def bytes_of(signs: str) -> bytes:
    return b85decode(signs.encode("ascii").translate(bytes.maketrans(OURS, THEIRS)))


@given(st.binary(max_size=40))
@example(b"\xff" * 8)
@example(b"\xff" * 7)
@example(b"\0" * 9)
@example(b"")
def test_digits_are_those_of_the_standard_library(data: bytes) -> None:
    assert signs_of(data) == b85encode(data).translate(bytes.maketrans(THEIRS, OURS))
    assert bytes_of(signs_of(data).decode("ascii")) == data


def test_no_sign_ends_a_block_or_parts_two() -> None:
    data = bytes(range(256)) * 300
    assert set(signs_of(data)) == set(OURS)
    assert not set(b"<& \n\"'") & set(OURS)
    assert len(signs_of(data)) == len(data) * 5 // 4
