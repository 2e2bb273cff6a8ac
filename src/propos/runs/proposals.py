"""The proposals of a run: lines of proposals.jsonl, written by programs; a person accepts or dismisses them.

A proposal changes nothing. Accepting one appends its edit to the log of corrections, so undo works as for any other
edit. Its state is not stored: it follows from the log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from propos.common.errors import InputError, shown
from propos.runs.atomic import write_atomically
from propos.runs.corrections import CorrectedRun, counting_edits
from propos.runs.edit_log import EditLog, read_bounded
from propos.runs.edits import ClusterId, Dismiss, Edit, Key, Redo, Rename
from propos.runs.lock import wait_for_lock

PROPOSALS, LOCK = "proposals.jsonl", ".proposals.lock"
State = Literal["open", "accepted", "dismissed"]


class Proposal(BaseModel):
    """A change that a program proposes, with its source and evidence; without an edit there is nothing to accept."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    v: Literal[1] = 1
    id: Key
    kind: Annotated[str, Field(pattern=r"^[a-z-]{1,32}$")]  # "name", …
    source: Annotated[str, Field(max_length=200)]
    evidence: Annotated[str, Field(max_length=500)]  # a sentence
    cluster: ClusterId | None = None  # that it is about
    edit: Annotated[Edit, Field(discriminator="op")] | None = None  # that accepting it appends

    @model_validator(mode="after")
    def _has_the_id_of_its_edit(self) -> Proposal:
        if self.edit is not None and self.edit.id != self.id:
            raise ValueError("a proposal and its edit have the same id")
        return self


def read_proposals(folder: Path) -> list[Proposal]:
    """Read the proposals of a run; none if nothing was proposed."""
    path = folder / PROPOSALS
    if not path.exists():
        return []
    lines = enumerate(read_bounded(path).split(b"\n"), start=1)
    return [_parse(line, f"{path}: line {number}") for number, line in lines if line.strip()]


def _parse(line: bytes, where: str) -> Proposal:
    try:
        return Proposal.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = shown(".".join(str(part) for part in first["loc"]), quoted=False)
        raise InputError(f"{where}: {key + ': ' if key else ''}{first['msg'].removeprefix('Value error, ')}") from None


def write_proposals(folder: Path, kind: str, proposals: Iterable[Proposal]) -> None:
    """Replace a run's proposals of one kind; those of other kinds stay."""
    with wait_for_lock(folder / LOCK):
        kept = [each for each in read_proposals(folder) if each.kind != kind]
        write_atomically(folder / PROPOSALS, as_lines([*kept, *proposals]))


def as_lines(proposals: Iterable[Proposal]) -> bytes:
    """Return proposals as the lines of their file."""
    return b"".join(each.model_dump_json(exclude_none=True).encode() + b"\n" for each in proposals)


def states_of(proposals: Sequence[Proposal], edits: Sequence[Edit], corrected: CorrectedRun) -> list[State]:
    """Return the state of each proposal; `proposals.ts` mirrors this.

    A name is dismissed too if its cluster has another one by now, or no longer exists: it never replaces a person's.
    """
    counting = counting_edits(edits)
    dismissed = {edit.proposal for edit in edits if isinstance(edit, Dismiss) and edit.id in counting}
    names = corrected.names()

    def state(proposal: Proposal) -> State:
        if proposal.id in counting:
            return "accepted"
        gone = proposal.cluster is not None and proposal.cluster not in names
        named = isinstance(proposal.edit, Rename) and names.get(proposal.edit.cluster) is not None
        return "dismissed" if proposal.id in dismissed or gone or named else "open"

    return [state(proposal) for proposal in proposals]


def accept(log: EditLog, proposals: Iterable[Proposal]) -> list[Edit]:
    """Append the edits of proposals to the log; one that was accepted and undone is redone."""
    known = {edit.id for edit in log.edits}
    edits: list[Edit] = []
    for proposal in proposals:
        if proposal.edit is not None:
            redone = Redo(v=1, id=uuid4().hex, op="redo", edit=proposal.id)
            edits.append(redone if proposal.id in known else proposal.edit)
    return log.append(list(enumerate(edits, start=1)), "accepting proposals")


def dismiss(log: EditLog, proposals: Iterable[Proposal]) -> list[Edit]:
    """Append to the log that proposals are dismissed; undo reopens them."""
    edits = [Dismiss(v=1, id=uuid4().hex, op="dismiss", proposal=each.id) for each in proposals]
    return log.append(list(enumerate(edits, start=1)), "dismissing proposals")


def choose(proposals: Sequence[Proposal], ids: Collection[str], where: str) -> list[Proposal]:
    """Return the proposals with these ids; an unknown id is an error."""
    byid = {proposal.id: proposal for proposal in proposals}
    unknown = [each for each in ids if each not in byid]
    if unknown:
        raise InputError(f"{where}: unknown proposal {shown(unknown[0])}: propos proposals lists them")
    return [byid[each] for each in ids]
