"""`propos watch`: take new files of a folder into a finished run, as they come."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.streams import say

if TYPE_CHECKING:
    from propos.runner.watcher import Poll
    from propos.runs import Run

EVERY = 5.0  # seconds between two looks
MOST_NAMED = 5  # clusters that a line names


def watch(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that new images come into.")],
    into: Annotated[Path, typer.Option(metavar="RUN", help="The finished run that assigns them.")],
    reject: Annotated[
        str, typer.Option(metavar="1%", help="Share of the run's own images that are as far out as rejected ones.")
    ] = "1%",
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks at the folder.")] = EVERY,
    once: Annotated[bool, typer.Option("--once", help="Take in what is there, and end.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Take new images of a folder into a finished run as they come: assigned, and listed for review."""
    import time

    from propos.common.errors import InputError
    from propos.evaluation.rejection import parse_share
    from propos.runs import Run, lock_folder

    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder: give the one that new images come into")
    share, run = parse_share(reject), Run.open(into)
    for note in run.notes_on_edits():
        say(f"warning: {note}", err=True)
    from propos.runner.watcher import FOLDER, Watch
    from propos.training import choose_device

    with lock_folder(into / FOLDER):
        watched = Watch(run, folder, choose_device(device), share)
        _say(run, watched.poll(settled=once))
        while not once:
            time.sleep(every)
            _say(run, watched.poll())
    place = shlex.quote(str(into / FOLDER))
    say(f"Review them: propos report {place}; propos open {place}")


def _say(run: Run, poll: Poll) -> None:
    """Print what was taken in, by cluster."""
    from collections import Counter

    from propos.common.plurals import counted

    if not poll.fresh:
        return
    names = run.corrected.names()
    found = Counter(names[line.cluster] or f"cluster {line.cluster}" for line in poll.fresh if not line.rejected)
    rejected = sum(line.rejected for line in poll.fresh)
    parts = [f"{name} {count:,}" for name, count in found.most_common(MOST_NAMED)]
    parts += [f"none of these {rejected:,}"] if rejected else []
    say(f"{counted(len(poll.fresh), 'new image')}: {', '.join(parts)} ({poll.taken:,} in all)")
