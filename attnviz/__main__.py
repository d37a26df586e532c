"""`python -m attnviz` is `attnviz`."""

from __future__ import annotations

from attnviz.cli.app import main

if __name__ == "__main__":
    main()
