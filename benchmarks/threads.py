"""Measure a short run with threads that wait in different ways, on an idle machine and next to busy programs.

Each setting takes its turn, round by round, at each load: programs that do nothing but compute. `chosen` is what the
command decides by itself; the others are a person's own settings. Say nothing of a machine that has other work.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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


def measure(own: dict[str, str], epochs: int, programs: int, after: float) -> tuple[float, str]:
    """Return how long a run of the digits takes, from the command to its end, and a hash of its weights and embeddings.

    The busy programs start so many seconds after the run.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith(OWN)}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as load:
        out = Path(folder) / "run"
        options = ["--epochs", str(epochs), "--quiet", "--no-report", "--out", str(out)]
        if not after:
            load.enter_context(busy(programs))
        begin = time.perf_counter()
        command = [sys.executable, "-m", "propos", "run", "digits", *options]
        run = subprocess.Popen(command, env={**environment, **own})
        if after:
            time.sleep(after)
            load.enter_context(busy(programs))
        if run.wait():
            raise RuntimeError("the run failed")
        taken = time.perf_counter() - begin
        made = b"".join((out / name).read_bytes() for name in ("model.safetensors", "embeddings.npy"))
        return taken, hashlib.sha256(made).hexdigest()[:8]


def main() -> None:
    """Measure, print the table, then a line for every target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--loads", type=int, nargs="+", default=[0, 1, 2], help="busy programs next to the run")
    parser.add_argument("--after", type=float, default=0, help="seconds from the run's start to the programs'")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), help="which to compare")
    given = parser.parse_args()
    settings = {name: SETTINGS[name] for name in given.settings}
    print(f"digits, {given.epochs} epochs; seconds, the median of {given.rounds} rounds")
    print(f"busy programs start {given.after:g} s after the run\n" if given.after else "")
    print(f"| busy programs | {' | '.join(settings)} |\n|---|{'---|' * len(settings)}", flush=True)
    found, hashes = {}, set()
    for load in given.loads:
        rounds = [
            [measure(own, given.epochs, load, given.after) for own in settings.values()] for _ in range(given.rounds)
        ]
        hashes |= {digest for each in rounds for _, digest in each}
        medians = np.median([[taken for taken, _ in each] for each in rounds], axis=0)
        found[load] = dict(zip(settings, medians.tolist(), strict=True))
        print(f"| {load} | {' | '.join(f'{each:.1f}' for each in found[load].values())} |", flush=True)
    print(f"\n{'ok    ' if len(hashes) == 1 else 'missed'} weights and embeddings: {', '.join(sorted(hashes))}")
    for load, times in found.items():
        fixed = [taken for name, taken in times.items() if name != "chosen"]
        against, allowed = (min(fixed), BUSY_ALLOWANCE) if load else (fixed[0], QUIET_ALLOWANCE)
        ratio = times["chosen"] / against
        print(f"{'ok    ' if ratio <= allowed else 'missed'} {load} busy: {ratio:.2f}, target at most {allowed}")


if __name__ == "__main__":
    main()
