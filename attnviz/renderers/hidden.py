"""The last door of documents and terminals: views have written out what is hidden, another report may not have."""

import re

HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")


def write_out_hidden(text: str) -> str:
    """Write controls, and what draws nothing or turns its neighbours around, as escapes: `\\u202e`."""
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
