"""The `propos` command. Heavy modules are imported when they are needed."""

from __future__ import annotations

from propos.cli import interrupts
from propos.common.errors import EXIT_FAILED, EXIT_INPUT, EXIT_INTERRUPTED

OUT_OF_MEMORY = (
    "out of memory: close other programs, or use a machine with more; "
    "training needs less with a smaller batch (--set train.batch_size=…)"
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    interrupts.raise_on_signals()
    try:
        message, code = _run()
    except KeyboardInterrupt:
        message, code = "interrupted", EXIT_INTERRUPTED
    _leave(message, code)


def _run() -> tuple[str | None, int]:
    """Run the command line; return the last message and the exit code."""
    import typer

    from propos.cli.streams import make_streams_safe

    make_streams_safe()

    from propos.cli.app import app
    from propos.cli.memory import keep_freed_memory
    from propos.common.errors import InputError, Interrupted, RunFailed, describe_os_error, is_out_of_memory

    keep_freed_memory()
    try:
        # Typer makes Ctrl-C an exit of its own and hands its code back.
        interrupted = app(standalone_mode=False) == EXIT_INTERRUPTED
        return ("interrupted", EXIT_INTERRUPTED) if interrupted else (None, 0)
    except InputError as error:
        return str(error), EXIT_INPUT
    except typer.TyperException as error:
        return f"{error.format_message()} (--help says more)", EXIT_INPUT
    except RunFailed as error:
        return str(error), EXIT_FAILED
    except Interrupted as error:
        return str(error), EXIT_INTERRUPTED
    except typer.Abort:
        return "interrupted", EXIT_INTERRUPTED
    except BrokenPipeError:
        return None, 0  # the reader (head, less) has closed the pipe
    except SystemExit as leaving:
        # Typer exits with its own failure if the reader has gone.
        if not isinstance(leaving.__context__, BrokenPipeError):
            raise
        return None, 0
    except OSError as error:
        return describe_os_error(error), EXIT_FAILED
    except Exception as error:
        if "can't start new thread" in str(error):
            return "cannot start a thread: out of memory, or too many processes (ulimit -u)", EXIT_FAILED
        if not is_out_of_memory(error):
            raise
        return OUT_OF_MEMORY, EXIT_FAILED


def _leave(message: str | None, code: int) -> NoReturn:
    import contextlib
    import sys

    from propos.cli.streams import flush_streams, printable

    interrupts.ignore_signals(code, printed=False)
    if message is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"propos: {printable(message)}\n")
    flush_streams()
    interrupts.ignore_signals(code, printed=True)
    # Python would still die of the signal where it came while a text was evaluated, until another one is.
    exec("")
    sys.exit(code)
