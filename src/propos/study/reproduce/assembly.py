"""From finished cells to tables and figures: which function makes which item, and what it needs measured first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from propos.study.reproduce import curves, data_table, maps, score_tables, study, sweeps, timing
from propos.study.reproduce.budgets import list_scaled_settings
from propos.study.reproduce.elements import Assembled, Part
from propos.study.reproduce.images import find_set
from propos.study.reproduce.results import Results

Assemble = Callable[[Results], Sequence[Part]]

PARTS: dict[str, Assemble] = {
    "table-1": data_table.table_1,
    "table-2": score_tables.table_2,
    "table-3": score_tables.table_3,
    "table-4": score_tables.table_4,
    "table-5": score_tables.table_5,
    "table-6": score_tables.table_6,
    "table-7": timing.table_7,
    "table-8": score_tables.table_8,
    "table-9": score_tables.table_9,
    "table-s1": score_tables.table_s1,
    "figure-3": curves.figure_3,
    "figure-4": maps.figure_4,
    "figure-5": maps.figure_5,
    "figure-6": sweeps.figure_6,
    "figure-7a": sweeps.figure_7a,
    "figure-7b": sweeps.figure_7b,
    "figure-7c": sweeps.figure_7c,
    "figure-7d": sweeps.figure_7d,
    "figure-7e": sweeps.figure_7e,
    "figure-7f": sweeps.figure_7f,
    "figure-8": sweeps.figure_8,
    "figure-s1": curves.figure_s1,
    "figure-s2": maps.figure_s2,
    "figure-s3": maps.figure_s3,
    "figure-s4": maps.figure_s4,
    "study": study.study,
}
# The measurements on an item's finished cells.
READ: dict[str, list[str]] = {
    "table-4": ["finer"],
    "table-5": ["linear"],
    "table-8": ["validation", "clustering"],
    "figure-4": ["preservation", "neighbours"],
    "figure-5": ["map"],
    "figure-6": ["clusters"],
    "figure-s2": ["moments"],
    "figure-s3": ["map", "outliers"],
    "figure-s4": ["map"],
}
QUOTED = "Rows without numbers of ours are quoted from the paper."
OWN_RECIPES = (
    "Methods with published settings for a set are trained with these; the others with the paper's recipe for the set, "
    "and their own losses and optimiser."
)
NOTES: dict[str, Sequence[str]] = {
    "table-2": (
        QUOTED,
        OWN_RECIPES,
        "NMM is the paper's spelling of NNM.",
        "CC is scored by its cluster head, as in its authors' code. The paper quotes it, trained at 224 px.",
        "PCL's STL-10 ACC of 41.0 is as the paper prints it.",
        "SCAN and NNM train on CIFAR's training images and score its test images; GCC and IDFD (CIFAR-10) train on and "
        "score the training images. Here all methods train on all images and score them.",
    ),
    "table-3": (OWN_RECIPES,),
    "table-5": (QUOTED, "All of ours have a ResNet-50, whatever the paper's row has."),
    "table-7": (
        "Seconds per epoch, the median of 5 turns; ProPos with an E-step every epoch. The paper gives hours of "
        "1,000 epochs on 4 V100 GPUs, so that ratios compare and times do not.",
    ),
    "table-8": (
        "Validation images are assigned by the nearest prototype, in SCAN's rows by its head.",
        "MoCo is trained here on the subset's images, as all rows are.",
    ),
    "figure-4": ("Test images are the queries, and train images vote. Classes are those that k-NN predicts.",),
    "figure-7f": ("The paper does not say which augmentations it removes; these are our choice, one after another.",),
    "figure-8": ("The paper names no sizes; these are our choice.",),
    "figure-s3": ("The paper does not say how it chose outliers; these lie furthest from their cluster's prototype.",),
    "study": (
        "The paper has no Fashion-MNIST; it is trained as CIFAR-10 is.",
        "Spread: the standard deviation of embeddings, as a share of that of embeddings even on the sphere.",
    ),
    "table-6": (
        "CC is scored by its cluster head, as in its authors' code; the next row is k-means on the same runs.",
    ),
}


def assemble(results: Results) -> Assembled:
    """Return an item with the results of its finished cells."""
    item, tasks = results.item, results.tasks
    notes = [*NOTES.get(item.id, ()), *_image_counts(results)]
    return Assembled(
        id=item.id,
        title=item.shows,
        parts=PARTS[item.id](results),
        notes=notes,
        scaled=list_scaled_settings(tasks.values()),
        cells=(len(results.runs), len(tasks)),
        seconds=results.seconds,
    )


def _image_counts(results: Results) -> list[str]:
    """Return how many of each set's images were used for training."""
    counts: dict[str, int] = {}
    for cell, run in results.runs.items():
        counts.setdefault(results.head(cell.setup), run.info.source.images or 0)
    lines = [f"{name}: {count:,} images" for name, count in counts.items()]
    absent = {
        cell.setup.data for cell, task in results.tasks.items() if find_set(cell.setup.data, results.paths.root) is None
    }
    return lines + [f"{name}: not on this machine" for name in sorted(absent)]
