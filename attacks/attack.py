"""A thousand damaged inputs, clumsy commands and poor environments: none may end in a traceback, hang or swell.

    python attacks/attack.py [COUNT] [--seed N] [--first N]

Every command is drawn from the seed and its number alone; `--first 17 1` repeats number 17. Its process is forked from one that has
read torch. Limits: 30 seconds, 2 GB, the exit codes of docs/guide.md, one line of error, no traceback. Seconds in which a
command only waited for a core are not counted: a busy machine makes nothing hang.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TextIO

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import torch._dynamo  # noqa: F401 - with the first optimiser

import propos.cli.app
import propos.review.report
import propos.training  # noqa: F401 - what commands read anyway
from commands import Attack, environment_of, make, quick
from propos.cli import main as propos_main
from reviews import weights
from sources import pictures

SECONDS, BYTES, AT_ONCE = 30.0, 2 * 2**30, 2
LOOK = 1.0  # seconds between looks at how long commands have taken
CODES = {0, 1, 2, 130, 141}
SIGNS = ("Traceback (most recent call last)", "Exception ignored", "Fatal Python error", "Error in sys.excepthook")


@dataclass
class Running:
    """A command under way."""

    number: int
    attack: Attack
    folder: Path
    began: float
    waited: float = 0.0  # for a core
    hung: bool = False

    def seconds(self) -> float:
        """Return how long it has run, slept or waited for anything but a core."""
        return time.monotonic() - self.began - self.waited

    def look(self, process: int) -> None:
        """Note how long the command and the processes it started have waited for a core, and end what hangs."""
        self.waited = max(self.waited, sum(map(_waited, _family(process))))
        if not self.hung and self.seconds() > SECONDS:
            self.hung = True
            os.kill(process, signal.SIGKILL)


def _family(process: int) -> list[int]:
    """Return a process and those it started."""
    try:
        started = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return [process]
    return [process, *(each for child in started for each in _family(int(child)))]


def _waited(process: int) -> float:
    """Return for how many seconds a process was ready and no core was free: of its threads, the one that waited most."""
    waited = [0.0]
    for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, IndexError):  # it has ended
            waited.append(int(thread.read_text().split()[1]) / 1e9)
    return max(waited)


def start(number: int, attack: Attack, folder: Path, cache: Path) -> tuple[int, Running]:
    """Fork a process that becomes the command."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        try:
            _become(attack, folder, cache)
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
        except BaseException:
            with open(f"{folder}.said2", "a", errors="replace") as file:
                traceback.print_exc(file=file)
            code = 99
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(code)
    return process, Running(number, attack, folder, time.monotonic())


def _become(attack: Attack, folder: Path, cache: Path) -> None:
    os.setsid()
    warnings.resetwarnings()
    os.environ.clear()
    os.environ.update(environment_of(attack, cache))
    said = folder.with_name(folder.name + ".said")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor in (1, 2):
        os.dup2(os.open(f"{said}{descriptor}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    if attack.streams == "full":
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    elif attack.streams == "gone":
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
    encoding = "ascii" if attack.streams == "ascii" else "utf-8"
    closed = {"no stdin": 0, "no stdout": 1, "no stderr": 2}.get(attack.streams)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        setattr(sys, name, None if descriptor == closed else _stream(descriptor, encoding))
    if closed is not None:
        os.close(closed)
    os.chdir(folder)
    sys.argv = ["propos", *attack.arguments]
    tempfile.tempdir = None
    propos_main()


def _stream(descriptor: int, encoding: str) -> TextIO:
    errors = "backslashreplace" if descriptor == 2 else "strict"
    return open(descriptor, "r" if descriptor == 0 else "w", encoding=encoding, errors=errors, closefd=False)


def judge(running: Running, status: int, rss: int) -> list[str]:
    """Return what is wrong with how a command ended."""
    code = os.waitstatus_to_exitcode(status)
    said = Path(f"{running.folder}.said2").read_text(errors="replace")
    wrong = [f"says {sign!r}" for sign in SIGNS if sign in said]
    if running.hung:
        wrong.append(f"hung for {SECONDS:.0f} s")
    elif code not in CODES:
        wrong.append(f"exit code {code}")
    elif code in (1, 2) and running.attack.streams != "no stderr":
        lines = [line for line in said.splitlines() if line.startswith("propos: ")]
        if len(lines) != 1:
            wrong.append(f"{len(lines)} lines of error")
    if (running.folder / "ran").exists():
        wrong.append("ran what is in a file")
    if rss > BYTES:
        wrong.append(f"took {rss / 2**30:.1f} GB")
    return wrong


def attack(count: int, seed: int, first: int, place: Path) -> int:
    """Run the commands and return how many failed."""
    base = place / "base"
    pictures(base / "photos")
    weights(base)
    cache = base / "home"
    cache.mkdir()
    trained = ["run", "photos", "-k", "3", *quick(), "--labels", "folders", "--out", "run"]
    seen = ["run", "photos", "-k", "3", "--start", "pretrained", "--out", "seen"]
    for made in (trained, seen):
        process, begun = start(-1, Attack(made), base, cache)
        _, status = os.waitpid(process, 0)
        assert status == 0, Path(f"{begun.folder}.said2").read_text()
    shutil.copytree(cache / "caches", base / "caches")
    whole = _contents(base)
    under_way: dict[int, Running] = {}
    codes: Counter[str] = Counter()
    failures = longest = largest = 0
    numbers = iter(range(first, first + count))
    began = looked = time.monotonic()
    while True:
        while len(under_way) < AT_ONCE and (number := next(numbers, None)) is not None:
            folder = place / f"{number:05d}"
            folder.mkdir()
            command = make(Random(f"{seed} {number}"), folder, base / "run")
            process, running = start(number, command, folder, cache)
            under_way[process] = running
        if not under_way:
            break
        process, status, usage = os.wait4(-1, os.WNOHANG)
        if process == 0:
            time.sleep(0.01)
            if time.monotonic() - looked > LOOK:
                looked = time.monotonic()
                for each, running in under_way.items():
                    running.look(each)
            continue
        running = under_way.pop(process)
        rss = usage.ru_maxrss * 1024
        wrong = judge(running, status, rss)
        codes[str(os.waitstatus_to_exitcode(status))] += 1
        longest, largest = max(longest, running.seconds()), max(largest, rss)
        if wrong:
            failures += 1
            _tell(running, wrong)
        shutil.rmtree(running.folder, ignore_errors=True)
    if _contents(base) != whole:
        failures += 1
        print("what commands only read was changed")
    ends = ", ".join(f"{number} with {code}" for code, number in sorted(codes.items()))
    print(
        f"{count} commands in {time.monotonic() - began:.0f} s: {failures} failed; {ends}; "
        f"the longest took {longest:.1f} s, the largest {largest / 2**30:.2f} GB"
    )
    return failures


def _contents(base: Path) -> dict[Path, bytes]:
    """Return what no command may change: images, runs and weights that are not their own."""
    return {path: path.read_bytes() for path in base.rglob("*") if path.is_file() and base / "home" not in path.parents}


def _tell(running: Running, wrong: list[str]) -> None:
    arguments = " ".join(repr(text if len(text) < 100 else f"{text[:100]}…") for text in running.attack.arguments)
    print(f"#{running.number}: {'; '.join(wrong)}: propos {arguments}")
    environment = {name: value and value[:60] for name, value in running.attack.environment.items()}
    print(f"    environment {environment}, streams {running.attack.streams}")
    said = Path(f"{running.folder}.said2").read_text(errors="replace").strip().splitlines()
    for line in said[-3:]:
        print(f"    {line[:300]}")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    sys.stdout.reconfigure(errors="replace")
    warnings.simplefilter("ignore")  # what is made is meant to be odd
    with tempfile.TemporaryDirectory(prefix="propos-attack-", ignore_cleanup_errors=True) as place:
        sys.exit(attack(given.count, given.seed, given.first, Path(place)) > 0)


if __name__ == "__main__":
    main()
