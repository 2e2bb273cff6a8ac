"""The `propos` command: one file per subcommand, nothing heavy imported before it is needed."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import NoReturn

from propos.cli.memory import keep_freed_memory
from propos.errors import InputError, Interrupted, RunFailed

EXIT_FAILED, EXIT_INPUT, EXIT_INTERRUPTED = 1, 2, 130


def main() -> NoReturn:
    """Run the command line and leave with the code that says how it went."""
    try:
        _run()
    except KeyboardInterrupt:
        _leave("interrupted", EXIT_INTERRUPTED)


def _run() -> NoReturn:
    # Asked to end, every command tidies up as it does after Ctrl-C; a run that trains has handlers of its own.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    keep_freed_memory()
    import typer

    from propos.cli.app import app

    try:
        # Typer makes Ctrl-C an exit of its own and hands its code back.
        if app(standalone_mode=False) == EXIT_INTERRUPTED:
            _leave("interrupted", EXIT_INTERRUPTED)
        sys.stdout.flush()
    except InputError as error:
        _leave(str(error), EXIT_INPUT)
    except typer.TyperException as error:
        _leave(f"{error.format_message()} (--help says more)", EXIT_INPUT)
    except RunFailed as error:
        _leave(str(error), EXIT_FAILED)
    except Interrupted as error:
        _leave(str(error), EXIT_INTERRUPTED)
    except typer.Abort:
        _leave("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader (head, less) has seen enough; point stdout elsewhere so that Python's exit stays quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        _leave(describe_os_error(error), EXIT_FAILED)
    except MemoryError:
        _leave("out of memory; try a smaller train.batch_size", EXIT_FAILED)
    sys.exit(0)


def describe_os_error(error: OSError) -> str:
    """Say what the operating system refused, where, and for a full disk what to do."""
    where = f"{error.filename}: " if error.filename else ""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return f"{where}{error.strerror or error}" + ("; free some space and try again" if full else "")


def _leave(message: str, code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.write(f"propos: {message}\n")
    sys.exit(code)
