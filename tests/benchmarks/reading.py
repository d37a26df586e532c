"""What reading a CSV of 50,000 reviews takes beside pandas and pyarrow: CPU seconds and memory, each in a process.

    python -m tests.benchmarks.reading path/to/imdb

Beside it, on which of our promises each keeps: `NA` stays text, a wrong line has its number, a quote that is never
closed does not swallow the rest unsaid.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

COUNT = """
import re, sys, time
{setup}
began = time.process_time()
n = {read}
took = time.process_time() - began
most = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(n, round(took, 2), round(most / 1024))
"""
WAYS = {
    "attnviz": (
        "from attnviz.specs import TextOptions; from attnviz.text import load_corpus",
        "len(load_corpus(TextOptions(dataset=sys.argv[1])).documents)",
    ),
    "attnviz, a stream": (
        "from attnviz.specs import TextOptions; from attnviz.text.stream import stream_corpus",
        "sum(1 for _ in stream_corpus(TextOptions(dataset=sys.argv[1])).documents())",
    ),
    "pandas.read_csv": ("import pandas", "len(pandas.read_csv(sys.argv[1]))"),
    "pyarrow.csv": (
        "from pyarrow import csv",
        "csv.read_csv(sys.argv[1], parse_options=csv.ParseOptions(newlines_in_values=True)).num_rows",
    ),
}
WRONG = {
    "NA stays text": b"text,label\nNA,1\nfine,0\n",
    "a wrong line": b"text,label\nfine,1\na,b,c\n",
    "an open quote": b'text,label\n"open,1\nmore,0\n',
}
TRY = {
    "attnviz": "from attnviz.specs import TextOptions; from attnviz.text import load_corpus\n"
    "print([d.text for d in load_corpus(TextOptions(dataset=sys.argv[1])).documents])",
    "pandas.read_csv": "import pandas; print(pandas.read_csv(sys.argv[1])['text'].tolist())",
    "pyarrow.csv": "from pyarrow import csv\nprint(csv.read_csv(sys.argv[1], parse_options="
    "csv.ParseOptions(newlines_in_values=True))['text'].to_pylist())",
}


def run(code: str, path: Path) -> str:
    """Run code in a process of its own; return the last line that it prints, or of its error."""
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    return (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]


def main() -> None:
    """Write the file, and print the tables."""
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "IMDB Dataset.csv"
        tables = [pyarrow.parquet.read_table(file) for file in sorted(Path(sys.argv[1]).glob("t*.parquet"))]
        rows = [row for table in tables for row in table.to_pylist()]
        rows = (rows * (50_000 // len(rows) + 1))[:50_000]
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["review", "sentiment"])
            writer.writerows([row["text"], ("negative", "positive")[row["label"]]] for row in rows)
        print(f"{path.stat().st_size / 1e6:.0f} MB, {len(rows):,} rows: rows, CPU seconds, MB")
        for name, (setup, read) in WAYS.items():
            print(f"{name:20}", *(run(COUNT.format(setup=setup, read=read), path) for _ in range(3)), sep="  |  ")
        for what, content in WRONG.items():
            (wrong := Path(folder) / "wrong.csv").write_bytes(content)
            for name, code in TRY.items():
                print(f"{what:16}", f"{name:16}", run(f"import sys\n{code}", wrong).replace(folder, ""), sep="  |  ")


if __name__ == "__main__":
    main()
