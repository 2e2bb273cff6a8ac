"""Two runs of the same images on one page: which clusters match, who moved, in pictures."""

import re

import numpy as np
import pytest

from helpers.chromium import DESKTOP, PHONE
from helpers.runs import folder_run, make_run
from propos.review.report import write_report
from propos.runs import ImageTable, Run, RunFolder

pytestmark = pytest.mark.full

MOVED = 5  # of the images of this run's cluster 0, which are in the other's counterpart of cluster 3


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run, and another with its images in reverse order, its cluster ids shifted by 4, and five images moved."""
    root = tmp_path_factory.mktemp("against")
    run = folder_run(root)
    table = run.table
    other = make_run(root / "other", root / "photos", table.images, run.embeddings, table.label)
    cluster = (table.cluster + 4) % 10
    cluster[np.flatnonzero(table.cluster == 0)[:MOVED]] = 7
    back = [cluster[::-1].copy(), table.confidence[::-1].copy(), table.distance[::-1].copy()]
    RunFolder(other.path).write_images(ImageTable(table.images[::-1], *back))
    write_report(run, other=Run.open(other.path))
    return run


@pytest.fixture(scope="module")
def report(run):
    return run.path / "report" / "index.html"


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_images_that_moved_are_listed_and_the_others_lie_on_the_diagonal(open_report, run, viewport):
    page = open_report("comparison", viewport)
    assert page.locator("h1").inner_text() == "Compared with other"
    assert "196 images (97.5%) are in clusters that match, 5 in others" in page.locator(".lead").inner_text()
    rows = page.locator(".matrix tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => Number(cell.textContent) || 0))"
    )
    sizes = np.bincount(run.table.cluster, minlength=10)
    assert sorted(np.diag(rows).tolist()) == sorted([sizes[0] - MOVED, *sizes[1:]])
    assert np.sum(rows) - np.trace(rows) == MOVED
    assert page.locator(".move").count() == 1
    assert re.match(r"Cluster 7 → .*Cluster 0", page.locator(".move h3").inner_text().replace("\n", " "))
    names = page.locator(".move .thumb").evaluate_all("all => all.map(each => each.title)")
    first = [run.table.images[row] for row in np.flatnonzero(run.table.cluster == 0)[:MOVED]]
    assert sorted(names) == sorted(first)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_cell_opens_its_images_and_a_correction_is_counted(open_report):
    page = open_report("comparison")
    page.locator(".matrix td a", has_text=re.compile(rf"^{MOVED}$")).first.click()
    page.wait_for_selector(".cell")
    assert page.locator(".cell .thumb").count() == MOVED
    page.locator(".cell .thumb").first.click(modifiers=["Control"])
    second = page.locator(".cell .thumb").nth(1)
    second.evaluate("thumb => { thumb.same = true; document.querySelector('.cell').same = true; }")
    page.keyboard.press("j")
    page.wait_for_function("document.querySelectorAll('.cell .thumb').length === 4")
    assert page.evaluate("document.querySelector('.cell').same && document.querySelector('.cell .thumb').same")
    assert "196 images" in page.locator(".lead").inner_text()
    assert page.locator(".move", has_text="Junk").locator(".badge").inner_text() == "1"
