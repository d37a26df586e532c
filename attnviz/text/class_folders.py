"""Data sets whose labels are names of folders or files: aclImdb/{train,test}/{neg,pos}/*.txt, rt-polarity.{neg,pos}.

Maas et al., ACL 2011, P11-1015: one file is one text, its folder its label. Pang and Lee, ACL 2005, P05-1015: a file
for each label, a text a line. Must not know other layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from attnviz.display import list_first
from attnviz.text.archives import Place, list_entries
from attnviz.text.files import decode_whole, read_content, read_lines
from attnviz.text.source import SPLIT_NAMES, Row, Source, Wanted, check_no_columns

LABELS = {"neg": 0, "negative": 0, "0": 0, "pos": 1, "positive": 1, "1": 1}  # as on the hub: negative is 0
ENDING = ".txt"  # of files with one text
LINE_ENDINGS = (".txt", ".neg", ".pos", ".negative", ".positive")  # of files with a text a line
MAX_NAMED = 8

Labelled = Mapping[int, Place]  # the folder or file of each label


def find_class_folders(folder: Place) -> dict[str, Labelled]:
    """Find folders of texts by label, by split: in the folder or, one level down, in those called after splits."""
    if found := _find_labelled([each for each in list_entries(folder) if each.is_dir()]):
        return {folder.name if folder.name in SPLIT_NAMES else "train": found}
    inner = {each.name: each for each in list_entries(folder) if each.is_dir() and each.name in SPLIT_NAMES}
    splits = {name: _find_labelled([each for each in list_entries(inner[name]) if each.is_dir()]) for name in inner}
    return {name: found for name, found in sorted(splits.items(), key=lambda item: SPLIT_NAMES.index(item[0])) if found}


def find_class_files(folder: Place) -> Labelled:
    """Find two files, one of each label, which stands at the end of their names: rt-polarity.neg, or neg.txt."""
    files = [each for each in list_entries(folder) if each.is_file() and each.suffix.lower() in LINE_ENDINGS]
    return _find_labelled(files)


def find_label(place: Place) -> int | None:
    """Return the label that a name says: a folder's, a file's ending, or its name without one."""
    names = (place.name, place.suffix[1:], place.stem.rpartition("-")[2].rpartition("_")[2])
    return next((LABELS[name.lower()] for name in names if name.lower() in LABELS), None)


def _find_labelled(places: Sequence[Place]) -> Labelled:
    labelled = [(label, place) for place in places if (label := find_label(place)) is not None]
    if any(place.name.isdigit() for place in places if find_label(place) is None):
        return {}  # of classes 0, 1, 2 … or stars, 0 and 1 are not negative and positive
    return dict(sorted(labelled, key=lambda item: item[0])) if sorted(label for label, _ in labelled) == [0, 1] else {}


def open_class_folders(splits: Mapping[str, Labelled], folder: Place, wanted: Wanted, name: str) -> Source:
    """Open folders in which each file is a text: negative ones first, by number. Raises InvalidOption for columns."""
    check_no_columns(wanted, name)

    def rows(split: str) -> Iterator[Row]:
        for label, place in splits[split].items():
            for path in sorted(list_entries(place), key=_parse_number):
                if path.suffix.lower() == ENDING and path.is_file():
                    yield decode_whole(read_content(path), str(path), wanted.encoding), label

    used = [place for labelled in splits.values() for place in labelled.values()]
    left = [
        each
        for place in (folder, *(folder / split for split in splits if (folder / split).is_dir()))
        for each in list_entries(place)
        if each.is_dir() and str(each) not in map(str, used) and each.name not in splits
    ]
    left += [each for place in used for each in list_entries(place) if each.suffix.lower() != ENDING]
    names = [str(each)[len(str(folder)) + 1 :] for each in left]
    notices = (f"{name}: labels from names of folders; not used: {list_first(names, MAX_NAMED)}",) if left else ()
    return Source(name, tuple(splits), rows, notices)


def open_class_files(labelled: Labelled, wanted: Wanted, name: str) -> Source:
    """Open files of one label each, in which each line is a text. Raises InvalidOption for columns."""
    check_no_columns(wanted, name)

    def rows(split: str) -> Iterator[Row]:
        for label, place in labelled.items():
            with closing(read_lines(place, wanted.encoding)) as lines:
                for line in lines:
                    yield line.rstrip("\r\n"), label

    said = ", ".join(f"{place.name} {label}" for label, place in labelled.items())
    return Source(name, ("train",), rows, (f"{name}: a text a line, labels from names of files ({said})",))


def _parse_number(path: Place) -> tuple[int, str]:
    """Return the number that a file name begins with, as a sort key: by name, 10_9 would come before 2_9."""
    number = path.name.partition("_")[0]
    return (int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0, path.name)
