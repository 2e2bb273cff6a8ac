"""Draw the README's picture from a run on the built-in digits: python docs/pictures.py RUN docs/clusters.png."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from propos.data import open_source
from propos.runs import Run

COLUMNS, SCALE = 18, 4
TITLE, GAP, BEFORE, AFTER = 24, 10, 110, 130  # room above, between rows, and for the words on either side
BLACK, GREY = 0, 102


def main(run: Path, picture: Path) -> None:
    opened = Run.open(run)
    source = open_source("digits")
    width, height = COLUMNS * (source.width + 2) * SCALE, (source.height + 2) * SCALE
    sheet = Image.new("L", (BEFORE + width + AFTER, TITLE + len(opened.clusters) * (height + GAP)), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(15)
    draw.text((BEFORE, TITLE / 2), "most typical", GREY, font, anchor="lm")
    draw.text((BEFORE + width, TITLE / 2), "least typical", GREY, font, anchor="rm")
    for row, cluster in enumerate(opened.clusters):
        members = cluster.members
        # Evenly from the most to the least typical, so that the picture hides nothing.
        typical_first = members[opened.table.distance[members].argsort()]
        shown = typical_first[np.linspace(0, len(members) - 1, COLUMNS).round().astype(int)]
        tiles = [np.pad(image, 1) for image in source.batch(shown)[:, 0]]
        strip = Image.fromarray(255 - np.concatenate(tiles, axis=1)).resize((width, height), Image.Resampling.NEAREST)
        top = TITLE + row * (height + GAP)
        sheet.paste(strip, (BEFORE, top))
        name = cluster.name or f"cluster {cluster.id}"
        draw.text((BEFORE - 12, top + height / 2), name, BLACK, font, anchor="rm")
        draw.text((BEFORE + width + 12, top + height / 2), f"{len(members)} images", GREY, font, anchor="lm")
    sheet.save(picture, optimize=True)


main(Path(sys.argv[1]), Path(sys.argv[2]))
