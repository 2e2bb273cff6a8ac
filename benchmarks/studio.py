"""Measure Studio: from the command to a usable page compared with `propos open`, its idle cost, and a run's previews.

Both commands are started in turn, each in a new process; the browser is the system's Chromium, which is open already.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from propos.review.report import write_report
from report import make_run, new_tab

IMAGES = 2_000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=60, help="how long an idle page is watched")
    parser.add_argument("--minutes", type=float, default=2, help="training time of the run whose previews are timed")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="propos-studio-"))
    try:
        run = make_run(root / "runs", IMAGES)
        write_report(run)
        commands = {"open": ["open", run.path], "studio": ["studio", root, "--runs", root / "runs"]}
        if options.rounds:
            with new_tab() as tab:
                start(tab, commands, options.rounds)
        if options.seconds:
            idle(commands["studio"], options.seconds)
        if options.minutes:
            previews(root / "runs" / "trained", options.minutes)
    finally:
        shutil.rmtree(root)


def start(tab, commands, rounds):
    """Time each command until its page shows the run."""
    times = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, arguments in commands.items():
            began = time.perf_counter()
            with served(arguments) as (address, _):
                answers = time.perf_counter() - began
                tab.goto(address)
                tab.wait_for_selector(".card")
                if turn:  # the first fills the system's caches
                    times[name].append((answers, time.perf_counter() - began))
            tab.goto("about:blank")
    middle = {name: [statistics.median(part) for part in zip(*each, strict=True)] for name, each in times.items()}
    for name, (answers, usable) in middle.items():
        spread = sorted(usable for _, usable in times[name])
        print(f"{name}: address after {answers:.2f} s, usable page after {usable:.2f} s "
              f"({spread[0]:.2f} to {spread[-1]:.2f}, {rounds} rounds)")  # fmt: skip
    print(f"studio / open: {middle['studio'][1] / middle['open'][1]:.2f}", flush=True)


def idle(arguments, seconds):
    """Print the processor time of the server and of the browser while a page is open and nothing computes."""
    with served(arguments) as (address, server), new_tab() as tab:
        for screen in ("", "new"):
            tab.goto(f"{address}#/{screen}")
            tab.wait_for_selector("h1")
            tab.wait_for_timeout(5000)
            browsers = [pid for pid in below(os.getpid()) if "chrom" in Path(f"/proc/{pid}/comm").read_text()]
            before = used([server]), used(browsers)
            tab.wait_for_timeout(1000 * seconds)
            after = used([server]), used(browsers)
            shares = [100 * (now - then) / seconds for now, then in zip(after, before, strict=True)]
            print(f"idle #/{screen}: server {shares[0]:.2f}% and browser {shares[1]:.2f}% of a core", flush=True)


def previews(folder, minutes):
    """Print the share of a run's time that its previews take, as the run itself measures them and from outside."""
    from propos import run
    from propos.runs import PROGRESS
    from propos.training.preview import Preview

    spent, show = [], Preview.show

    def timed(self, *arguments):
        began = time.perf_counter()
        show(self, *arguments)
        spent.append(time.perf_counter() - began)

    Preview.show = timed
    folder.mkdir()
    (folder / PROGRESS).touch()  # as Studio makes it: the run is watched
    began = time.perf_counter()
    run("digits", out=folder, time=f"{60 * minutes:.0f}s")
    elapsed = time.perf_counter() - began
    drawn = [each for each in spent if each > 1e-3]
    print(f"previews: {len(drawn)} in {elapsed:.0f} s, {1000 * statistics.median(drawn):.0f} ms each, "
          f"{100 * sum(spent) / elapsed:.2f}% of the time")  # fmt: skip


@contextmanager
def served(arguments):
    """Start a command, and give its address and process when it answers."""
    command = [sys.executable, "-m", "propos", *map(str, arguments), "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        try:
            yield re.search(r"http://\S+", line)[0], process.pid
        finally:
            process.terminate()


def below(pid):
    """Return the processes that a process started, and theirs."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    own = [int(each) for task in tasks for each in (task / "children").read_text().split()]
    return [*own, *(each for child in own for each in below(child))]


def used(pids):
    """Return the seconds of processor time of some processes."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
