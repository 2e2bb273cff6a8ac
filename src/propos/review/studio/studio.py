"""Actions of a person in Studio: each is checked here and then carried out by a `propos` command."""

from __future__ import annotations

import csv
import re
import secrets
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from propos.common.errors import InputError
from propos.data import escape_name, unescape_name
from propos.review.export import FORMATS, check_output_path, check_split, export_run
from propos.review.report import is_current
from propos.review.report.curves import charts
from propos.review.studio.inspecting import Inspector
from propos.review.studio.listing import Listing
from propos.review.studio.places import Places
from propos.review.studio.queue import Queue
from propos.review.studio.requests import Export, Folder, Learn, NewRun, Predict
from propos.review.studio.trash import Trash
from propos.review.studio.work import Work
from propos.runs import Run, next_free_folder, read_history
from propos.runs.lock import remove_if_empty

OWN, OUTPUTS, TRASH = ".studio", "outputs", "trash"
COMPUTING = ("waiting", "working", "stopping")
ENDING = {"coco": "json", "embedding-atlas": "parquet"}
PICTURES = {"clusters": "preview.png", "map": "preview-map.png"}  # which training draws (`propos.training.preview`)
MOST_PLANNED = 200  # lines of a dry run that are shown
UNUSUAL = re.compile(r"[^\w.+-]+")


class Studio:
    """The runs of a folder, the places that may be used, and the work that is queued."""

    def __init__(self, runs: Path, places: Places) -> None:
        self.runs, self.places = runs, places
        own = runs / OWN
        own.mkdir(parents=True, exist_ok=True)
        self.outputs = own / OUTPUTS
        self.outputs.mkdir(exist_ok=True)
        self.queue, self.trash = Queue(own, runs), Trash(own / TRASH, runs)
        self.listing, self.inspector = Listing(runs, self.queue), Inspector()
        self.queue.start(self._check)

    def close(self) -> None:
        """Start no more work; what computes continues."""
        self.queue.close()
        self.inspector.close()

    def state(self) -> dict[str, Any]:
        """Describe all runs, the work of other kinds, and the trash."""
        with self.queue.lock:
            others = [self._described(work) for work in self.queue.all if work.kind != "run"]
            return {"runs": self.listing.all(), "work": others, "trash": self.trash.all()}

    def _described(self, work: Work) -> dict[str, Any]:
        own = Path(unescape_name(work.output or "")).parent == self.outputs
        kept = work.model_dump(include={"id", "kind", "run", "form", "source", "state", "message"})
        return {**kept, "download": own, "output": None if own else work.output}

    def start(self, asked: NewRun) -> Work:
        """Queue a new run of a folder."""
        source = self.places.folder(asked.source)
        return self._new_run(asked.id, source, clusters=asked.clusters)

    def inspect(self, asked: Folder) -> dict[str, Any]:
        """Look through a folder that may become a run."""
        return self.inspector.inspect(self.places.folder(asked.source), asked.clusters)

    def learn(self, asked: Learn) -> Work:
        """Queue a run that continues another one with its corrections."""
        run = self._finished(asked.name)
        if run.config.source is None:
            raise InputError(f"{asked.name}: its images came from a program, so only that can continue it")
        source = self.places.folder(escape_name(str(run.config.source)))
        return self._new_run(asked.id, source, earlier=asked.name)

    def _new_run(self, identity: str, source: Path, **more: Any) -> Work:
        with self.queue.lock:
            known = self.queue.find(identity)
            if known is not None:
                return known
            with next_free_folder(self.runs, UNUSUAL.sub("-", source.name).strip("-.") or "run") as folder:
                work = Work(id=identity, kind="run", run=escape_name(folder.name),
                            source=escape_name(str(source)), **more)  # fmt: skip
                self.queue.add(work)
                # Written first, so that the folder is not empty: it belongs to this run from now on.
                (folder / "progress.jsonl").touch()
            return work

    def pause(self, name: str) -> None:
        """Stop a run; what it has is kept."""
        self.queue.pause(self._work(name))

    def resume(self, name: str) -> None:
        """Queue a run again that was stopped, failed or crashed."""
        with self.queue.lock:
            work = self.queue.of_run(name)
            if work is None:  # it was started by another program
                folder = self.listing.folder(name)
                run = Run.open(folder)
                if run.finished and is_current(run):
                    raise InputError(f"{name}: the run is finished: nothing to resume")
                source = None if run.config.source is None else escape_name(str(run.config.source))
                work = Work(id=secrets.token_urlsafe(12), kind="run", run=name, source=source, step=int(run.finished))
                self.queue.add(work)
            elif work.state == "done":
                work.state, work.step = "paused", 1  # its page is missing
            self.queue.resume(work)

    def delete(self, name: str) -> None:
        """Move a run to the trash."""
        with self.queue.lock:
            described = self.listing.describe(name)
            if described is not None and described["state"] in (*COMPUTING, "elsewhere"):
                raise InputError(f"{name}: is computing: stop it first")
            work = self.queue.of_run(name)
            folder = self.listing.folder(name)
            if work is not None:
                self.queue.forget(work)
            if (folder / "run.json").exists():
                self.trash.move_in(folder)
            else:  # nothing was computed
                (folder / "progress.jsonl").unlink(missing_ok=True)
                remove_if_empty(folder)

    def plan_export(self, asked: Export) -> dict[str, Any]:
        """Return what an export would write, and write nothing."""
        run, output = self._finished(asked.name), self._output(asked)
        self._check_export(run, asked, output)
        names = run.corrected.names().values()
        found = {"output": escape_name(str(output)), "count": len(run.table.images), "files": [], "left": 0,
                 "clusters": len(names), "unnamed": sum(name is None for name in names)}  # fmt: skip
        if asked.form != "folders":
            return found
        planned = export_run(run, "folders", output, asked.how, dry_run=True)
        files = [(escape_name(str(original)), escape_name(str(place))) for original, place in planned.planned]
        return {**found, "count": planned.count, "files": files[:MOST_PLANNED], "left": planned.left_out}

    def export(self, asked: Export) -> Work:
        """Queue an export."""
        with self.queue.lock:
            known = self.queue.find(asked.id)
            if known is not None:
                return known
            output = self._output(asked)
            self._check_export(self._finished(asked.name), asked, output)
            return self.queue.add(Work(id=asked.id, kind="export", run=asked.name, form=asked.form, how=asked.how,
                                       split=asked.split, output=escape_name(str(output))))  # fmt: skip

    def predict(self, asked: Predict) -> Work:
        """Queue the prediction of another folder."""
        self._finished(asked.name)
        source = self.places.folder(asked.source)
        output = self.outputs / f"{asked.id}.csv"
        return self.queue.add(Work(id=asked.id, kind="predict", run=asked.name, source=escape_name(str(source)),
                                   output=escape_name(str(output))))  # fmt: skip

    def preview(self, name: str) -> dict[str, Any]:
        """Return the curves of a run that trains, and when the picture of its clusters was drawn."""
        folder = self.listing.folder(name)
        epochs, drawn = charts(read_history(folder))
        picture = folder / PICTURES["clusters"]
        drawn_at = picture.stat().st_mtime_ns // 1_000_000 if picture.is_file() else None
        return {"epochs": epochs, "charts": [asdict(chart) for chart in drawn], "picture": drawn_at}

    def picture(self, name: str, kind: str) -> Path | None:
        """Return a picture of the clusters that a run has found so far."""
        path = self.listing.folder(name) / PICTURES[kind]
        return path if path.is_file() and not path.is_symlink() else None

    def summary(self, identity: str) -> list[tuple[str, int]]:
        """Return how many images of a prediction went to each cluster, the most first."""
        with self.result(identity).open(newline="", encoding="utf-8") as file:
            found = Counter(row.get("name") or f"Cluster {row.get('cluster')}" for row in csv.DictReader(file))
        return found.most_common()

    def result(self, identity: str) -> Path:
        """Return the file of finished work that may be downloaded."""
        work = self.queue.find(identity)
        if work is None or work.state != "done" or work.output is None:
            raise InputError("no such file: it was not written, or removed")
        path = Path(unescape_name(work.output))
        if path.parent != self.outputs or path.is_symlink() or not path.is_file():
            raise InputError("no such file: it was not written, or removed")
        return path

    def _output(self, asked: Export) -> Path:
        """Return where an export goes: where a person says, else to a file that is downloaded."""
        if asked.output is not None:
            return self.places.output(asked.output)
        if asked.form not in FORMATS or asked.form in ("folders", "fiftyone", "xmp", "model"):
            raise InputError(f"{asked.form}: give the folder to write to")
        return self.outputs / f"{asked.id}.{ENDING.get(asked.form, asked.form)}"

    def _check_export(self, run: Run, asked: Export, output: Path) -> None:
        check_split(asked.split, asked.form)
        check_output_path(run, output)

    def _check(self, work: Work) -> None:
        """Refuse work that was queued by another hand, or whose folders have gone, just before it starts."""
        self.listing.folder(work.run)
        if work.source is not None:
            self.places.folder(work.source)
        if work.output is not None and Path(unescape_name(work.output)).parent != self.outputs:
            self.places.output(work.output)

    def _finished(self, name: str) -> Run:
        run = Run.open(self.listing.folder(name))
        if not run.finished:
            raise InputError(f"{name}: is not finished")
        return run

    def _work(self, name: str) -> Work:
        work = self.queue.of_run(name)
        if work is None:
            raise InputError(f"{name}: was not started here")
        return work
