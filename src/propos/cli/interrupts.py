"""Interruption by Ctrl-C, SIGTERM or a terminal that closes.

This module is loaded first and imports only what is built into Python, so that an interruption is handled from the
first moment on.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    Handler = Callable[[int, FrameType | None], object] | int | None

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
AGAIN_SECONDS = 0.01
INSIST_SECONDS = 1.0
IMPORT_SYSTEM = "<frozen importlib"

_command = 0  # number of commands that this process has started
_leaving: int | None = None  # the exit code of a finished command
_printed = False  # whether its last line is printed


def raise_on_signals() -> None:
    """Raise KeyboardInterrupt on signals to end, as soon as no module is half imported."""
    global _command, _leaving, _printed
    _command, _leaving, _printed = _command + 1, None, False
    set_handler(_raise_when_safe)
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _show


def set_handler(handler: Handler) -> dict[int, Handler]:
    """Install a handler for signals to end and return the previous ones; ignored signals stay ignored (nohup, `&`)."""
    numbers = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in numbers}


def ignore_signals(code: int, *, printed: bool) -> None:
    """Ignore signals to end from now on: the command is over.

    After its last line, while Python cleans up, they end the process at once.
    """
    global _leaving, _printed
    _leaving, _printed = code, printed


def _raise_when_safe(number: int, frame: FrameType | None) -> None:
    if _leaving is not None:
        if _printed:
            os._exit(_leaving)
    elif _importing(frame):
        # Interrupted here, a module would stay half imported, or treat the interruption as its own error.
        _thread.start_new_thread(_ask_again, (number, _command))
    else:
        _thread.start_new_thread(_insist, (number, _command, _thread.get_ident()))
        raise KeyboardInterrupt


def _ask_again(number: int, command: int) -> None:
    time.sleep(AGAIN_SECONDS)
    if _leaving is None and command == _command:
        _thread.interrupt_main(signal.Signals(number))


def _insist(number: int, command: int, main: int) -> None:
    """Interrupt again if the first interruption was lost: raised in a finaliser, or caught by a library."""
    time.sleep(INSIST_SECONDS)
    while _leaving is None and command == _command and signal.getsignal(number) is _raise_when_safe:
        if not _under_way(main):
            # A real signal, where there are any, wakes the thread from whatever it waits for.
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(main, number)
            else:
                _thread.interrupt_main(signal.Signals(number))
            return  # the handler does the rest
        time.sleep(INSIST_SECONDS)


def _under_way(main: int) -> bool:
    """Return whether a thread is cleaning up after an interruption."""
    handled: object = sys._current_exceptions().get(main)
    error = handled[1] if isinstance(handled, tuple) else handled  # a tuple before Python 3.12
    while isinstance(error, BaseException) and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return isinstance(error, KeyboardInterrupt)


def _show(unraisable: sys.UnraisableHookArgs) -> None:
    """Print nothing about an interruption in a finaliser; it is raised again."""
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(IMPORT_SYSTEM):
            return True
        frame = frame.f_back
    return False
