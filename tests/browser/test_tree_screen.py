"""The tree of clusters on the page: a slider, keys and taps; a cut is saved, undone and exported."""

import csv
import json

import pytest

from helpers.chromium import PHONE
from helpers.command import command
from propos.runs import Run

LEAD = "words => document.querySelector('.lead').textContent.startsWith(words)"


def items(window):
    """Return the ids of the clusters on the screen, by the links to them."""
    links = window.page.locator(".tree a").evaluate_all("all => all.map(each => each.hash)")
    return sorted(int(link.rsplit("/", 1)[1]) for link in links)


def wait_for(window, words):
    window.page.wait_for_function(LEAD, arg=words)


@pytest.fixture
def tree(folder):
    return Run.open(folder).tree()


def test_the_slider_cuts_all_clusters_and_undo_brings_them_back(folder, tree, reviewing, tmp_path, capsys):
    window = reviewing("tree")
    assert items(window) == list(range(10))
    slider = window.page.locator("#granularity")
    assert (slider.get_attribute("min"), slider.get_attribute("max")) == ("1", str(len(tree.leaves)))
    slider.fill("4")
    wait_for(window, "4 clusters")
    window.page.wait_for_function("document.querySelectorAll('.tree a').length === 4")
    coarse = items(window)
    slider.fill("15")
    window.page.wait_for_function("document.querySelectorAll('.tree a').length === 15")
    window.page.locator("h1").click()
    window.press("u")
    window.page.wait_for_function("document.querySelectorAll('.tree a').length === 4")
    assert items(window) == coarse
    corrected = window.hand_over(folder, tmp_path / "edits.jsonl", capsys)
    joined, _ = tree.cut(tree.root, [node for node, _, _ in tree.merges[-3:]])
    assert sorted(set(joined.values())) == coarse
    assert corrected.table.cluster.tolist() == [joined[tree.leaves[leaf]] for leaf in tree.leaf.tolist()]
    assert command(capsys, "export", folder, "--to", "csv", "-o", tmp_path / "labels.csv").code == 0
    with (tmp_path / "labels.csv").open(newline="") as file:
        assert {int(row["cluster"]) for row in csv.DictReader(file)} == set(coarse)


def test_keys_divide_join_and_name_single_branches(folder, tree, reviewing, tmp_path, capsys):
    window = reviewing("tree")
    window.page.locator(".tree li").first.focus()
    window.press("r").answer("all digits")
    cluster = next(each for each in range(10) if each in tree.children)
    row = window.page.locator(".tree li", has=window.page.locator(f"a[href='#/cluster/{cluster}']"))
    row.focus()
    window.press("ArrowRight")
    window.page.wait_for_function("document.querySelectorAll('.tree a').length === 11")
    assert set(items(window)) == {*range(10), *tree.children[cluster]} - {cluster}
    window.press("ArrowRight")  # to its first part
    window.press("ArrowLeft")  # and back
    window.press("ArrowLeft")  # joins it
    window.page.wait_for_function("document.querySelectorAll('.tree a').length === 10")
    assert items(window) == list(range(10))
    window.press("ArrowRight", "ArrowRight", "r")
    window.answer("first part")
    corrected = window.hand_over(folder, tmp_path / "edits.jsonl", capsys)
    names = [edit.name for edit in Run.open(folder).edits.edits if edit.op == "rename"]
    assert names == ["all digits", "first part"]
    assert corrected.names()[tree.children[cluster][0]] == "first part"
    assert cluster not in corrected.names()


def test_on_a_phone_taps_divide_and_join(reviewing):
    window = reviewing("tree", viewport=PHONE, profile="phone")
    window.page.get_by_role("button", name="Divide", exact=False).first.click()
    window.page.wait_for_function("document.querySelectorAll('.tree a').length === 11")
    assert window.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    window.page.get_by_role("button", name="As trained: 10").click()
    window.page.wait_for_function("document.querySelectorAll('.tree a').length === 10")


def test_confirmed_images_are_to_be_reviewed_again_when_their_cluster_is_divided(reviewing, tree):
    cluster = next(each for each in range(10) if each in tree.children)
    window = reviewing(f"cluster/{cluster}").press("Shift+C")
    if window.page.locator("dialog").count():
        window.page.locator("dialog .main").click()
    before = window.seen()
    window.go("tree")
    window.page.locator(".tree li", has=window.page.locator(f"a[href='#/cluster/{cluster}']")).focus()
    window.press("ArrowRight")
    window.page.wait_for_function("before => document.querySelector('.seen').textContent !== before", arg=before)
    assert window.page.locator(".said").inner_text().endswith("to be reviewed again")
    window.press("u")
    window.page.wait_for_function("before => document.querySelector('.seen').textContent === before", arg=before)


def test_a_cut_from_a_file_is_applied_and_its_clusters_are_continued(folder, tree, tmp_path, capsys):
    opened = [node for node, _, _ in tree.merges[-2:]]
    line = {"v": 1, "id": "c1", "op": "cut", "node": tree.root, "open": opened}
    (tmp_path / "edits.jsonl").write_text(json.dumps(line) + "\n")
    assert command(capsys, "apply", folder, tmp_path / "edits.jsonl").code == 0
    assert len(Run.open(folder).corrected.clusters) == 3
    assert command(capsys, "report", folder).code == 0
    assert Run.open(folder).tree().merges == tree.merges
