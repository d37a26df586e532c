"""A text with its name; and conversations, as files of chats have them: messages, each with a role.

How a conversation is read is the model's to know.
"""

import json
from dataclasses import dataclass
from typing import Any

from attnviz.bounded import Budget, parse_json
from attnviz.errors import InvalidOption

CHATS = ("messages", "conversations")  # what a list of messages is called
ROLES = {"human": "user", "gpt": "assistant", "system": "system"}  # as ShareGPT calls them, in "from" and "value"


@dataclass(frozen=True)
class Document:
    """One text, exactly as its source holds it."""

    text: str
    name: str  # for titles: "sample train[0]", "review.txt", "text 1"
    slug: str  # for folder names, made from names and numbers and never from the text: "train-0", "text-0"
    label: int | None = None


class Chat(str):
    """The messages of one conversation as a text, in JSON: [{"role": "user", "content": "…"}, …]."""

    @classmethod
    def ask(cls, text: str) -> "Chat":
        """Return a text as the first message of a user."""
        return cls(json.dumps([{"role": "user", "content": text}], ensure_ascii=False))

    @property
    def messages(self) -> list[dict[str, str]]:
        """List the messages, each by its role and its content."""
        return list(json.loads(self))


def find_chat(found: object) -> Chat | None:
    """Return what is a list of messages, or an object that holds one; None for all else, and for pictures in them."""
    found = next((found[name] for name in CHATS if name in found), None) if isinstance(found, dict) else found
    messages = [_read_message(each) for each in found] if isinstance(found, list) else []
    return Chat(json.dumps(messages, ensure_ascii=False)) if messages and None not in messages else None


def _read_message(found: Any) -> dict[str, str] | None:
    """Return a message whose content is words or parts of words."""
    try:
        is_other = "role" not in found
        role, parts = (ROLES[found["from"]], found["value"]) if is_other else (found["role"], found["content"])
        content = parts if isinstance(parts, str) else "".join(part["text"] for part in parts)
    except (TypeError, KeyError):
        return None
    return {"role": role, "content": content} if isinstance(role, str) else None


def refuse_chat() -> InvalidOption:
    """Return the error for a model that cannot read a chat."""
    hint = "--model smollm2 has one; --keep-markup, without --chat, reads messages as JSON."
    return InvalidOption("this model has no template of chats, which messages are written by", hint=hint)


def parse_chat(text: str, budget: Budget) -> Chat | None:
    """Return a text that is a conversation in JSON; None for any other. Raises TooLarge."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    budget.draw_json("the messages of a chat", text)
    try:
        return find_chat(parse_json(text))
    except (ValueError, RecursionError):
        return None
