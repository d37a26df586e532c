"""How long the page of a long text takes to open and to zoom, in Chromium, and what it weighs.

    attnviz render RECORD --format html --out page
    python -m tests.benchmarks.zoom page/attention.html [--rounds 5]

From a key that is pressed to the end of the next frame, for each key from all tokens to single weights. Bar, at 65,536
tokens: 100 ms.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median

from tests.browser import Opened, browser

N_KEYS = 13  # each twice as near
ZOOM = """async (nKeys) => {
  const canvas = document.querySelector("canvas.matrix");
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const found = [];
  for (let pressed = 0; pressed < nKeys; pressed++) {
    await frame();
    const begun = performance.now();
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
    await frame();
    found.push([performance.now() - begun, document.querySelector("#window").textContent]);
  }
  return found;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    opened, maps, zooms = [], [], []
    with browser() as chromium:
        for _ in range(asked.rounds):
            begun = time.perf_counter()
            page = Opened(chromium, asked.page.resolve())
            opened.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            page.page.evaluate("location.hash = 'view=matrix'")
            page.page.wait_for_selector("#window")
            maps.append(time.perf_counter() - begun)
            page.page.wait_for_timeout(500)
            zooms.append(page.page.evaluate(ZOOM, N_KEYS))
            n_elements = page.page.evaluate("document.querySelectorAll('*').length")
            page.close()
    print(f"{asked.page.stat().st_size:,} bytes, {n_elements} elements; medians of {asked.rounds} rounds:")
    print(f"open {median(opened):.2f} s, its map {median(maps):.2f} s")
    for steps in zip(*zooms, strict=True):
        print(f"{median(taken for taken, _ in steps):6.0f} ms  {steps[0][1]}")


if __name__ == "__main__":
    main()
