"""The page of a run that has just ended."""

from __future__ import annotations

import shlex
from typing import Protocol

from propos.common.work import Working
from propos.data import Source
from propos.review.report.write import write_report
from propos.runs import Run


class Listener(Protocol):
    """Whoever watches the run."""

    @property
    def working(self) -> Working:
        """What shows a long piece of work."""
        ...

    def line(self, text: str) -> None:
        """Something a person may copy."""
        ...

    def warn(self, text: str) -> None:
        """Something a person should act on."""
        ...


def write_after(run: Run, source: Source, listener: Listener) -> None:
    """Write the run's page; whatever goes wrong with it, the run itself is finished and stays so."""
    again = f"propos report {shlex.quote(str(run.path))}"
    try:
        page = write_report(run, source, listener.working)
    except KeyboardInterrupt:
        listener.warn(f"the report was not written; the run is complete; write it with: {again}")
    except Exception as error:  # a page is worth less than a finished run
        listener.warn(f"the report could not be written ({error}); the run is complete; try again with: {again}")
    else:
        listener.line(f"Correct it in the browser: propos open {shlex.quote(str(run.path))}")
        listener.line(f"See what was found: open {shlex.quote(str(page.absolute()))}")
