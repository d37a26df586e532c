"""The program, and the one place where errors become exit codes."""

import errno
import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from attnviz.cli import show
from attnviz.cli.help import write_command_help
from attnviz.cli.process import abandon, flush_stderr, interrupt_on_end_signals, pause_gc, prepare_streams
from attnviz.cli.sentence import complete_line
from attnviz.commands import COMMANDS
from attnviz.errors import AttnvizError, ExecutionError, InvalidConfig, OutputError
from attnviz.options import HELP_ALL, HELP_OPTIONS
from attnviz.registry import load

TOO_MANY_FILES = "too many open files. A larger limit (ulimit -n) allows more"
OF_PROGRAM = (*HELP_OPTIONS, "--version", "--install-completion", "--show-completion")
HELP_COMMAND = "help"  # attnviz help heatmap: attnviz heatmap --help
DONE, READER_LEFT, NO_COMMAND, BUG, INTERRUPTED = 0, 1, 2, 70, 130  # beside those of the errors


def main() -> NoReturn:
    """Run the program."""
    pause_gc()
    # Before torch comes. Small models are quickest with one thread, many times so where other programs keep the cores
    # busy, and with as many threads everywhere the last bits of sums are the same everywhere.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    prepare_streams()
    interrupt_on_end_signals()
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # so far it ended the process
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run(sys.argv[1:])
    flush_stderr()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: Ctrl-C would only print the interpreter's farewell
    gc.freeze()  # all ends with the process: else Python looks through it for garbage, half a second of torch alone
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit code."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except InvalidConfig as error:  # the only one of several lines
        for line in error.lines[:-1]:
            show.error(line)
        return _report_failure(error.lines[-1], error.exit_code)
    except AttnvizError as error:
        return _report_failure(str(error), error.exit_code)
    except MemoryError:
        return _report_failure(
            "not enough memory. Fewer --max-tokens, --layers or --heads, or a smaller --d-model, take less",
            ExecutionError.exit_code,
        )
    except OSError as error:
        return _report_stdout_failure(error)
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # while a class was made, which Python 3.11 calls an error
            return INTERRUPTED
        return _report_bug(error)
    return code if arguments else NO_COMMAND


def _run(arguments: Sequence[str]) -> int:
    if arguments[:1] == [HELP_COMMAND]:
        arguments = [*arguments[1:2], HELP_OPTIONS[-1]]
    if arguments:
        arguments = complete_line(arguments, [command.name for command in COMMANDS], OF_PROGRAM)
    for command in COMMANDS if len(arguments) == 2 and arguments[1] in (*HELP_OPTIONS, HELP_ALL) else ():
        if command.name == arguments[0]:  # before typer comes, which takes most of the time of a help
            show.line(write_command_help(command.name, load(command.spec), is_full=arguments[1] == HELP_ALL))
            return DONE
    from attnviz.cli.parser import parse_and_run  # it imports typer

    return parse_and_run(arguments, COMMANDS)


def _report_failure(message: str, code: int) -> int:
    if message:  # none when the help was shown instead
        show.error(message)
    if os.environ.get("ATTNVIZ_DEBUG"):
        traceback.print_exc()
    return code


def _report_stdout_failure(error: OSError) -> int:
    """Report that standard output failed: a reader that left is not a fault, a full disk is."""
    abandon(sys.stdout)
    if error.errno == errno.EPIPE:
        return READER_LEFT
    if error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EBADF):
        return _report_failure(f"cannot write to standard output: {error.strerror}", OutputError.exit_code)
    return _report_bug(error)


def _report_bug(error: Exception) -> int:
    if os.strerror(errno.EMFILE) in str(error):  # which libraries pass on in errors of their own
        return _report_failure(TOO_MANY_FILES, ExecutionError.exit_code)
    return _report_failure(
        f"this is a bug of attnviz ({type(error).__name__}: {error}). ATTNVIZ_DEBUG=1 shows where; please report it",
        BUG,
    )
