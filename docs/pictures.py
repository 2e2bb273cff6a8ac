"""Draw the README's picture from a run on the built-in digits: python docs/pictures.py RUN docs/clusters.png."""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

from propos.data import open_source
from propos.runs import RunFolder

mpl.use("Agg")
import matplotlib.pyplot as plt

COLUMNS = 18


def main(run: Path, picture: Path) -> None:
    clusters = RunFolder.open(run).clusters()
    source = open_source("digits")
    names = np.unique(clusters.cluster)
    figure, axes = plt.subplots(
        len(names), 1, figsize=(9, 0.62 * len(names)), gridspec_kw={"hspace": 0.25}, layout="constrained"
    )
    for axis, name in zip(axes, names, strict=True):
        members = np.flatnonzero(clusters.cluster == name)
        # Evenly from the most to the least typical, so that the picture hides nothing.
        typical_first = members[clusters.distance[members].argsort()]
        shown = typical_first[np.linspace(0, len(members) - 1, COLUMNS).round().astype(int)]
        tiles = [np.pad(image, 1) for image in source.batch(shown)[:, 0]]
        axis.imshow(255 - np.concatenate(tiles, axis=1), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axis.set_axis_off()
        axis.text(-3, 5, f"cluster {name}", ha="right", va="center", fontsize=9)
        axis.text(COLUMNS * 10 + 3, 5, f"{len(members)} images", ha="left", va="center", fontsize=9, color="0.4")
    axes[0].set_title("most typical  →  least typical", fontsize=9, color="0.4")
    figure.savefig(picture, dpi=110)


main(Path(sys.argv[1]), Path(sys.argv[2]))
