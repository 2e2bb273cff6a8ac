"""Being asked to end by Ctrl-C, SIGTERM or a terminal that closes.

This is the first module of the command to be loaded and takes nothing but what is built into Python, so that a
request is heard from the first moment on.
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

_command = 0  # how many commands this process has begun
_leaving: int | None = None  # the exit code of a command that is over
_said = False  # whether it has said its last line


def listen() -> None:
    """Have requests to end raise KeyboardInterrupt, at the first moment at which no module is half imported."""
    global _command, _leaving, _said
    _command, _leaving, _said = _command + 1, None, False
    hear(_raise_when_safe)
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _show


def hear(handler: Handler) -> dict[int, Handler]:
    """Give requests to end to a handler and return the ones before; what was to be ignored stays so (nohup, `&`)."""
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heard}


def leave_with(code: int, *, said: bool) -> None:
    """Let requests to end change nothing any more: the command is over.

    Once it has said its last line and only Python is still tidying up, they end the process at once.
    """
    global _leaving, _said
    _leaving, _said = code, said


def _raise_when_safe(number: int, frame: FrameType | None) -> None:
    if _leaving is not None:
        if _said:
            os._exit(_leaving)
    elif _importing(frame):
        # Broken off here, a module would stay half imported, or take the interruption for a fault of its own.
        _thread.start_new_thread(_ask_again, (number, _command))
    else:
        _thread.start_new_thread(_insist, (number, _command, _thread.get_ident()))
        raise KeyboardInterrupt


def _ask_again(number: int, command: int) -> None:
    time.sleep(AGAIN_SECONDS)
    if _leaving is None and command == _command:
        _thread.interrupt_main(signal.Signals(number))


def _insist(number: int, command: int, main: int) -> None:
    """Ask again where the interruption came to nothing: raised in a finaliser, or taken by a library for its own."""
    time.sleep(INSIST_SECONDS)
    while _leaving is None and command == _command and signal.getsignal(number) is _raise_when_safe:
        if not _under_way(main):
            # A real signal, where there are any, wakes the thread from whatever it waits for.
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(main, number)
            else:
                _thread.interrupt_main(signal.Signals(number))
            return  # the handler sees to the rest
        time.sleep(INSIST_SECONDS)


def _under_way(main: int) -> bool:
    """Tell whether a thread is tidying up after an interruption."""
    handled: object = sys._current_exceptions().get(main)
    error = handled[1] if isinstance(handled, tuple) else handled  # a tuple before Python 3.12
    while isinstance(error, BaseException) and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return isinstance(error, KeyboardInterrupt)


def _show(unraisable: sys.UnraisableHookArgs) -> None:
    """Say nothing of an interruption that Python met in a finaliser; it is asked for again."""
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(IMPORT_SYSTEM):
            return True
        frame = frame.f_back
    return False
