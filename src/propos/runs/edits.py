"""The edits of a run: lines of edits.jsonl, which is only appended to (docs/review.md).

propos.runs.corrections applies them.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from propos.common.errors import InputError, shown

VERSION = 1
MOST_BYTES = 1_000_000_000  # size limit of a log and of a file of edits
MOST_CLUSTERS = 2**31  # cluster ids are below it

# Characters that break a line or change the writing direction.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _one_line(name: str) -> str:
    if not name.strip() or _UNSEEN.search(name):
        raise ValueError("a name is one line of visible characters")
    return name


Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
ClusterId = Annotated[int, Field(ge=0, lt=MOST_CLUSTERS)]
Images = Annotated[tuple[str, ...], Field(min_length=1)]  # by their names in the run's table
Name = Annotated[str, Field(max_length=200), AfterValidator(_one_line)]


class _Edit(BaseModel):
    """Base of all edits; unknown keys are refused, because half an edit must not be applied."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    v: Literal[1]
    id: Key  # undo refers to it, and an edit that arrives twice counts once
    at: Annotated[str, Field(max_length=40)] | None = None


class Rename(_Edit):
    """Set or remove a cluster's name."""

    op: Literal["rename"]
    cluster: ClusterId
    name: Name | None


class Describe(_Edit):
    """Set or remove a cluster's description."""

    op: Literal["describe"]
    cluster: ClusterId
    text: Annotated[str, Field(max_length=2_000)] | None


class Merge(_Edit):
    """Merge clusters into another, which keeps its name and id."""

    op: Literal["merge"]
    clusters: Annotated[tuple[ClusterId, ...], Field(min_length=1)]
    into: ClusterId


class Split(_Edit):
    """Put images of one or several clusters into a new cluster with an unused id."""

    op: Literal["split"]
    images: Images
    into: ClusterId


class Move(_Edit):
    """Put images, or junk, into a cluster."""

    op: Literal["move"]
    images: Images
    into: ClusterId


class _Selection(_Edit):
    """Images, or all images that a cluster holds at that point of the log."""

    images: Images | None = None
    cluster: ClusterId | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> _Selection:
        if (self.images is None) == (self.cluster is None):
            raise ValueError("give either images or a cluster")
        return self


class Junk(_Selection):
    """Mark images as junk: they belong to no cluster."""

    op: Literal["junk"]


class Confirm(_Selection):
    """Confirm that images are in the right cluster; `how` says whether they were chosen or drawn for an audit."""

    op: Literal["confirm"]
    how: Literal["reviewed", "audited"] | None = None


class Wrong(_Edit):
    """Say that images are in the wrong cluster, where the right one is not known."""

    op: Literal["wrong"]
    images: Images


class Cut(_Edit):
    """Choose the clusters in a branch of the run's tree (propos.runs.tree): open nodes are divided, others whole."""

    op: Literal["cut"]
    node: ClusterId
    open: tuple[ClusterId, ...]


class Dismiss(_Edit):
    """Dismiss a proposal (propos.runs.proposals); clusters do not change."""

    op: Literal["dismiss"]
    proposal: Key


class Undo(_Edit):
    """Undo an edit."""

    op: Literal["undo"]
    edit: Key


class Redo(_Edit):
    """Redo an edit that was undone."""

    op: Literal["redo"]
    edit: Key


Edit = Rename | Describe | Merge | Split | Move | Junk | Confirm | Wrong | Cut | Dismiss | Undo | Redo
Numbered = tuple[int, Edit]  # its line number
OPERATIONS = (
    *("rename", "describe", "merge", "split", "move", "junk", "confirm", "wrong", "cut", "dismiss", "undo", "redo"),
)

_line: TypeAdapter[Edit] = TypeAdapter(Annotated[Edit, Field(discriminator="op")])
_anything: TypeAdapter[object] = TypeAdapter(object)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause garbage collection while hundreds of thousands of objects are created, none of them garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def parse_edit(text: bytes, where: str) -> Edit:
    """Parse one edit; `where` names it in the error."""
    try:
        return _line.validate_json(text)
    except ValidationError as error:
        raise InputError(f"{where}: {_problem(text, error)}") from None


def parse_edits(content: bytes, where: str, before: int = 0) -> tuple[list[Numbered], bytes]:
    """Parse lines of edits, numbered from `before` on; return them and the rest of an incomplete last line.

    A last line without a line break counts if it is a complete edit: text editors leave the line break out.
    """
    whole, end, tail = content.rpartition(b"\n")
    lines = enumerate(whole.split(b"\n"), start=before + 1)
    edits = [(number, parse_edit(line, f"{where}: line {number}")) for number, line in lines if line.strip()]
    if tail.strip():
        try:
            edits.append((before + whole.count(b"\n") + len(end) + 1, _line.validate_json(tail)))
        except ValidationError:
            return edits, tail
    return edits, b""


def as_line(edit: Edit) -> bytes:
    """Return an edit as its line in the log."""
    return edit.model_dump_json(exclude_none=not isinstance(edit, Rename | Describe)).encode() + b"\n"


class Known:
    """The clusters and edits that an edit may refer to: the run's, its tree's, those split off, and earlier edits."""

    def __init__(self, ids: Iterable[int]) -> None:
        self.trained = frozenset(int(number) for number in ids)
        self.clusters: set[int] = set(self.trained)
        self._most = max(self.trained, default=-1)  # the largest id that a cluster ever had
        self.edits: dict[str, Edit] = {}

    def add_tree(self, ids: Iterable[int]) -> None:
        """Add the nodes of the run's tree; a cluster that was split off without it may have got one of their ids."""
        self.clusters.update(ids)
        self._most = max(self.clusters, default=-1)

    def add_new(self, edits: Iterable[Numbered], where: str, others: bool = False) -> list[Edit]:
        """Check edits in order and return the new ones; a known edit may arrive again unchanged.

        With `others`, the edits come from another program that may not have seen the whole log: a cluster that it split
        off under an id that is taken by now gets a free id, wherever its edits refer to it. If one edit is refused,
        none of them is added.
        """
        fresh: list[Edit] = []
        renumbered = _Renumbered()
        try:
            for line, given in edits:
                before = self.edits.get(given.id)
                if others and isinstance(given, Split):
                    self._number(given, before, renumbered, f"{where}: line {line}")
                edit = renumbered.edit(given)
                if before is None:
                    self._check(edit, f"{where}: line {line}")
                    self.edits[edit.id] = edit
                    fresh.append(edit)
                elif before != edit:
                    raise InputError(
                        f"{where}: line {line}: id = {edit.id!r} already belongs to another edit: use a unique id"
                    )
        except BaseException:
            self.forget(fresh)
            raise
        return fresh

    def forget(self, edits: Iterable[Edit]) -> None:
        """Remove the edits that were added last."""
        for edit in edits:
            del self.edits[edit.id]
            if isinstance(edit, Split):
                self.clusters.discard(edit.into)
        self._most = max(self.clusters, default=-1)

    def free(self) -> int:
        """Return an unused cluster id."""
        if self._most + 1 < MOST_CLUSTERS:
            return self._most + 1
        return next(number for number in count() if number not in self.clusters)

    def _number(self, split: Split, before: Edit | None, renumbered: _Renumbered, where: str) -> None:
        """Choose the id here of a cluster that another program split off."""
        if split.into in renumbered.given:
            raise InputError(f"{where}: split: cluster {split.into} was already split off: use another id")
        renumbered.given.add(split.into)
        if isinstance(before, Split):
            renumbered.ids[split.into] = before.into
        elif split.into in self.clusters and split.into not in self.trained:
            renumbered.ids[split.into] = self.free()

    def _check(self, edit: Edit, where: str) -> None:
        for number in _spoken_of(edit):
            if number not in self.clusters:
                raise InputError(f"{where}: {edit.op}: unknown cluster {number}")
        if isinstance(edit, Split):
            if edit.into in self.clusters:
                raise InputError(f"{where}: split: cluster {edit.into} already exists: use {self.free()}")
            self.clusters.add(edit.into)
            self._most = max(self._most, edit.into)
        if isinstance(edit, Undo | Redo):
            meant = self.edits.get(edit.edit)
            if meant is None:
                raise InputError(f"{where}: {edit.op}: unknown edit {edit.edit!r}: only earlier edits can be named")
            if isinstance(meant, Undo | Redo):
                raise InputError(
                    f"{where}: {edit.op}: {edit.edit!r} is itself an {meant.op}: name the edit that it refers to"
                )


class _Renumbered:
    """Clusters that have another id here than in the program that split them off; mirrors `after` in edits.ts."""

    def __init__(self) -> None:
        self.given: set[int] = set()  # ids that their splits used
        self.ids: dict[int, int] = {}

    def edit(self, edit: Edit) -> Edit:
        """Return an edit with the ids that its clusters have here."""
        if not self.ids:
            return edit
        changed: dict[str, object] = {}
        if isinstance(edit, Merge | Split | Move):
            changed["into"] = self._now(edit.into)
        if isinstance(edit, Merge):
            changed["clusters"] = tuple(map(self._now, edit.clusters))
        if isinstance(edit, Rename | Describe | Junk | Confirm) and edit.cluster is not None:
            changed["cluster"] = self._now(edit.cluster)
        return edit.model_copy(update=changed)

    def _now(self, cluster: int) -> int:
        return self.ids.get(cluster, cluster)


def _spoken_of(edit: Edit) -> tuple[int, ...]:
    """Return the ids of the clusters that an edit refers to."""
    match edit:
        case Move():
            return (edit.into,)
        case Rename() | Describe():
            return (edit.cluster,)
        case Merge():
            return (*edit.clusters, edit.into)
        case Cut():
            return (edit.node, *edit.open)
        case Junk() | Confirm():
            return () if edit.cluster is None else (edit.cluster,)
        case Split() | Wrong() | Dismiss() | Undo() | Redo():
            return ()


def _problem(text: bytes, error: ValidationError) -> str:
    """Return what is wrong with a line, in words."""
    try:
        value = _anything.validate_json(text)
    except ValidationError:
        return "cannot be read: not an edit in JSON"
    if not isinstance(value, dict):
        return "cannot be read: not a table of keys"
    version, operation = value.get("v"), value.get("op")
    if type(version) is int and version > VERSION:
        return f"was written by a newer propos (edits {version}, this one reads {VERSION}): upgrade propos"
    if operation not in OPERATIONS:
        return f"op = {shown(operation)}: unknown operation: choose one of {', '.join(OPERATIONS)}"
    first = error.errors(include_url=False, include_context=False)[0]
    key = shown(".".join(str(part) for part in first["loc"][1:]), quoted=False)
    if first["type"] == "missing":
        return f"{operation}: key {key} is missing"
    if first["type"] == "extra_forbidden":
        return f"{operation}: unknown key {key}"
    named = f"{key} = {shown(first['input'])}: " if key else ""
    return f"{operation}: {named}{first['msg'].removeprefix('Value error, ')}"
