"""Bytes as signs that can stand in a page: five for four bytes, where base64 takes five and a third.

Base 85 with the signs from "(" to "|", which follow each other, so that a browser reads them quickly (page/cells.js);
"}" stands for "<", the only one that could end the block they stand in. Knows nothing of pages.
"""

from __future__ import annotations

import numpy as np

BASE = 85
ZERO = ord("(")
PAIRS = np.array([(ZERO + upper, ZERO + lower) for upper in range(BASE) for lower in range(BASE)], dtype=np.uint8)


def signs_of(data: bytes) -> bytes:
    """The signs; of 1, 2 or 3 bytes at the end one more than there are bytes."""
    missing = -len(data) % 4
    words = np.frombuffer(data + bytes(missing), dtype=">u4").astype(np.uint32)
    upper, rest = np.divmod(words, np.uint32(BASE**3))
    middle, lowest = np.divmod(rest, np.uint32(BASE))
    signs = np.empty((len(words), 5), dtype=np.uint8)
    signs[:, 0:2] = PAIRS[upper]
    signs[:, 2:4] = PAIRS[middle]
    signs[:, 4] = lowest + ZERO
    return signs.tobytes()[: signs.size - missing].replace(b"<", b"}")
