"""What comes out otherwise when a batch is made again, in words. Knows `differences`."""

from __future__ import annotations

from attnviz.differences import IN_BASELINE, IS_GONE, IS_LINK, BatchDiff, Difference
from attnviz.display import escape_for_display, quantity
from attnviz.views import check

MAX_LINE_LENGTH = 500


def first_differences(diff: BatchDiff, folder: str, what: str, exact: bool = True) -> tuple[tuple[str, ...], bool]:
    """The first difference in numbers and the first in files, a line each; and whether there is none.

    `what` was compared, such as "2 jobs, 20 files"; `exact`: byte for byte.
    """
    numbers = next((describe(each, folder) for each in diff.differences if not each.file), "")
    files = next((describe(each, folder) for each in diff.differences if each.file), "")
    if not (numbers or files):
        n_other = diff.n_other_bytes
        within = f"within the tolerances ({quantity(n_other, 'files')} of other bytes)"
        return (f"{what}: made again, {within if n_other else 'the same byte for byte'}",), True
    found = (("numbers", numbers), ("bytes" if exact else "files", files))
    lines = (f"first difference in {kind}: {said}" if said else f"{kind}: the same" for kind, said in found)
    return tuple(escape_for_display(line, MAX_LINE_LENGTH) for line in lines), False


def describe(difference: Difference, folder: str) -> str:
    """One difference between what lies in a folder and what was made again."""
    parts = (difference.job, difference.text, difference.measure, difference.where)
    where = difference.file or ", ".join(part for part in parts if part)
    expected, actual = difference.expected, difference.actual
    match difference.kind:
        case "failed job":
            return f"{where}: {actual or 'is made'}, and {'failed' if expected else 'was made'} before"
        case "changed file":
            return f"{where} {_reason(difference.said.removeprefix(IN_BASELINE), folder)}"
        case "missing numbers" | "missing file":
            return f"{where} is not made any more"
        case "new numbers" | "new file":
            return f"{where} is made and is not in the manifest"
        case "picture" | "record":
            return f"{difference.job}/{check.describe(difference)}"
    return f"{where}: {actual}, in the manifest {expected}"


def _reason(said: str, folder: str) -> str:
    if said in (IS_GONE, IS_LINK):
        return f"is gone from {folder}" if said == IS_GONE else f"is a link out of {folder}"
    return said if said.startswith("cannot be read") else "was changed after it was made"
