"""Proposals of names for a run's clusters.

A namer is a function that returns a word and its evidence for clusters; packages add theirs with the entry-point group
`propos.namers`. Without one, the run's pretrained network is used, if it has a classifier or reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import partial
from importlib.metadata import entry_points
from typing import NamedTuple, Protocol

from propos.common.errors import InputError
from propos.common.progress import ShowTask, show_nothing
from propos.data import Source
from propos.review.naming.classes import class_sums, knows_words
from propos.review.naming.words import Vocabulary, imagenet_words, suggest
from propos.runs import JUNK, Proposal, Rename, Run, write_proposals

GROUP = "propos.namers"
KIND = "name"
OWN = "words"


class Named(NamedTuple):
    """A name for a cluster and its evidence; without a name the evidence says why it is unsure."""

    cluster: int
    name: str | None
    evidence: str


class ProgressReporter(Protocol):
    """The methods of a terminal that naming after a run needs."""

    @property
    def show_task(self) -> ShowTask:
        """A context manager that shows the progress of a long step."""
        ...

    def warn(self, text: str) -> None:
        """Print a warning."""
        ...


class Namer(Protocol):
    """A function that names clusters of a run; `source` has the images of the run's table, in its order."""

    def __call__(self, run: Run, source: Source, show_task: ShowTask) -> Iterable[Named]:
        """Return names; clusters may be left out."""
        ...


def name_clusters(
    run: Run, source: Source, show_task: ShowTask = show_nothing, words: Vocabulary | None = None
) -> list[Named]:
    """Name clusters by the words of the run's pretrained network, or by those given if it reads."""
    ids = sorted({int(each) for each in run.corrected.table.cluster} - {JUNK})
    sums, sizes = class_sums(run, source, ids, show_task, words)
    return [
        Named(cluster, found.word if found.sure else None, found.evidence())
        for cluster, found in zip(ids, suggest(sums, sizes, words or imagenet_words()), strict=True)
    ]


def propose_names(
    run: Run, source: Source, show_task: ShowTask = show_nothing, words: Vocabulary | None = None
) -> list[Named]:
    """Name clusters and keep the names as proposals of the run, in place of earlier ones; return them.

    A list of words is for our own namer, whatever others are installed.
    """
    name, namer = find_namer() if words is None else (OWN, partial(name_clusters, words=words))
    found = list(namer(run, source, show_task))
    write_proposals(run.path, KIND, [_proposal(each, each.name, name) for each in found if each.name is not None])
    return found


def propose_names_or_warn(run: Run, source: Source, reporter: ProgressReporter) -> None:
    """Propose names after a run where its network knows words; a failure is only a warning."""
    try:
        if entry_points(group=GROUP) or knows_words(run):
            propose_names(run, source, reporter.show_task)
    except Exception as error:  # the finished run matters more than its names
        reporter.warn(f"cannot propose names ({error}), but the run is complete")


def find_namer() -> tuple[str, Namer]:
    """Return the namer that a package adds, else our own, and its name."""
    added = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    if len(added) > 1:
        raise InputError(f"several packages name clusters ({', '.join(each.name for each in added)}): keep one of them")
    return (added[0].name, added[0].load()) if added else (OWN, name_clusters)


def _proposal(found: Named, name: str, source: str) -> Proposal:
    """Return the proposal of a name; the same name has the same id, so that a dismissed one stays dismissed."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    edit = Rename(v=1, id=f"name-{found.cluster}-{digest}", op="rename", cluster=found.cluster, name=name)
    return Proposal(
        id=edit.id, kind=KIND, source=source, evidence=found.evidence[:500], cluster=found.cluster, edit=edit
    )
