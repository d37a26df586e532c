"""One record where a sequence of one may be given, such as what `attnviz.record` gives."""

from collections.abc import Sequence

from attnviz.errors import InvalidRecord
from attnviz.records import AttentionMaps

OF_TEXT = 'attnviz.attention("the cat") makes one of a text, attnviz.load of a file.'


def is_record(maps: object) -> bool:
    """Return whether this is a record, or a sequence of some."""
    several = isinstance(maps, Sequence) and bool(maps) and all(isinstance(each, AttentionMaps) for each in maps)
    return isinstance(maps, AttentionMaps) or several


def unwrap_record(maps: AttentionMaps | Sequence[AttentionMaps]) -> AttentionMaps:
    """Return the record itself, also of a sequence of one. Raises InvalidRecord for anything else."""
    if isinstance(maps, AttentionMaps):
        return maps
    if not is_record(maps):
        given: object = maps
        hint = OF_TEXT if isinstance(given, str) else "attnviz.from_attentions makes one."
        raise InvalidRecord(f"an object of type {type(maps).__name__} is not a record", hint=hint)
    if len(maps) > 1:
        raise InvalidRecord(f"expected one record, got {len(maps)}", hint="Choose one, such as maps[0].")
    return maps[0]
