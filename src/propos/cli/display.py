"""The display of a run's progress: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from propos.cli.streams import TolerantStream, printable
from propos.common.durations import duration
from propos.common.plurals import counted

if TYPE_CHECKING:
    from propos.clustering import Suggestion
    from propos.training import Fitted

PLAIN_LINE_SECONDS = 10.0


def summary(record: Mapping[str, Any]) -> str:
    """Summarise an epoch's record in one line."""
    parts = []
    losses, measures = record["losses"], record["measures"]
    if losses:
        parts.append(f"loss {losses['total']:.3f}")
    if "uniformity_std" in measures:
        parts.append(f"spread {measures['uniformity_std'] / measures['uniformity_reference']:.2f}")
    if measures.get("churn") is not None:
        parts.append(f"moved {measures['churn']:.1%}")
    if "nmi" in measures:
        parts.append(f"NMI {measures['nmi']:.3f}")
        parts.append(f"accuracy {measures['accuracy']:.3f}")
    return "  ".join(parts)


def _tolerant(stream: TextIO) -> TextIO:
    return cast(TextIO, TolerantStream(stream))


class Terminal:
    """Shows a run's progress; quiet shows only warnings, mute nothing at all."""

    def __init__(self, quiet: bool, mute: bool = False, tells_choice: bool = True) -> None:
        self.quiet, self.tells_choice = quiet, tells_choice
        # Training continues if the reader closes the pipe.
        self.out = Console(file=_tolerant(sys.stdout), highlight=False, soft_wrap=True, quiet=mute)
        self.err = Console(file=_tolerant(sys.stderr), highlight=False, soft_wrap=True, quiet=mute)
        self.live = sys.stdout.isatty() and not quiet
        self.epochs = self.steps = 0
        self.last_line = 0.0
        self.suggested: Suggestion | None = None
        self.bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("left  {task.fields[summary]}"),
            console=self.out,
            transient=True,
            disable=not self.live,
        )
        self.task = self.bar.add_task("training", total=None, epoch="–", summary="")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_bar()

    def _stop_bar(self) -> None:
        if self.live:  # rich below 14 prints an empty line even if it shows nothing
            self.bar.stop()

    @contextmanager
    def show_task(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """Show the progress of a long task; yields a function to call with the amount done and the total."""
        if not self.live:
            yield self._plain_lines(name)
            return
        with Progress(
            TextColumn(name),
            BarColumn(),
            TextColumn("{task.fields[done]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[left]}"),
            console=self.out,
            transient=True,
        ) as bar:
            task = bar.add_task(name, total=None, done="", left="")
            yield lambda done, total: bar.update(
                task,
                completed=done,
                total=total or None,
                done=f"{done:,}/{total:,}" if total else f"{done:,} so far",
                left="left" if total else "",
            )

    def _plain_lines(self, name: str) -> Callable[[int, int], None]:
        """Return a function that prints a line every ten seconds; short tasks print none."""
        last = time.monotonic()
        first: tuple[float, int] | None = None  # a task may start late, and may continue an earlier one

        def line(done: int, total: int) -> None:
            nonlocal last, first
            now = time.monotonic()
            first = first or (now, done)
            begin, at_first = first
            if now - last < PLAIN_LINE_SECONDS or done == at_first:
                return
            last = now
            if total == 0:
                self.note(f"{name}: {done:,} so far")
                return
            left = (now - begin) * (total - done) / (done - at_first)
            self.note(f"{name}: {done:,} of {total:,} ({done / total:.0%}), {duration(left)} left")

        return line

    def begin(self, epochs: int, steps: int, epoch: int) -> None:
        """Show that training starts or resumes at an epoch."""
        self.epochs, self.steps = epochs, steps
        if epochs == 0:  # nothing is trained
            self.bar.columns = (TextColumn("Finding clusters"), BarColumn())
            self.bar.reset(self.task, total=None)
            self.bar.start()
            return
        self.bar.reset(self.task, total=epochs * steps, completed=epoch * steps, epoch=f"{epoch}/{epochs}", summary="")
        self.bar.start()

    def step(self, epoch: int, step: int) -> None:
        """Show a finished step."""
        self.bar.update(self.task, completed=epoch * self.steps + step, epoch=f"{epoch + 1}/{self.epochs}")

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Show a finished epoch."""
        self.bar.update(self.task, summary=summary(record))
        now, last = time.monotonic(), record["epoch"] >= self.epochs - 1
        trained = self.epochs > 0  # otherwise there is nothing but the result, which `done` prints
        if trained and not self.live and not self.quiet and (last or now - self.last_line > PLAIN_LINE_SECONDS):
            done = record["epoch"] + 1
            when = f"epoch {done}/{self.epochs}" if done <= self.epochs else "end"
            self.note(f"{when}  {summary(record)}")
            self.last_line = now

    def suggestion(self, suggestion: Suggestion) -> None:
        """Show the number of clusters that was chosen."""
        self.suggested = suggestion
        if self.tells_choice:
            self.note(suggestion.why)

    def note(self, text: str) -> None:
        """Print a note; on a terminal it is wrapped between words."""
        if not self.quiet:
            self.out.print(Text(printable(text)), soft_wrap=not self.live)

    def line(self, text: str) -> None:
        """Print a line to copy, or with columns; it is never wrapped."""
        if not self.quiet:
            self.out.print(Text(printable(text)))

    def warn(self, text: str) -> None:
        """Print a warning."""
        self.err.print(Text(printable(f"warning: {text}"), style="yellow"))

    def expect(self, epochs: int, seconds: float) -> None:
        """Print the expected duration of training."""
        self.note(f"Training for {counted(epochs, 'epoch')} will take about {duration(seconds)}.")

    def done(self, run: Path, fitted: Fitted, seconds: float) -> None:
        """Print the results and where they are."""
        last = fitted.history[-1]["measures"]
        self._stop_bar()
        smallest, largest = last["smallest_cluster"], counted(last["largest_cluster"], "image")
        sizes = f"{largest} each" if smallest == last["largest_cluster"] else f"{smallest:,} to {largest}"
        self.note(f"\nDone in {duration(seconds)}: {last['n_clusters']} clusters of {sizes}.")
        if "nmi" in last:
            self.note(
                f"Compared with the labels: accuracy {last['accuracy']:.3f}, NMI {last['nmi']:.3f}, "
                f"ARI {last['ari']:.3f}, AMI {last['ami']:.3f}."
            )
        if "head_nmi" in last:
            self.note(f"By the cluster head: accuracy {last['head_accuracy']:.3f}, NMI {last['head_nmi']:.3f}.")
        folder = shlex.quote(str(run))
        self.line(f"Results: {run}/clusters.parquet has the cluster of each image.")
        self.line(f"As a table: propos export {folder} --to csv -o labels.csv")
        self.line(f"In folders: propos export {folder} --to folders -o sorted")
        self.line(f"New images: propos predict {folder} NEW -o new.csv")
