"""The Large Movie Review Dataset as its authors publish it: `aclImdb/{train,test}/{neg,pos}/ID_RATING.txt`.

Maas et al., ACL 2011, P11-1015. One file is one text; its folder is its label. Must not know other layouts.
"""

from __future__ import annotations

from pathlib import Path

from attnviz.text.files import decode_strictly, read_content
from attnviz.text.source import Row, Rows, Source, check_no_columns

LABELS = {"neg": 0, "pos": 1}  # in this order, as on the hub; `unsup` has no labels and is left out


def is_acl_imdb(folder: Path) -> bool:
    """Return whether a folder is laid out as the data set is distributed."""
    return bool(_list_splits(folder))


def open_acl_imdb(folder: Path, wanted: str | None, name: str) -> Source:
    """Open a folder `{split}/{neg,pos}/*.txt`, each file a text. Raises InvalidSource."""
    check_no_columns(wanted, name)

    def read(split: str, needed: int | None) -> Rows:
        return Reviews(folder / split)

    return Source(name, _list_splits(folder), read)


def _list_splits(folder: Path) -> tuple[str, ...]:
    return tuple(split for split in ("train", "test") if all((folder / split / label).is_dir() for label in LABELS))


class Reviews:
    """The reviews of one split, negative first, by number; a file is read when its text is asked for."""

    def __init__(self, folder: Path) -> None:
        self._files = [
            (path, label)
            for name, label in LABELS.items()
            for path in sorted(
                (folder / name).glob("[!.]*.txt"), key=_parse_number
            )  # macOS leaves ._0_9.txt in archives
        ]

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, position: int, /) -> Row:
        path, label = self._files[position]
        return decode_strictly(read_content(path), str(path)), label


def _parse_number(path: Path) -> tuple[int, str]:
    """Return the number that a file name begins with, as a sort key: by name, 10_9 would come before 2_9."""
    number = path.name.partition("_")[0]
    return (int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0, path.name)
