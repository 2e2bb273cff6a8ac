"""More like this: similar images are found, answered and collected; without a server the map orders them."""

import numpy as np

from helpers.reviewed import titles
from propos.runs import Run

READY = """document.querySelector('[role=status].quiet')?.textContent === ''
    && document.querySelectorAll('.gallery')[1].children.length > 0"""


def searched(window):
    window.page.wait_for_function(READY)


def test_a_kind_is_collected_by_answers(reviewing, folder, tmp_path, capsys):
    window = reviewing("cluster/3")
    window.thumbs(0).nth(0).focus()
    image = window.in_focus()
    window.press("f")
    window.page.wait_for_function("location.hash.startsWith('#/like/')")
    searched(window)
    run = Run.open(folder)
    row = run.table.images.index(image)
    shown = titles(window.thumbs(1))
    assert image not in shown
    order = np.argsort(-(run.embeddings @ run.embeddings[row]), kind="stable").tolist()
    if window.served:
        assert shown[:12] == [run.table.images[each] for each in order if each != row][:12]
    else:
        assert "map" in window.page.locator(".screen").inner_text()
    window.thumbs(1).nth(1).click(modifiers=["Control"])
    window.page.get_by_role("button", name="All but the 1 chosen belong").click()
    window.answer("5")
    collected = f"{len(shown)} images collected in Cluster 5."  # the example, and all shown but one
    window.page.wait_for_function("words => document.querySelector('.lead').textContent === words", arg=collected)
    searched(window)
    rest = titles(window.thumbs(1))
    assert not set(rest) & {image, *shown}
    if window.served:
        assert window.page.locator("h2").last.inner_text().startswith("Probably")
    window.page.get_by_role("button", name="None of them").click()
    window.page.wait_for_function(
        "name => document.querySelectorAll('.gallery')[1].children[0]?.title !== name", arg=rest[0]
    )
    corrected = window.hand_over(folder, tmp_path / "edits.jsonl", capsys)
    where = dict(zip(corrected.table.images, corrected.table.cluster.tolist(), strict=True))
    before = dict(zip(run.table.images, run.table.cluster.tolist(), strict=True))
    assert {where[name] for name in (image, shown[0], *shown[2:])} == {5}
    assert [where[name] for name in (shown[1], *rest)] == [before[name] for name in (shown[1], *rest)]


def test_undo_brings_collected_images_back_into_the_list(reviewing):
    window = reviewing("like/20,21")
    searched(window)
    shown = titles(window.thumbs(1))
    window.page.get_by_role("button", name="belong with the examples").click()
    window.page.keyboard.press("ArrowUp")  # the last entry: a new cluster
    window.page.locator("dialog li.fresh").click()
    window.answer("found")
    window.page.wait_for_function("document.querySelector('.lead').textContent.includes('collected in found')")
    window.press("u", "u")  # the name, then the split
    window.page.wait_for_function("document.querySelector('.lead').textContent === 'Like 2 images.'")
    searched(window)
    assert titles(window.thumbs(1)) == shown


def test_an_address_without_images_is_answered(reviewing):
    window = reviewing("like/")
    assert window.page.locator(".lead").inner_text() == "Choose images on any screen and press F."
