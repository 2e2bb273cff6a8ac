"""Pictures that are shown larger than their thumbnails."""

import zipfile

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from helpers.reviewed import windows
from helpers.runs import make_run
from helpers.served import serving
from propos.data import open_folder
from propos.review.report import write_report

pytestmark = pytest.mark.full

COUNT, SIDE = 12, 296


@pytest.fixture
def photographs(tmp_path):
    """Write digits as files far larger than their thumbnails."""
    (tmp_path / "photos").mkdir()
    for number, image in enumerate(load_digits().images[:COUNT]):
        large = np.kron(image * 15, np.ones((SIDE // 8, SIDE // 8))).astype(np.uint8)
        Image.fromarray(large).save(tmp_path / "photos" / f"{number:02d}.png")
    return tmp_path / "photos"


def run_of(source):
    opened = open_folder(source, 160)
    digits = load_digits().images[:COUNT]
    run = make_run(source.parent / "run", source, opened.image_names(), digits, clusters=2)
    return write_report(run, opened).parents[1]


def look(open_it):
    page = open_it("review").page
    assert page.locator(".thumb").count() == COUNT
    assert page.locator(".thumb img").count() == 0  # thumbnails of 128 pixels do
    page.locator("#size").fill("240")
    whole = f"[...document.querySelectorAll('.thumb img')].filter(each => each.naturalWidth === {SIDE}).length"
    page.locator(".thumb").last.scroll_into_view_if_needed()
    page.wait_for_function(f"{whole} === document.querySelectorAll('.thumb').length - 1")
    page.wait_for_function("document.querySelector('.thumb[title=\"03.png\"] img') === null")  # its thumbnail stays


def test_originals_lie_over_thumbnails_that_are_too_small(browser, photographs):
    folder = run_of(photographs)
    (photographs / "03.png").unlink()
    with windows(browser, (folder / "report" / "index.html").as_uri()) as open_it:
        look(open_it)
    with serving(folder) as address, windows(browser, address) as open_it:
        look(open_it)


def test_pictures_without_originals_grow_only_as_large_as_they_are_sharp(browser, photographs):
    with zipfile.ZipFile(photographs.with_suffix(".zip"), "w") as archive:
        for path in sorted(photographs.iterdir()):
            archive.write(path, path.name)
    folder = run_of(photographs.with_suffix(".zip"))
    with windows(browser, (folder / "report" / "index.html").as_uri()) as open_it:
        assert open_it("review").page.locator("#size").get_attribute("max") == "128"
