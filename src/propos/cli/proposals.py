"""`propos proposals`: list, accept or dismiss what programs propose for a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.prechecks import FINISHED_RUN
from propos.cli.streams import say

if TYPE_CHECKING:
    from propos.runs import Proposal, Run

ALL = "all"


def proposals(
    run: Annotated[Path, FINISHED_RUN],
    accept: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Accept a proposal, or all open ones (all); repeatable.")
    ] = None,
    dismiss: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Dismiss a proposal, or all open ones (all); repeatable.")
    ] = None,
) -> None:
    """List what programs propose for a run, such as names; accepting a proposal makes it a correction."""
    from propos.common.plurals import counted
    from propos.review.report import show_edits
    from propos.runs import Run
    from propos.runs import accept as accept_all
    from propos.runs import dismiss as dismiss_all

    folder = Run.open(run)
    accepted = accept_all(folder.edits, _chosen(folder, accept or [], "--accept"))
    dismissed = dismiss_all(folder.edits, _chosen(folder, dismiss or [], "--dismiss"))
    if accept or dismiss:
        show_edits(folder)
        say(f"{counted(len(accepted), 'proposal')} accepted, {counted(len(dismissed), 'proposal')} dismissed")
        return
    listed = folder.proposals()
    for proposal, state in listed:
        say(f"{proposal.id:18} {state if proposal.edit else '-':10} {proposal.source}: {proposal.evidence}")
    if not listed:
        say(f"nothing is proposed for {run}")


def _chosen(run: Run, ids: list[str], option: str) -> list[Proposal]:
    """Return the open proposals that are meant."""
    from propos.runs import choose

    listed = run.proposals()
    still_open = [proposal for proposal, state in listed if state == "open" and proposal.edit is not None]
    if ids == [ALL]:
        return still_open
    wanted = {proposal.id for proposal in choose([proposal for proposal, _ in listed], ids, option)}
    return [proposal for proposal in still_open if proposal.id in wanted]
