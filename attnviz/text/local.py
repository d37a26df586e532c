"""Find the source that `--dataset` names: a name, a file or a folder, by names and endings, not by what files hold.

Labels may be names of folders or files: aclImdb/{train,test}/{neg,pos}/*.txt, where one file is one text (Maas et al.,
ACL 2011, P11-1015), or rt-polarity.{neg,pos}, a file for each label and a text a line (Pang and Lee, ACL 2005,
P05-1015).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import chain
from pathlib import Path

from attnviz.bounded import exists, expand_path, is_file
from attnviz.display import format_count, list_first, replace_surrogates
from attnviz.errors import InvalidSource
from attnviz.registry import load, suggest_name
from attnviz.text import ENDINGS, NAMES, files
from attnviz.text.columns import DataTable
from attnviz.text.files import Place, find_ending, find_name, list_entries
from attnviz.text.source import SPLIT_NAMES, Row, Rows, Source, Wanted

SAMPLE = Path(__file__).parents[1] / "data" / "sample"  # the packaged reviews
MAX_NAMED = 8  # files or folders in a message
_READERS = {plugin.name: plugin for plugin in ENDINGS}
READABLE_ENDINGS = ", ".join(plugin.name for plugin in ENDINGS)

_SAVED_FILES = ({"dataset_dict.json"}, {"dataset_info.json", "state.json"})  # files that save_to_disk leaves
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}", re.ASCII)  # .csv, but not the .5 of org/model-1.5
_SHARD = re.compile(r"(?P<split>.+)-[0-9]{5}-of-(?P<count>[0-9]{5})")  # how the hub names the parts of a split
LABELS = {"neg": 0, "negative": 0, "0": 0, "pos": 1, "positive": 1, "1": 1}  # as on the hub: negative is 0
LINE_ENDINGS = (".txt", ".neg", ".pos", ".negative", ".positive")  # of files with a text a line

Labelled = Mapping[int, Place]  # the folder or file of each label


def open_source(name: str, wanted: Wanted) -> Source:
    """Open the source `name`; a file that exists is never taken for a name on the hub. Raises InvalidSource."""
    for plugin in NAMES:
        if plugin.name == name:
            source: Source = load(plugin)(wanted)
            return source
    path = expand_path(name, InvalidSource)
    place: Place | None = None
    if name and exists(path):
        if any(all(is_file(path / each) for each in names) for names in _SAVED_FILES):
            from attnviz.text.hub import open_saved  # it imports datasets, which takes a second

            return open_saved(path, wanted, _make_title(path))
        place = files.open_archive(path, wanted.budget) if files.is_archive(path) and not path.is_dir() else path
    elif name:
        place = files.find_member(path, wanted.budget)
    if place is not None:
        return (_open_folder if place.is_dir() else _open_file)(place, wanted, _make_title(path))
    if name.startswith((".", "/", "~")) or name.endswith(("/", "\\")) or _ENDING.fullmatch(path.suffix):
        raise InvalidSource(f"no file or folder {name}")
    if _HUB_NAME.fullmatch(name):
        from attnviz.text.hub import open_hub  # it imports the hub's library, which local files do without

        return open_hub(name, wanted)
    hint = f"{suggest_name(name, [p.name for p in NAMES])} A file, a folder or org/name on the hub also works."
    raise InvalidSource(f"no data set {name!r}", hint=hint)


def open_sample(wanted: Wanted) -> Source:
    """Open the packaged reviews, written for attnviz: English in train and test, Chinese in zh, Japanese in ja."""
    splits = {split: [SAMPLE / f"{split}.jsonl"] for split in ("train", "test", "zh", "ja")}
    return _make_source(splits, wanted, "sample")


def _open_file(path: Place, wanted: Wanted, title: str) -> Source:
    if find_ending(path) in _READERS:
        return _make_source({_find_split_name(path) or "train": [path]}, wanted, title)
    if (label := find_label(path)) is not None:
        beside = find_classes(path.parent).get("train", {}) if isinstance(path, Path) else {}
        pair = beside if path in beside.values() else {label: path}
        return open_classes({"train": pair}, path, wanted, title)
    with files.open_file(path) as file:
        files.check_kind(file.read(files.LOOKED_AT), path.name)
    hint = f"Endings that can be read: {READABLE_ENDINGS}. One text is --text-file {path}."
    raise InvalidSource(f"{path}: its ending does not say what it holds", hint=hint)


def _open_folder(path: Place, wanted: Wanted, title: str) -> Source:
    """Open a folder by what is in it, or in its only subfolder: copies of repositories have files one level down."""
    inner = [each for each in list_entries(path) if each.is_dir()]
    for folder in (path, *(inner if len(inner) == 1 else ())):
        if splits := find_classes(folder):
            return open_classes(splits, folder, wanted, title)
        if found := _group_by_split(folder):
            return _make_source(found, wanted, title)
        readable = [each for each in list_entries(folder) if each.is_file() and find_ending(each) in _READERS]
        if len(readable) == 1:
            return _open_file(readable[0], wanted, title)
        if len(readable) > 1:
            problem = f"{folder} holds {len(readable)} files, none of them called train or test"
            raise InvalidSource(problem, hint=f"Name one: {list_first(list(map(str, readable)), MAX_NAMED)}.")
    hint = f"It needs train and test files ({READABLE_ENDINGS}), folders neg and pos, or what datasets saved."
    raise InvalidSource(f"no data set in the folder {path}", hint=hint)


def _group_by_split(folder: Place) -> dict[str, list[Place]]:
    """Return the files of each split. Raises InvalidSource for a split that occurs twice or lacks numbered parts."""
    found: dict[str, list[Place]] = {}
    for path in list_entries(folder):
        split = _find_split_name(path)
        if split is not None and find_ending(path) in _READERS and path.is_file():
            found.setdefault(split, []).append(path)
    for split, paths in found.items():
        shard = _SHARD.fullmatch(find_name(paths[0]).stem)
        expected = int(shard["count"]) if shard else 1
        if len(paths) != expected or len({find_ending(path) for path in paths}) > 1:
            problem = f"{folder} holds {format_count(len(paths), 'files')} for the split {split!r}, not {expected}"
            raise InvalidSource(problem, hint=f"There are {', '.join(path.name for path in paths)}.")
    return found


def _make_source(splits: Mapping[str, Sequence[Place]], wanted: Wanted, title: str) -> Source:
    def open_table(path: Place) -> DataTable:
        table: DataTable = load(_READERS[find_ending(path)])(path, wanted)
        return table

    notices: dict[str, None] = {}
    for paths in splits.values():
        with suppress(InvalidSource):  # raised where the rows are read
            notices |= dict.fromkeys(open_table(paths[0]).describe())
    known = [split for split in SPLIT_NAMES if split in splits]

    def rows(split: str) -> Iterator[Row]:
        return chain.from_iterable(open_table(path).read() for path in splits[split])

    return Source(title, (*known, *sorted({*splits} - {*known})), rows, tuple(notices))


def _find_split_name(path: Place) -> str | None:
    shard = _SHARD.fullmatch(find_name(path).stem)
    if shard:
        return shard["split"]
    return find_name(path).stem.lower() if find_name(path).stem.lower() in SPLIT_NAMES else None


def _make_title(path: Path) -> str:
    """Return the last part of the path, also of `.` and `..`."""
    named = path if path.name not in ("", "..") else path.resolve()
    return replace_surrogates(named.name or str(named))


def find_classes(folder: Place) -> dict[str, Labelled]:
    """Find what holds the texts of each label, by split: folders, here or in those called after splits, or two files.

    A label stands at the end of a file's name: rt-polarity.neg, or neg.txt.
    """
    entries = list_entries(folder)
    if found := _find_labelled([each for each in entries if each.is_dir()]):
        return {folder.name if folder.name in SPLIT_NAMES else "train": found}
    inner = [folder / name for name in SPLIT_NAMES if (folder / name).is_dir()]
    splits = {each.name: _find_labelled([of for of in list_entries(each) if of.is_dir()]) for each in inner}
    if not any(splits.values()):
        splits["train"] = _find_labelled([e for e in entries if e.is_file() and find_ending(e) in LINE_ENDINGS])
    return {name: found for name, found in splits.items() if found}


def find_label(place: Place) -> int | None:
    """Return the label that a name says: a folder's, a file's ending, or its name without one."""
    names = (place.name, find_ending(place)[1:], find_name(place).stem.rpartition("-")[2].rpartition("_")[2])
    return next((LABELS[name.lower()] for name in names if name.lower() in LABELS), None)


def _find_labelled(places: Sequence[Place]) -> Labelled:
    labelled = [(label, place) for place in places if (label := find_label(place)) is not None]
    if any(re.search("(?:^|[-_])[0-9]+$", find_name(place).stem) for place in places if find_label(place) is None):
        return {}  # of classes 0, 1, 2 … or stars, 0 and 1 are not negative and positive
    return dict(sorted(labelled, key=lambda item: item[0])) if sorted(label for label, _ in labelled) == [0, 1] else {}


def open_classes(splits: Mapping[str, Labelled], folder: Place, wanted: Wanted, name: str) -> Source:
    """Open folders in which each file is a text, by number, or files in which each line is one: negative ones first."""

    def rows(split: str, columns: Sequence[str]) -> Rows:
        for label, place in splits[split].items():
            if place.is_file():
                with closing(files.read_lines(place, wanted.encoding)) as lines:
                    yield from ((str(place), {"text": line.rstrip("\r\n"), "label": label}) for line in lines)
                continue
            for path in sorted(list_entries(place), key=_parse_number):
                if find_ending(path) == ".txt" and path.is_file():
                    is_read = "text" in columns  # else the label says what it is of
                    text = files.decode(files.read_content(path), str(path), wanted.encoding) if is_read else ""
                    yield str(path), {"text": text, "label": label}

    def read(split: str) -> Iterator[Row]:
        return DataTable(name, str(folder), ("text", "label"), wanted, partial(rows, split)).read()

    used = [place for labelled in splits.values() for place in labelled.values()]
    is_lines = used[0].is_file()
    inner = [folder / split for split in splits if (folder / split).is_dir()]
    left = [
        each
        for place in ([folder, *inner] if folder.is_dir() else [])
        for each in list_entries(place)
        if each.is_dir() != is_lines and str(each) not in map(str, used) and each.name not in splits
    ]
    said = f"labels from names of {'files' if is_lines else 'folders'}"
    if is_lines:
        said = f"a text a line, {said} ({', '.join(f'{place.name} {n}' for n, place in splits['train'].items())})"
    else:
        left += [each for place in used for each in list_entries(place) if find_ending(each) != ".txt"]
    names = [str(each)[len(str(folder)) + 1 :] for each in left]
    unused = f"; not used: {list_first(names, MAX_NAMED)}" if left else ""
    return Source(name, tuple(splits), read, (f"{name}: {said}{unused}",) if left or is_lines else ())


def _parse_number(path: Place) -> tuple[int, str]:
    """Return the number that a file name begins with, as a sort key: by name, 10_9 would come before 2_9."""
    number = path.name.partition("_")[0]
    return (int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0, path.name)
