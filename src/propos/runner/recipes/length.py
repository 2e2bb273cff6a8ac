"""The number of epochs for a number of images and clusters.

A recipe's epochs were tuned on one data set of ten classes. Fewer images need more epochs, because an epoch has fewer
steps. More images, and more clusters, need more steps, but less than in proportion (docs/results.md, "How long").
"""

from __future__ import annotations

from propos.config import Config

# The number of images on which each recipe's epochs were tuned.
FOUND_ON = {"digits": 1_800, "small-grey": 3_000, "small-colour": 2_000, "photos": 1_200}
STEPS_GROW = 0.25  # sixteen times the images get twice the steps
KINDS, KINDS_GROW = 10, 0.5  # so do four times as many clusters, from ten on
FEWEST, MOST = 4, 5.0  # epochs at least; times the recipe's own at most


def fit_length(config: Config, images: int, clusters: int | None = None) -> Config:
    """Return a recipe's settings with the epochs for this number of images; warm-up and `*_start` scale with it.

    An unknown number of clusters counts as ten.
    """
    if config.recipe not in FOUND_ON:
        return config
    times = (FOUND_ON[config.recipe] / images) ** (1 - STEPS_GROW)
    times *= max(1.0, min(clusters or KINDS, images) / KINDS) ** KINDS_GROW
    return config.with_epochs(max(FEWEST, round(config.train.epochs * min(MOST, times))))
