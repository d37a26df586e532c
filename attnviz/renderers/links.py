"""Where the rows of a table lead, as addresses that can be written into any document. Knows `report` only.

A link is a path below or beside the document. What could lead to another host, or be run, never becomes one.
"""

import re
from urllib.parse import quote

from attnviz.report import Table

ELSEWHERE = re.compile(r"[\x00-\x20]*([A-Za-z][A-Za-z0-9+.-]*:|[/\\])")  # a scheme, another host, the root of this one


def addresses(table: Table) -> tuple[str, ...]:
    """Return an address for each row, percent-encoded; "" where there is none, and for whatever is not relative."""
    # Every sign but letters, digits and _.-~/ is encoded, a colon too: an address with a scheme cannot come of it.
    encoded = ("" if ELSEWHERE.match(link) else quote(link, safe="/", errors="replace") for link in table.links)
    return tuple(encoded) or ("",) * len(table.rows)
