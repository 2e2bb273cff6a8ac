"""Being asked to end by Ctrl-C, SIGTERM or a terminal that closes.

This is the first module of the command to be loaded and takes nothing but what is built into Python, so that a
request is heard from the first moment on.
"""

from __future__ import annotations

import _thread
import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    Handler = Callable[[int, FrameType | None], object] | int | None

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
AGAIN_SECONDS = 0.01
IMPORT_SYSTEM = "<frozen importlib"

_leaving: int | None = None  # the exit code of a command that is over
_said = False  # whether it has said its last line


def listen() -> None:
    """Have requests to end raise KeyboardInterrupt, at the first moment at which no module is half imported."""
    global _leaving, _said
    _leaving, _said = None, False
    hear(_raise_when_safe)


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
        _thread.start_new_thread(_ask_again, (number,))
    else:
        raise KeyboardInterrupt


def _ask_again(number: int) -> None:
    time.sleep(AGAIN_SECONDS)
    if _leaving is None:
        _thread.interrupt_main(signal.Signals(number))


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(IMPORT_SYSTEM):
            return True
        frame = frame.f_back
    return False
