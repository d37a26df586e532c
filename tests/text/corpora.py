"""Reviews that are hard to keep as they are, and one writer for each kind of data set."""

import csv
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from attnviz.specs import TextOptions
from attnviz.text import Corpus, load_corpus

Reviews = list[tuple[str, int]]
Write = Callable[[Path, Reviews], Path]


# Negative first, as in aclImdb, which orders by label.
REVIEWS: Reviews = [
    ("NA", 0),
    ("5", 0),
    ('He said "no", twice', 0),
    ("null", 0),
    (" spaces around ", 0),
    ("tab\there, <b>there</b>", 0),
    ("C1 \x85 and \x96, U+2028 \u2028, U+000B \x0b, form feed \x0c", 1),
    ("猫坐在垫子上 ねこ 고양이 👨\u200d👩\u200d👧 e\u0301", 1),
    ("", 1),
    ("NUL \x00 ESC \x1b[31m U+202E \u202e", 1),
    ("[/] $_$ </script> \\n 'quoted'", 1),
    ("x" * 200_000, 1),
]

# For kinds in which a text may hold a newline.
SEVERAL_LINES: Reviews = [
    ("two\nlines", 0),
    ('\n"quoted"\n', 0),
    ("carriage\r\nreturn", 1),
    ("bare \r return", 1),
    ("end\n", 1),
]


def write_csv(path: Path, reviews: Sequence[tuple[str, object]], delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([("text", "label"), *reviews])
    return path


def write_jsonl(path: Path, reviews: Reviews) -> Path:
    lines = (json.dumps({"text": text, "label": label}) + "\n" for text, label in reviews)
    path.write_bytes("".join(lines).encode())
    return path


def write_txt(path: Path, reviews: Reviews) -> Path:
    path.write_bytes("".join(f"{text}\n" for text, _ in reviews).encode())
    return path


def write_parquet(path: Path, reviews: Reviews) -> Path:
    import pyarrow
    from pyarrow import parquet

    texts, labels = [text for text, _ in reviews], [label for _, label in reviews]
    columns = {"text": pyarrow.array(texts, pyarrow.string()), "label": pyarrow.array(labels, pyarrow.int64())}
    parquet.write_table(pyarrow.table(columns), path, row_group_size=3)
    return path


def write_saved(path: Path, reviews: Reviews) -> Path:
    import datasets

    datasets.disable_progress_bars()
    texts, labels = [text for text, _ in reviews], [label for _, label in reviews]
    datasets.Dataset.from_dict({"text": texts, "label": labels}).save_to_disk(path)
    return path


def write_acl(path: Path, reviews: Reviews) -> Path:
    for number, (text, label) in enumerate(reviews):
        write_folder(path, {f"train/{('neg', 'pos')[label]}/{number}_{1 + 9 * label}.txt": text.encode()})
    return path


WRITERS: dict[str, Write] = {
    "train.csv": write_csv,
    "train.tsv": partial(write_csv, delimiter="\t"),
    "train.jsonl": write_jsonl,
    "train.ndjson": write_jsonl,
    "train.parquet": write_parquet,
    "train.txt": write_txt,
    "saved": write_saved,
    "aclImdb": write_acl,
}


def write_folder(path: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)


def opened(dataset: Path | str, split: str | None = None, text_column: str | None = None, **how: str) -> Corpus:
    return load_corpus(TextOptions(dataset=str(dataset), split=split, text_column=text_column, **how))  # type: ignore[arg-type]


def open_made(path: Path, content: str | bytes, **how: str) -> Corpus:
    """Write a file and open it."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return opened(path, **how)


def rows(corpus: Corpus) -> list[tuple[str, int | None]]:
    return [(document.text, document.label) for document in corpus.documents]


def texts_of(corpus: Corpus) -> list[str]:
    return [document.text for document in corpus.documents]
