"""The words of messages: plain English, the field's terms. A message is a text that an error or a notice is made of."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import attnviz

ROOT = Path(attnviz.__file__).parent
AVOIDED = {
    r"(?<!there )\b(is|are) no (?!longer)[a-z-]+\b": "X is no Y → X is not a Y, or what it is",
    r"\b(of|like) ours\b": "ours → built-in",
    r"\bof others\b": "of others → third-party",
    r"went astray": "went astray → diverged",
}


@cache
def trees() -> dict[Path, ast.Module]:
    """Every module of the package."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")}


def messages(tree: ast.AST) -> list[str]:
    """What is raised, and its hints: the literal parts of each call in a `raise`."""
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
    return [
        "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
        for call in raised
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
        for parts in [argument.values if isinstance(argument, ast.JoinedStr) else [argument]]
        if all(isinstance(part, ast.Constant | ast.FormattedValue) for part in parts)
    ]


def avoided(text: str) -> list[str]:
    return [better for pattern, better in AVOIDED.items() if re.search(pattern, text)]


def test_messages_say_it_plainly() -> None:
    found = [
        (path.name, text, avoided(text)) for path, tree in trees().items() for text in messages(tree) if avoided(text)
    ]
    assert found == []


def test_what_is_avoided_would_be_found() -> None:
    tree = ast.parse(
        'raise E(f"--x {n} is no share", hint="It takes a model of ours.")\nraise E("training went astray")'
    )
    assert [len(avoided(text)) for text in messages(tree)] == [1, 1, 1]


def test_a_class_has_a_name_of_its_own() -> None:
    names = Counter(
        node.name
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, number in names.items() if number > 1] == []


IRREGULAR = {"written", "drawn", "told", "made", "kept", "held", "shown", "given", "taken", "found", "built", "seen"}
IRREGULAR |= {"sent", "known", "said", "begun", "chosen", "hidden", "bound", "grown", "left"}
NO_PARTICIPLES = {"need", "embed", "seed", "feed", "read", "exceed", "proceed", "speed", "changed"}  # that is a command


def named_by_a_participle(tree: ast.AST) -> list[str]:
    """Functions and methods; properties are values, and a context manager is what holds within."""
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and not any(re.search("property|contextmanager", ast.unparse(each)) for each in node.decorator_list)
        and is_participle(node.name)
    ]


def is_participle(name: str) -> bool:
    first = name.strip("_").split("_")[0]
    return (first.endswith("ed") and first not in NO_PARTICIPLES) or first in IRREGULAR


def test_functions_are_named_by_verbs() -> None:
    found = [
        (path.relative_to(ROOT).as_posix(), name)
        for path, tree in trees().items()
        for name in named_by_a_participle(tree)
    ]
    assert found == []


def test_a_participle_would_be_found() -> None:
    tree = ast.parse("def _written(): ...\ndef joined_rows(): ...\ndef need_it(): ...\ndef draw(): ...\n")
    tree.body += ast.parse("class A:\n @property\n def held(self): ...\n def told(self): ...").body
    assert named_by_a_participle(tree) == ["_written", "joined_rows", "told"]


NO_VERBS = "a all also an any as at before behind below beside by each every for from how if in it neither no not of on"
NO_VERBS += (
    " one only other so some that the their these this those to until what when where whether which who why with"
)


def begins_with_a_verb(docstring: str) -> bool:
    """Not a function word, a regular participle, a third person or plural, or a noun before "of"."""
    first, second, *_ = *re.findall(r"[^\s.,:;]+", docstring.lower()), "", ""
    is_verb = first.isalpha() and first not in NO_VERBS.split() and second != "of"
    return is_verb and (bool(re.search("(?<!ed)(?<!ing)(?<!s)$|ss$", first)) or first in {*NO_PARTICIPLES, "bring"})


def test_docstrings_begin_with_a_verb_all_but_one_in_fifty_of_a_room() -> None:
    rooms: dict[str, list[str]] = {}
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node)):
                rooms.setdefault(path.relative_to(ROOT).parent.as_posix().split("/")[0], []).append(text)
    without = {room: [text for text in texts if not begins_with_a_verb(text)] for room, texts in rooms.items()}
    assert {room: texts for room, texts in without.items() if len(texts) > 0.02 * len(rooms[room])} == {}


def test_a_docstring_without_a_verb_would_be_found() -> None:
    texts = ["Of each layer.", "Whether it fits.", "Width of it.", "Raises no error.", "Pass it, of n.", "Read it."]
    assert [begins_with_a_verb(text) for text in texts] == [False] * 4 + [True] * 2
