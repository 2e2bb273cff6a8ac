"""`propos watch`: take new files of a folder into a finished run, as they come."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.streams import say

if TYPE_CHECKING:
    from propos.review.server import Arriving
    from propos.runner.watcher import Poll
    from propos.runs import Run

EVERY = 5.0  # seconds between two looks
REJECT = "1%"
MOST_NAMED = 5  # clusters that a line names


def watch(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder where new images arrive.")],
    into: Annotated[Path, typer.Option(metavar="RUN", help="The finished run that assigns them.")],
    reject: Annotated[
        str,
        typer.Option(
            metavar="1%", help="Reject images farther from their cluster than all but this share of the run's images."
        ),
    ] = REJECT,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two checks of the folder.")] = EVERY,
    once: Annotated[bool, typer.Option("--once", help="Process the files that are there, and exit.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Assign new images of a folder to a run's clusters as they arrive, and list them for review."""
    import time
    from contextlib import suppress

    from propos.evaluation.rejection import parse_share
    from propos.runs import Run, lock_folder

    check_folder(folder)
    share, run = parse_share(reject), Run.open(into)
    for note in run.notes_on_edits():
        say(f"warning: {note}", err=True)
    from propos.runner.watcher import Watch
    from propos.runs.arrivals import FOLDER
    from propos.training import choose_device

    taken = 0
    with lock_folder(into / FOLDER), suppress(KeyboardInterrupt):
        watched = Watch(run, folder, choose_device(device), share)
        taken = say_fresh(run, watched.poll(settled=once))
        while not once:
            time.sleep(every)
            taken = say_fresh(run, watched.poll())
    say(f"Review them: propos open {shlex.quote(str(into / FOLDER))}" if taken else "No new images.")


def check_folder(folder: Path | None) -> Path | None:
    """Refuse a path that is not a folder."""
    from propos.common.errors import InputError

    if folder is not None and not folder.is_dir():
        raise InputError(f"{folder}: not a folder: give the one where new images arrive")
    return folder


@contextmanager
def taking_in(run: Run, folder: Path, arriving: Arriving) -> Iterator[None]:
    """Take in new images of a folder, on a thread, until the block ends."""
    from threading import Event, Thread

    from propos.common.errors import InputError
    from propos.evaluation.rejection import parse_share
    from propos.runner.watcher import Watch
    from propos.runs import lock_folder
    from propos.training import choose_device

    ended = Event()
    with lock_folder(arriving.folder):
        watched = Watch(run, folder, choose_device("auto"), parse_share(REJECT), ended.is_set)

        def take_in() -> None:
            last = ""
            while not ended.is_set():
                try:
                    with arriving.writing:
                        say_fresh(run, watched.poll())
                    last = ""
                except (InputError, OSError) as error:  # the folder may be back later
                    if str(error) != last:
                        say(f"warning: {error}", err=True)
                    last = str(error)
                ended.wait(EVERY)

        thread = Thread(target=take_in, name="watch")
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def say_fresh(run: Run, poll: Poll) -> int:
    """Print what was taken in, by cluster, and return how many images were taken in so far."""
    from collections import Counter

    from propos.common.plurals import counted

    if not poll.fresh:
        return poll.taken
    names = run.corrected.names()
    found = Counter(names[line.cluster] or f"cluster {line.cluster}" for line in poll.fresh if not line.rejected)
    rejected = sum(line.rejected for line in poll.fresh)
    parts = [f"{count:,} in {name}" for name, count in found.most_common(MOST_NAMED)]
    others = sum(count for _, count in found.most_common()[MOST_NAMED:])
    parts += [f"{others:,} in other clusters"] if others else []
    parts += [f"{rejected:,} rejected"] if rejected else []
    say(f"{counted(len(poll.fresh), 'new image')}: {', '.join(parts)} ({poll.taken:,} in all)")
    return poll.taken
