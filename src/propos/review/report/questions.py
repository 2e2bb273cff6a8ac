"""The images of a run that a person should check next."""

from __future__ import annotations

from propos.evaluation.questions import Questions, choose_questions
from propos.runs import Run

QUESTIONS = 100  # at a time


def choose_images_to_check(run: Run, count: int = QUESTIONS) -> Questions | None:
    """Choose images to check, given the corrections so far; None if there are fewer than two clusters."""
    now = run.corrected
    if len(now.prototypes.ids) < 2 or now.junk.all():
        return None
    return choose_questions(
        run.embedding_rows, now.prototypes.vectors, now.prototypes.ids, now.table.cluster, now.confirmed, count
    )


def questions(run: Run) -> list[tuple[int, int]]:
    """Return for the page, by group, the row of each image and the id of the second most likely cluster."""
    chosen = choose_images_to_check(run)
    return [] if chosen is None else list(zip(chosen.rows.tolist(), chosen.alternative.tolist(), strict=True))
