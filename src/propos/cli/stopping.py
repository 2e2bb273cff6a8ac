"""Stopping when asked to, after the step that is under way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from propos.cli.display import Terminal
from propos.cli.interrupts import hear
from propos.distributed import world_size


@contextmanager
def stop_on_signals(terminal: Terminal) -> Iterator[Callable[[], bool]]:
    """Collect requests to end instead of dying of them; a second one ends the process at once.

    Of several processes each gets the signal from the terminal and once more from torchrun, which knows an end to
    its patience; there a second one is no impatience.
    """
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        if received and world_size() == 1:
            raise KeyboardInterrupt
        if not received:
            terminal.note("Stopping after this step" + ("; press again to stop at once." if world_size() == 1 else "."))
        received.append(number)

    # Python hears signals in its main thread alone.
    previous = hear(receive) if threading.current_thread() is threading.main_thread() else {}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
