"""`propos open`: open a run's page in the browser and correct it."""

from __future__ import annotations

import shlex
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli import interrupts
from propos.cli.prechecks import existing_run
from propos.cli.streams import say
from propos.cli.studio import NO_BROWSER, PORT, PORT_OPTION, studio
from propos.cli.watch import check_folder, taking_in
from propos.common.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from propos.runs import Run


def _existing(run: Path | None) -> Path | None:
    return None if run is None else existing_run(run)


def open_run(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN]", help="A finished run folder (default: Studio, with all runs).", callback=_existing
        ),
    ] = None,
    port: Annotated[int, PORT_OPTION] = PORT,
    no_browser: Annotated[bool, NO_BROWSER] = False,
    watch: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Take in new images of this folder meanwhile, as `propos watch` does."),
    ] = None,
) -> None:
    """Open a run's page in the browser and save corrections as they are made; stop with Ctrl-C."""
    if run is None:
        if watch is not None:
            raise InputError("--watch: needs the run that takes in new images: propos open RUN --watch FOLDER")
        studio(port=port, no_browser=no_browser)
        return
    check_folder(watch)
    from propos.cli.display import Terminal
    from propos.review.report import is_current, show_edits, write_report
    from propos.review.server import Arriving, serve
    from propos.runs import Run
    from propos.runs.arrivals import FOLDER

    with Terminal(False) as terminal:
        folder = Run.open(run)
        for note in folder.notes_on_edits():
            terminal.warn(note)
        if not is_current(folder):
            write_report(folder, show_task=terminal.show_task, warn=terminal.warn)
        else:
            show_edits(folder)

    def ready(address: str, stop: Callable[[], None]) -> None:
        interrupts.set_handler(lambda number, frame: stop())
        say(f"{run} is open at {address} (stop with Ctrl-C)")
        if watch is not None:
            say(f"New images are shown at {address}{FOLDER}/; load it again when more have come")
        if not no_browser:
            webbrowser.open(address)

    folder.edits.warn = lambda words: say(f"warning: {words}", err=True)
    if watch is None:
        _close(folder, serve(folder, port, ready, _by_text(folder)))
        return
    arriving = Arriving(folder.path / FOLDER)
    with taking_in(folder, watch, arriving):
        unsaved = serve(folder, port, ready, _by_text(folder), arriving)
    _close(folder, unsaved)


def _by_text(run: Run) -> Callable[[str, int], list[int]] | None:
    """Return a search by text for a network of the hub, which may read; other runs load nothing."""
    if run.config.start.description is None:
        return None
    from propos.review.naming import text_search

    return text_search(run)


def _close(run: Run, unsaved: int) -> None:
    """Report where edits are saved; fail if some are not, or if the page does not show them."""
    from propos.common.errors import InputError, RunFailed, describe_os_error
    from propos.common.plurals import counted
    from propos.review.report import PAGE, show_edits

    log, page = run.edits.path, run.path / PAGE
    where, problems = "", []
    try:
        run.edits.restore()
        where = "nothing was corrected" if not unsaved else "nothing was saved"
        if run.edits.edits:
            where = f"{log} holds {counted(len(run.edits.edits), 'edit')}"
        show_edits(run)
        where += f", seen in {page}" if run.edits.edits else ""
    except InputError as error:
        problems.append(str(error))
    except OSError as error:
        what = f"{page} does not show them" if where else f"{log} lost some of its {len(run.edits.edits):,} edits"
        problems.append(f"{what}: {describe_os_error(error)} (propos report {shlex.quote(str(run.path))})")
    if unsaved:
        kept = "the browser keeps unsaved corrections for the next propos open"
        problems.append(f"{counted(unsaved, 'edit')} not saved: {kept}")
    say(f"Closed; {where}" if where else "Closed")
    if problems:
        raise RunFailed("; ".join(problems))
