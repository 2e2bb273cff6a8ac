"""Measure a short run with threads that wait in different ways, on an idle machine and next to busy programs.

Each setting takes its turn, round by round, at each load: programs that do nothing but compute. `chosen` is what the
command decides by itself; the others are a person's own settings. Say nothing of a machine that has other work.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from propos.cli.threads import OWN

SETTINGS: dict[str, dict[str, str]] = {
    "spinning (as before)": {"OMP_DYNAMIC": "false"},  # OpenMP's own default, said aloud
    "sleeping": {"OMP_WAIT_POLICY": "PASSIVE"},
    "one thread": {"OMP_NUM_THREADS": "1"},
    "chosen": {},
}
QUIET_ALLOWANCE, BUSY_ALLOWANCE = 1.05, 1.3


@contextmanager
def busy(programs: int) -> Iterator[None]:
    """Keep so many programs computing."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(programs)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def seconds(own: dict[str, str], epochs: int) -> float:
    """Return how long a run of the digits takes, from the command to its end."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(OWN)}
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "run",
            "digits",
            "--epochs",
            str(epochs),
            "--quiet",
            "--no-report",
            "--out",
            str(Path(folder) / "run"),
        ]
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "propos", *command], env={**environment, **own}, check=True)
        return time.perf_counter() - begin


def main() -> None:
    """Measure, print the table, then a line for every target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--loads", type=int, nargs="+", default=[0, 2, 5], help="busy programs next to the run")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), help="which to compare")
    given = parser.parse_args()
    settings = {name: SETTINGS[name] for name in given.settings}
    print(f"digits, {given.epochs} epochs; seconds, the median of {given.rounds} rounds\n")
    print(f"| busy programs | {' | '.join(settings)} |\n|---|{'---|' * len(settings)}", flush=True)
    found = {}
    for load in given.loads:
        with busy(load):
            rounds = [[seconds(own, given.epochs) for own in settings.values()] for _ in range(given.rounds)]
        found[load] = dict(zip(settings, np.median(rounds, axis=0).tolist(), strict=True))
        print(f"| {load} | {' | '.join(f'{each:.1f}' for each in found[load].values())} |", flush=True)
    print()
    for load, times in found.items():
        fixed = [taken for name, taken in times.items() if name != "chosen"]
        against, allowed = (min(fixed), BUSY_ALLOWANCE) if load else (fixed[0], QUIET_ALLOWANCE)
        ratio = times["chosen"] / against
        print(f"{'ok    ' if ratio <= allowed else 'missed'} {load} busy: {ratio:.2f}, target at most {allowed}")


if __name__ == "__main__":
    main()
