"""The command `attnviz`, and `python -m attnviz`, which is the same."""

import signal


def main() -> None:
    """Run the program. Until it can end by itself, Ctrl-C ends it without a word: else Python shows what it imports."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from attnviz.cli.app import main as run_program

    run_program()


if __name__ == "__main__":
    main()
