"""One file that opens anywhere, without a network: scripts joined, a policy, and data that no token can close.

Nothing leaves a page and nothing is run but our own script: a Content-Security-Policy allows it, and our style, by
their sha256 and forbids the rest. Texts are data: they stand in a JSON block, and the script puts them on the page as
text. Modules import each other, and are one script in a page, which gets those that it needs.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from attnviz.display import replace_surrogates

HERE = "attnviz.renderers.page"
IMPORT = re.compile(r'^import \{[^}]*\} from "[./\w-]*/(?P<name>[\w-]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(async )?function |const |class |let )", re.MULTILINE)
IDLE = re.compile(r"^ *//.*\n| +// .*$|/\*.*?\*/|^ +|\n(?=\n)", re.MULTILINE)  # a tenth of scripts and styles
CLOSING = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}  # of JSON within HTML, where they could end the block


@cache
def join_scripts(names: tuple[str, ...], room: str = HERE) -> str:
    """Modules as one, each after those that it imports; so that names are their own, no two may have the same."""
    order: list[str] = []

    def visit(name: str) -> None:
        for imported in IMPORT.finditer(read_part(name, room)):
            visit(imported["name"])
        if name not in order:
            order.append(name)

    for name in names:
        visit(name)
    return "\n".join(IDLE.sub("", EXPORT.sub("", IMPORT.sub("", read_part(name, room)))).strip() for name in order)


def join_styles(names: Sequence[str], room: str = HERE) -> str:
    """Styles as one, in this order."""
    return IDLE.sub("", "".join(read_part(name, room) for name in names))


@cache
def read_part(name: str, room: str = HERE) -> str:
    """A file of a page: of its own room, a package, else of what pages share."""
    own = files(room).joinpath(name)
    return (own if own.is_file() else files(HERE).joinpath(name)).read_text(encoding="utf-8")


def write_policy(script: str, style: str) -> str:
    """What the page may do: run this script, look like this, show pictures and use fonts that it holds, and no more."""
    hashes = (b64encode(sha256(part.encode("utf-8")).digest()).decode("ascii") for part in (script, style))
    parts = (f"{name}-src 'sha256-{digest}'" for name, digest in zip(("script", "style"), hashes, strict=True))
    return "; ".join(
        ("default-src 'none'", *parts, "img-src data:", "font-src data:", "base-uri 'none'", "form-action 'none'")
    )


def write_title(title: str) -> str:
    """A title as HTML, whatever characters are in it."""
    return escape(replace_surrogates(title).replace("\0", "\ufffd"))


def write_json(document: object) -> str:
    """Pure ASCII, in which no character can end the block that it stands in."""
    written = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda sign: CLOSING[sign[0]], written)
