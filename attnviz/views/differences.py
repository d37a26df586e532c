"""One difference between two records, batches or surveys as a sentence. Knows no files."""

from __future__ import annotations

from attnviz.display import escape_for_display
from attnviz.records.differences import Difference

MAX_NAME_LENGTH, MAX_TEXT_LENGTH = 64, 200


def describe_difference(difference: Difference) -> str:
    """Write one difference as a sentence."""
    subject, said = _name_subject(difference), shorten_text(difference.said) if difference.said else ""
    match difference.kind:
        case "only before" | "only after":
            return f"{subject} is only in {difference.kind.removeprefix('only ').upper()}."
        case "unreadable":
            return f"{subject} {said}."
        case "differs":
            if difference.before is None:
                return f"{subject}: {said}."
            became = f"{_format_value(difference.before)} became {_format_value(difference.after)}"
            return f"{subject}: {became}{f' ({said})' if said else ''}."


def _name_subject(difference: Difference) -> str:
    """Name what differs: "film: attention.safetensors: weight of layer 0, head 1"; of a whole file just its name."""
    what, parts = difference.what, [difference.job, difference.file.removeprefix(f"{difference.job}/")]
    if what == "job":
        return f"job {shorten_name(difference.job)}"
    if what != "file":
        name = difference.measure if what == "number" else f"{what} {difference.measure}".strip()
        name += f" of {difference.where}" if difference.where else ""
        name += f"{' ' if what == 'text' else ' in '}{difference.text}" if difference.text else ""
        parts.append(name)
    return ": ".join(shorten_text(part) for part in parts if part)


def _format_value(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float) else shorten_text(str(value))


def shorten_name(name: str) -> str:
    """Return a name in few characters, safe to show; "" for none."""
    return escape_for_display(name, MAX_NAME_LENGTH) if name else ""


def shorten_text(text: str) -> str:
    """Return any text in few characters, safe to show."""
    return escape_for_display(text, MAX_TEXT_LENGTH)
