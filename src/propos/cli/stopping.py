"""Stopping after the current step on a signal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from propos.cli.display import Terminal
from propos.cli.interrupts import set_handler
from propos.distributed import world_size


@contextmanager
def stop_on_signals(terminal: Terminal) -> Iterator[Callable[[], bool]]:
    """Collect signals to end instead of ending at once; a second signal ends the process.

    Under torchrun each process gets the signal twice, from the terminal and from torchrun, so a second one is
    ignored there.
    """
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        if received and world_size() == 1:
            raise KeyboardInterrupt
        if not received:
            terminal.note("Stopping after this step" + ("; press again to stop at once." if world_size() == 1 else "."))
        received.append(number)

    # Python handles signals in its main thread only.
    previous = set_handler(receive) if threading.current_thread() is threading.main_thread() else {}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
