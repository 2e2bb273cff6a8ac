"""Thumbnails cut out of sheets on which some tile is of an image that turned out unreadable."""

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from helpers.runs import make_run
from propos.data import open_streamed
from propos.review.report import write_report
from propos.review.report.groups import describe_groups
from propos.review.report.pictures import picture_order

pytestmark = pytest.mark.full

COUNT = 33  # one more than a row of a sheet holds
PITCH = 72

SHOWN = """async picture => {
    const style = getComputedStyle(picture);
    const sheet = new Image();
    sheet.src = style.backgroundImage.slice(5, -2);
    await sheet.decode();
    return [parseFloat(style.backgroundSize.split(' ')[1]), sheet.naturalHeight];
}"""


@pytest.fixture(params=[0, -1], ids=["first", "last"])
def torn(request, tmp_path):
    """Write the page of 33 streamed images, of which that of the first or of the last tile is cut short."""
    folder = tmp_path / "photos"
    folder.mkdir()
    images = np.kron(load_digits().images[:COUNT] * 15, np.ones((1, 9, 9))).astype(np.uint8)
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number:02d}.png")
    run = make_run(tmp_path / "run", folder, [f"{number:02d}.png" for number in range(COUNT)], images, clusters=2)
    groups = describe_groups(run.clusters, run.table, run.prototypes)
    featured = [image for group in groups for image in group.typical]
    order = picture_order(featured, run.table.cluster, run.table.distance)
    path = folder / f"{order[request.param]:02d}.png"
    path.write_bytes(path.read_bytes()[:80])
    with open_streamed(folder, PITCH, workers=1) as source:
        return write_report(run, source)


def test_an_unreadable_tile_leaves_every_other_picture_as_it_is(browser, torn):
    page = browser.new_page()
    for cluster in (0, 1):
        page.goto(f"{torn.as_uri()}#/cluster/{cluster}")
        page.wait_for_function("n => document.querySelector('h1').textContent.includes(`Cluster ${n}`)", arg=cluster)
        for picture in page.locator(".thumb .picture:not(.none)").all():
            share, height = picture.evaluate(SHOWN)
            # A tile fills its element, so a sheet of so many rows is so many times as high.
            assert share == 100 * height / PITCH
            assert height == 2 * PITCH
    page.close()
