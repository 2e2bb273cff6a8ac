"""Child processes that outlive the server: a lock that only they hold tells whether they still work.

A process is known by a path: PATH.lock is locked while it lives, PATH.pid holds its number, PATH.log what it printed
and PATH.code its exit code. The process inherits the lock and the system releases it, so a number that was given to
another program is never signalled.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

# A shell waits for the command, because the server may be gone when it ends.
SHELL = '"$@" & echo $! >"$0.pid"; wait $!; echo $? >"$0.code"'
ENDINGS = ("lock", "pid", "log", "code")
TAIL = 4096  # bytes of a log that are read
LOOKS, BETWEEN = 40, 0.05
LAST_LINE = "propos: "


def start(path: Path, arguments: list[str]) -> subprocess.Popen[bytes]:
    """Start a `propos` command that continues when this process ends."""
    import fcntl  # neither it nor /bin/sh exists on Windows: `serve_studio` refuses there

    lock = os.open(_file(path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with _file(path, "log").open("wb") as log:
            return subprocess.Popen(
                ["/bin/sh", "-c", SHELL, str(path), sys.executable, "-m", "propos", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[lock],
            )
    finally:
        os.close(lock)


def forget(path: Path) -> None:
    """Forget an ended process before another one is started in its place."""
    for ending in ("pid", "code"):
        _file(path, ending).unlink(missing_ok=True)


def was_started(path: Path) -> bool:
    """Return whether the process was started at all."""
    return _file(path, "pid").is_file()


def is_alive(path: Path) -> bool:
    """Return whether the process still works."""
    import fcntl

    try:
        lock = os.open(_file(path, "lock"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def stop(path: Path) -> None:
    """Ask a process to end, as Ctrl-C does; asked again, it ends at once."""
    # The signal goes to the command alone: an image is skipped if a worker ends while it decodes it.
    for _ in range(LOOKS):
        with suppress(OSError, ValueError):
            number = int(_file(path, "pid").read_text())
            if is_alive(path):
                os.kill(number, signal.SIGTERM)
            return
        time.sleep(BETWEEN)  # its shell has not written the number yet


def exit_code(path: Path) -> int | None:
    """Return the exit code of an ended process; None if it was killed with its shell."""
    try:
        return int(_file(path, "code").read_text())
    except (OSError, ValueError):
        return None


def last_line(path: Path) -> str:
    """Return the message that a process ended with."""
    try:
        with _file(path, "log").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            lines = file.read(TAIL).decode(errors="replace").splitlines()
    except OSError:
        return ""
    said = [line.removeprefix(LAST_LINE) for line in lines if line.startswith(LAST_LINE)]
    return said[-1] if said else next((line for line in reversed(lines) if line.strip()), "")


def remove(path: Path) -> None:
    """Remove the files of an ended process."""
    for ending in ENDINGS:
        _file(path, ending).unlink(missing_ok=True)


def _file(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}.{ending}")
