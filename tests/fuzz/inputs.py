"""What is given to the program: words of a command line, and files that were good before something was changed."""

import json
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from io import BytesIO
from typing import Any, Literal, get_args, get_origin

from hypothesis import strategies as st
from pyarrow import parquet as pq

from attnviz.commands import COMMANDS
from attnviz.options import ARGUMENT, FlatOption, list_options
from attnviz.registry import load
from tests.fuzz.laws import MAX_MEMORY

Draw = Callable[[st.SearchStrategy[Any]], Any]

SPECS = {command.name: list_options(spec) for command in COMMANDS if (spec := load(command.spec))}
LONG = "x" * 300
# Beside the folder of a run lie victim/ and room/; the rest is within it.
PATHS: tuple[str, ...] = ("text.txt", "record", "batch", "other", "model", "folder", "good.yaml", "table.csv", "empty")
PATHS += ("loop", "fifo")
PATHS += ("missing", "record/attention.safetensors", "batch/manifest.json", "model/tokenizer.json")
PATHS += ("folder/config.json", "folder/missing")
PATHS += ("/dev/null", "/dev/zero", "/dev/full", "/etc/passwd", "../victim", "../victim/secret.txt", LONG, "~nouser/x")
PATHS += ("~", "..", ".", "", "\udcff", "a\nb", "*", "-", "--", "multi:2", "single", "dot", "multi:" + "9" * 5000)
OUTPUTS = ("out", "out/deep", "empty", "loop", "fifo", "text.txt", "/dev/null", "/proc/x", LONG, "~nouser/x", "\udcff")
WORDS: tuple[str, ...] = ("", " ", "the cat sat", "0", "-1", "1e999", "nan", "train[:3]", "train[5]")
WORDS += ("train[-2:]+test", "9" * 40)
WORDS += ("[PAD]", "<br />", "\udcff\u202e\x1b[31m", "👨‍👩‍👧", "$$", "a" * 3000, "all", "entropy", "jsd=0.1")
WORDS += ("rollout", "0-3,7", "-entropy")
WORDS += ("png", "svg,pdf", "html", "json", "=", "=nan", "cuda:7", "cpu", "mps", "text", "label", "cat", "en")
WRONG: dict[str, tuple[Any, ...]] = {
    "int64": (-1, 0, 99, 10**18),
    "double": (float("nan"), float("inf"), -1.0, 1e308),
    "string": ("", "x" * 300, "[/]"),
    "list<element: int64>": ([], [-1], [9999], [None]),
    "list<element: double>": ([], [float("nan")], [None]),
}
WHOLE = (0, 1, 2, -1, 3, 7, 8, 65_536, 10**9, 10**18, 10**30)
NUMBERS = (0.0, 1.0, -1.0, 0.5, 1e-9, 1e308, float("nan"), float("inf"))
# What is slow because it was asked to be: it is not given larger numbers than these.
WORK = {"epochs": (0, 1, -1), "size": (0, 1, 60, -1), "dpi": (0, -1, 30, 10**9), "workers": (0, -1, 1, 10**9)}
WORK |= {"batch_size": (0, -1, 4, 10**9), "crop": (0, -1, 8, 10**9), "layers": (0, 1, 2, -1, 10**9)}
NOT_GIVEN = {"open", "max_memory", "out"}  # a browser; what the laws know
CHEAP = {
    "train": "--dataset table.csv --epochs 1 --d-model 8 --heads 1 --size 60 --max-tokens 16",
    "vocab": "--text-file text.txt",
    "compare": "--text-file text.txt --dpi 30",
    "heatmap": "--text-file text.txt --dpi 30",
    "render": "--dpi 30",
    "survey": "--text-file text.txt --dpi 30 --null none",
    "merge": "--dpi 30",
    "attribute": "--text-file text.txt --dpi 30",
    "explain": "--text-file text.txt",
    "lesson": "--text-file text.txt --max-tokens 8",
    "predict": "--text-file text.txt --dpi 30",
    "sources": "--text-file text.txt --model multi --dpi 30",
    "changed": "--text-file text.txt --noise 3 --dpi 30",
}
HOSTILE: tuple[Any, ...] = (None, True, False, -1, 0, 1, 3, 10**9, 10**18, 10**30, -(2**63), 1e308, float("nan"))
HOSTILE += (float("inf"), 0.5, "", "x", LONG, "\0", "\ud800", "../victim/secret.txt", "../../victim", "/etc/passwd")
HOSTILE += ([], {}, [[]], [[1, [2]]], {"": None}, {"a": {"b": []}}, ["x"] * 3000)
HOSTILE += ("index.html", "manifest.json", ".progress", "~")
HOSTILE += ("\x1b[31m", "\u202e", "__import__('os')", "loop", "fifo", "/dev/zero", "1:30", [-1], [10**18] * 2, [0, 0])

BYTES = (b"", b"\0", b"\xff\xfe", b"[" * 3000, b"{" * 3000, b"&a *a", b"1e999", b"9" * 5000, b"\n")
PIECES = (
    b"{},",
    b"[],",
    b"[",
    b'{"a":',
    b"a",
    b'"',
    b"\n",
    b",",
    b"<a ",
    b"<!--",
    b"&#",
    b"*a ",
    b"\xff",
    b"\0",
    b"0 ",
)


def values(option: FlatOption) -> st.SearchStrategy[Any]:
    """What may stand behind an option: of its kind, and not."""
    kinds = get_args(option.type) or (option.type,)
    own: tuple[Any, ...] = (*PATHS, *WORDS)
    if option.name in WORK:
        own = WORK[option.name]
    elif get_origin(option.type) is Literal or any(get_origin(kind) is Literal for kind in kinds):
        literals = [kind for kind in (option.type, *kinds) if get_origin(kind) is Literal]
        own = (*get_args(literals[0]), "x")
    elif float in kinds:
        own = (*NUMBERS, "x")
    elif int in kinds:
        own = (*WHOLE, "x")
    elif option.option.table:
        own = (*(name for name, _ in option.option.names()), *own)
    return st.sampled_from(own)


@st.composite
def command_lines(draw: Draw, command: str | None = None, *places: str) -> list[str]:
    """A command, what stands in its places, and a few of its options."""
    name: str = command or draw(st.sampled_from(sorted(SPECS)))
    options = [option for option in SPECS[name] if option.name not in NOT_GIVEN]
    words = [name, *places]
    if not any(place.startswith("--") for place in places):  # which are as cheap, and no option may stand twice
        words += CHEAP.get(name, "").split()
    for option in (option for option in options if option.option.panel == ARGUMENT and not places):
        n = draw(st.integers(1, 3)) if get_origin(option.type) is tuple else 1
        words += [str(draw(values(option))) for _ in range(n)]
    flags = [each for each in options if each.option.panel != ARGUMENT and each.flag not in words]
    for option in draw(st.lists(st.sampled_from(flags), max_size=4, unique_by=lambda each: each.flag)) if flags else ():
        words.append(option.flag)
        if option.type is not bool:
            words.append(str(draw(values(option))))
    if any(option.name == "max_memory" for option in SPECS[name]) and "--max-memory" not in words:
        words += ["--max-memory", str(MAX_MEMORY)]
    return words


@st.composite
def configs(draw: Draw) -> bytes:
    """A config of jobs with options of all kinds, or a good one that was changed."""
    commands = [name for name in SPECS if name in CHEAP and name not in ("train", "vocab", "render")]
    jobs: list[Any] = []
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(commands))
        options = [option for option in SPECS[name] if option.name not in NOT_GIVEN]
        job: dict[str, Any] = {"text": "a b c"} if name != "compare" else {"text": "a b", "models": ["dot", "single"]}
        for option in draw(st.lists(st.sampled_from(options), max_size=4)):
            job[option.name] = draw(values(option))
        jobs.append({name: job | {"max_memory": MAX_MEMORY}})
        if draw(st.booleans()):
            jobs[-1]["name"] = draw(st.sampled_from(["a", "b", *map(str, HOSTILE)]))
    document = {"jobs": jobs, **draw(st.sampled_from([{}, {"defaults": {"dpi": 30}}, {"matrix": {"seed": [1, 2]}}]))}
    return bytes(draw(changed(json.dumps(document).encode())))


@st.composite
def changed(draw: Draw, data: bytes) -> bytes:
    """JSON of which a few parts are others, doubled or gone; or bytes cut, turned or put in."""
    if draw(st.integers(0, 3)) == 0:
        return bytes(draw(damaged(data)))
    document = json.loads(data)
    for _ in range(draw(st.integers(0, 3))):
        places = list(_places(document))
        if not places:
            break
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        what = draw(st.integers(0, 5))
        if what == 0:
            del holder[key]
        elif what == 1 and isinstance(holder, list):
            holder.append(holder[key])
        elif what == 1:
            holder[draw(st.sampled_from([str(key) + "x", "", "../victim", LONG, "\0", "\x1b"]))] = holder[key]
        elif what == 2 and isinstance(holder[key], int | float):
            holder[key] += draw(st.sampled_from([1, -1, 1000]))
        else:
            holder[key] = deepcopy(draw(st.sampled_from(HOSTILE)))  # which may be changed in its turn
    return json.dumps(document).encode()


def _places(node: Any) -> Any:
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from _places(node[key])


@st.composite
def damaged(draw: Draw, data: bytes) -> bytes:
    at = draw(st.integers(0, len(data)))
    put = draw(st.sampled_from(BYTES))
    gone = draw(st.sampled_from([0, 1, 8, len(data)]))
    return bytes(data[:at] + put + data[at + gone :])


@st.composite
def numbers(draw: Draw, data: bytes) -> bytes:
    """A Parquet file that says something else of itself, with another number or without a column; or other bytes."""
    what = draw(st.integers(0, 3))
    if what == 0:
        return bytes(draw(damaged(data)))
    table = pq.read_table(BytesIO(data))
    meta = {name.decode(): value for name, value in table.schema.metadata.items()}
    place = draw(st.integers(0, table.num_columns - 1))
    field = table.schema.field(place)
    if what == 1:
        meta["attnviz"] = draw(changed(meta["attnviz"]))
    elif what == 2:
        table = table.remove_column(place)
    else:
        wrong = draw(st.sampled_from([None, *table.column(place)[:2].to_pylist(), *WRONG.get(str(field.type), ())]))
        table = table.set_column(place, field, [[wrong, *table.column(place).to_pylist()[1:]]])
    written = BytesIO()
    pq.write_table(table.replace_schema_metadata(meta), written)
    return written.getvalue()


@st.composite
def tensors(draw: Draw, data: bytes) -> bytes:
    """A safetensors file with another header, or with other numbers behind it."""
    end = 8 + int.from_bytes(data[:8], "little")
    header, body = data[8:end], data[end:]
    if draw(st.booleans()):
        document = json.loads(header)
        inner = document.get("__metadata__", {})
        names = [name for name, value in inner.items() if value[:1] in "{["]
        if names and draw(st.booleans()):  # JSON within JSON
            name = draw(st.sampled_from(names))
            inner[name] = draw(changed(inner[name].encode())).decode("utf-8", "replace")
            header = json.dumps(document).encode()
        else:
            header = draw(changed(header))
    else:
        at = draw(st.integers(0, len(body) // 4)) * 4
        number = draw(st.sampled_from([b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\0\0\x80\xbf", b"\xff" * 4, b"\0" * 4, b""]))
        body = body[:at] + number + body[at + 4 :]
    return len(header).to_bytes(8, "little") + header + body


@st.composite
def bombs(draw: Draw, data: bytes) -> Callable[[], bytes]:
    """A file in which one piece is repeated, up to 64 MB, or that is damaged. Made late: what is drawn is kept."""
    if draw(st.integers(0, 2)) == 0:
        return partial(bytes, draw(damaged(data)))
    at = draw(st.integers(0, len(data)))
    piece = draw(st.sampled_from([*PIECES, data[at : at + draw(st.integers(1, 40))] or b"a"]))
    most = 2**22 if b"\n" in piece else 2**26  # many rows are read, within their budget, and take their time
    times = min(most, draw(st.sampled_from([3, 2**10, 2**16, 2**26]))) // len(piece) + 1
    return lambda: bytes(data[:at] + piece * times + data[at:])
