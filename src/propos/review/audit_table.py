"""The table of an audit's images, which a person fills in, and the edits that its answers mean."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from uuid import uuid4

from propos.common.errors import InputError, shown
from propos.common.spreadsheets import guarded, read_text
from propos.runs import JUNK, Confirm, Edit, Junk, Run, write_atomically
from propos.runs.audit import UNANSWERED, Audit
from propos.runs.edits import Move, Numbered, Wrong

COLUMNS = ("image", "cluster", "name", "right", "belongs_to")
YES, NO = ("y", "yes", "1", "true"), ("n", "no", "0", "false")


def write_questions(run: Run, audit: Audit, path: Path) -> None:
    """Write the drawn images without an answer, in the order of their draw."""
    corrected, names = run.corrected, run.corrected.names()
    rows = audit.rows[audit.answers(run) == UNANSWERED].tolist()
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(COLUMNS)
    for row in rows:
        cluster = int(corrected.table.cluster[row])
        table.writerow([guarded(run.table.images[row]), cluster, guarded(names.get(cluster) or ""), "", ""])
    write_atomically(path, text.getvalue().encode())


def read_answers(run: Run, audit: Audit, path: Path) -> list[Numbered]:
    """Return the edits that a filled-in table means, by line; rows without an answer mean none."""
    if not path.is_file():
        raise InputError(f"{path}: no such file: give the table that propos audit -o wrote")
    table = read_text(path).table()
    if not {"image", "right"} <= set(table.columns):
        raise InputError(f"{path}: found columns {', '.join(table.columns) or 'none'}: needs image,right")
    drawn = {run.table.images[row]: row for row in audit.rows.tolist()}
    found: list[Numbered] = []
    for line, cells in table.rows:
        image, where = cells["image"], f"{path}: line {line}"
        if not cells["right"].strip() and not cells.get("belongs_to", "").strip():
            continue
        if image not in drawn:
            raise InputError(f"{where}: {shown(image)} was not drawn: only randomly drawn images count")
        found.append((line, _edit(run, image, cells, where)))
    return found


def _edit(run: Run, image: str, cells: dict[str, str], where: str) -> Edit:
    """Return the edit that an answer means: a confirmation, a mark, a move, or junk."""
    answer, target = cells["right"].strip().lower(), cells.get("belongs_to", "").strip()
    if answer in YES and not target:
        return Confirm(v=1, id=uuid4().hex, op="confirm", images=(image,), how="audited")
    if answer not in NO and answer:
        advice = "leave belongs_to empty, or say n" if answer in YES else "answer y or n"
        raise InputError(f"{where}: right = {shown(cells['right'])}: {advice}")
    if not target:
        return Wrong(v=1, id=uuid4().hex, op="wrong", images=(image,))
    if target.lower() == "junk" or target == str(JUNK):
        return Junk(v=1, id=uuid4().hex, op="junk", images=(image,))
    return Move(v=1, id=uuid4().hex, op="move", images=(image,), into=_cluster(run, target, where))


def _cluster(run: Run, target: str, where: str) -> int:
    """Return the id of the cluster that is meant, by id or name."""
    meant = [number for number, name in run.corrected.names().items() if target in (str(number), name)]
    if len(meant) != 1:
        raise InputError(
            f"{where}: belongs_to = {shown(target)}: {'more than one' if meant else 'no'} cluster is called so"
        )
    return meant[0]
