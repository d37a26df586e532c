"""`python -m attnviz` is `attnviz`."""

from attnviz.cli.app import main

if __name__ == "__main__":
    main()
