"""How long a page takes from its being asked for to its first view, in Chromium that was started for it alone.

    attnviz render RECORD --format html --out page
    python -m tests.benchmarks.opening page/attention.html [--rounds 5]

From the start of the navigation to the first contentful paint, and to the frame in which all maps of the first view are
drawn. Bar, at 256 tokens and 72 heads: 1 s. Other work on the same cores counts in these; their load is printed, and
the CPU time of the page's main thread, in which it does not count.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from statistics import median

from tests.browser import browser

# The page says when its view is ready: its canvases are drawn then, and seen with the next frame.
WATCH = """
window.seenAt = new Promise((done) => {
  new MutationObserver((_, observer) => {
    if (!document.querySelector("#view[data-ready]")) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now())));
  }).observe(document, { subtree: true, childList: true, attributes: true });
});
"""
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def measure_opening(page: Path) -> tuple[float, float, float]:
    """Return the milliseconds to the first paint, to all maps, and of CPU time until then."""
    with browser() as chromium:
        tab = chromium.new_page(viewport={"width": 1440, "height": 900})
        tab.add_init_script(WATCH)
        session = tab.context.new_cdp_session(tab)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        tab.goto(page.resolve().as_uri())
        seen = tab.evaluate("window.seenAt")
        measured = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        return tab.evaluate(FIRST_PAINT), seen, 1000 * measured["TaskDuration"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    rounds = [measure_opening(asked.page) for _ in range(asked.rounds)]
    print(f"{asked.page.stat().st_size:,} bytes, {asked.rounds} rounds, each in a new browser: median (all)")
    for name, times in zip(("first paint", "all maps", "CPU time"), zip(*rounds, strict=True), strict=True):
        print(f"{name:12} {median(times):6.0f} ms ({', '.join(f'{each:.0f}' for each in times)})")
    print(f"load of the last minute {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
