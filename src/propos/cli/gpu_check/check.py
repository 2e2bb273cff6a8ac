"""The self-test of a GPU, one kind of work after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from propos.cli.gpu_check.finding import Finding, Row
from propos.cli.gpu_check.runs import WholeRuns
from propos.cli.gpu_check.work import SingleWork
from propos.runner import Decision, Length, Request, plan

# Scikit-learn's digits need no download. With two epochs every loss acts.
USUAL = Request(source="digits", recipe="digits", length=Length(epochs=2))


def check_gpu(request: Request = USUAL) -> Iterator[Finding]:
    """Yield what the self-test of the first GPU finds."""
    with TemporaryDirectory() as folder, plan(request, "cuda") as planned:
        for row in rows_of(request, planned, Path(folder)):
            yield row.find(planned.device)
        yield from joined([row.find(planned.device) for row in rows_of_methods(request, planned)])


def rows_of(request: Request, planned: Decision, folder: Path) -> Iterator[Row]:
    """Yield the rows of the table; runs are written to a folder."""
    yield from SingleWork(request, planned.source, planned.config).rows(planned.device)
    yield from WholeRuns(request, folder).rows(planned.device)


def rows_of_methods(request: Request, planned: Decision) -> Iterator[Row]:
    """Yield a row for the steps of each method."""
    yield from SingleWork(request, planned.source, planned.config).rows_of_methods()


def joined(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the steps of methods that differ, and one finding for all others."""
    yield from (each for each in findings if not each.agrees)
    good = [each for each in findings if each.agrees]
    if good:
        worst, peak = max(good, key=lambda each: each.difference), max(each.peak_bytes for each in good)
        yield Finding(f"step of {len(good)} methods", worst.difference, worst.bound, peak)
