"""How long to train on so many images, for so many clusters.

A recipe's epochs were found on a set of some size, of ten kinds. Fewer images need more epochs, because an epoch is
fewer steps; more images are worth more steps, but by far not as many more as there are images; and so are more kinds,
which take longer to be told apart (docs/results.md, "How long").
"""

from __future__ import annotations

from propos.config import Config

# The number of images that each recipe's epochs were found on.
FOUND_ON = {"digits": 1_800, "small-grey": 3_000, "small-colour": 2_000, "photos": 1_200}
STEPS_GROW = 0.25  # sixteen times the images have twice the steps
KINDS, KINDS_GROW = 10, 0.5  # and four times as many kinds, from ten on
FEWEST, MOST = 4, 5.0  # epochs, so that there is a start, a middle and an end; times the recipe's own


def fit_length(config: Config, images: int, clusters: int | None = None) -> Config:
    """Return a recipe's settings with the epochs that so many images call for, warm-up and scattering in proportion.

    Where the number of clusters is not known yet, it is as for ten.
    """
    if config.recipe not in FOUND_ON:
        return config
    times = (FOUND_ON[config.recipe] / images) ** (1 - STEPS_GROW)
    times *= max(1.0, min(clusters or KINDS, images) / KINDS) ** KINDS_GROW
    return config.with_epochs(max(FEWEST, round(config.train.epochs * min(MOST, times))))
