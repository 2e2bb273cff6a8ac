"""Interrupt `run`, `inspect` and `predict` at moments between 0 and 3 seconds after their start.

Every one must end with the code 130 and one line, or be done. Python itself, before it has come to our code, dies of a
signal in its own way; such moments are counted apart.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

LATEST = 3.0


def main() -> None:
    """Interrupt as often as the first argument says (default: 200 times)."""
    count, draw = int(sys.argv[1]) if len(sys.argv) > 1 else 200, random.Random(0)
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        np.save(folder / "images.npy", np.random.default_rng(0).integers(256, size=(3000, 28, 28), dtype=np.uint8))
        made = ["run", "digits", "--epochs", "1", "--no-report", "--quiet", "--out", str(folder / "run")]
        subprocess.run(_command(*made), check=True)
        np.save(folder / "digits.npy", np.zeros((5000, 8, 8), np.uint8))
        for number in range(count):
            commands = [
                ["run", "digits", "--no-report", "--out", str(folder / f"run-{number}")],
                ["inspect", str(folder / "images.npy")],
                ["predict", str(folder / "run"), str(folder / "digits.npy"), "-o", str(folder / f"{number}.csv")],
            ]
            wait = draw.uniform(0, LATEST)
            end = _interrupted(commands[number % 3], wait)
            ends[end] += 1
            if end.startswith("WRONG"):
                print(f"{commands[number % 3][0]} after {wait:.2f} s: {end}")
    print(", ".join(f"{many} {end}" for end, many in sorted(ends.items())))
    sys.exit(any(end.startswith("WRONG") for end in ends))


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "propos", *arguments]


def _interrupted(arguments: list[str], wait: float) -> str:
    """Start a command, interrupt it after a while, and say how it ended."""
    process = subprocess.Popen(
        _command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=_hear
    )
    time.sleep(wait)
    before = _listens(process.pid)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    lines = said.splitlines()
    if process.returncode == 0 and not lines:
        return "done"
    if process.returncode == 130 and len(lines) == 1 and lines[0].startswith("propos: "):
        return "interrupted with one line"
    if not before:
        return "ended before Python had come to our code"
    return f"WRONG: code {process.returncode}, {said[-300:]!r}"


def _listens(process: int) -> bool:
    """Return whether a process handles requests to stop yet."""
    try:
        status = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return True
    caught = [int(line.split()[1], 16) for line in status if line.startswith("SigCgt")]
    return bool(caught and caught[0] >> (signal.SIGTERM - 1) & 1)


def _hear() -> None:
    """Hear Ctrl-C even where the shell has this ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    main()
