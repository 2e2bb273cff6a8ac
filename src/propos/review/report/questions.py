"""The images of a run to ask a person about next."""

from __future__ import annotations

from propos.evaluation.asking import Asked, choose_questions
from propos.runs import Run

QUESTIONS = 100  # at a time


def ask_about(run: Run, count: int = QUESTIONS) -> Asked | None:
    """Choose images nobody has answered for as the run stands by now; None where there are not two clusters."""
    now = run.corrected
    if len(now.prototypes.ids) < 2 or now.junk.all():
        return None
    return choose_questions(
        run.embeddings, now.prototypes.vectors, now.prototypes.ids, now.table.cluster, now.confirmed, count
    )


def questions(run: Run) -> list[tuple[int, int]]:
    """Return for the page, group by group, the row of each image and the id of the cluster it may rather belong to."""
    asked = ask_about(run)
    return [] if asked is None else list(zip(asked.rows.tolist(), asked.alternative.tolist(), strict=True))
