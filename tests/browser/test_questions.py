"""The questions that teach most, answered on the page: a block for each two clusters, by keys, buttons and taps."""

import json

import numpy as np
import pytest

from helpers.chromium import PHONE
from helpers.command import command
from helpers.reviewed import titles


def asked_about(folder, path, capsys):
    """Return the output of `propos ask`: image, its cluster, the other likely cluster."""
    assert command(capsys, "ask", folder, "-o", path).code == 0
    return [(row["image"], row["cluster"], row["alternative"]) for row in json.loads(path.read_text(encoding="utf-8"))]


def test_questions_are_answered_by_keys_and_hold_in_the_run(folder, reviewing, tmp_path, capsys):
    asked = asked_about(folder, tmp_path / "asked.json", capsys)
    window = reviewing().press("q")
    page = window.page
    page.wait_for_function("document.querySelector('h1').textContent === 'Most informative images'")
    assert titles(page.locator(".thumb")) == [image for image, _, _ in asked]
    assert page.locator(".lead").inner_text().startswith("100 images to check, in ")
    in_focus = "document.activeElement.title"
    assert page.evaluate(in_focus) == asked[0][0]
    for key, place in (("y", 1), ("o", 2), ("j", 3)):
        window.press(key)
        assert page.evaluate(in_focus) == asked[place][0]  # the next one
    window.press("m").answer("5")
    window.press("o", "u")  # the last answer is taken back
    assert window.seen() == "4 of 201 reviewed"
    assert titles(page.locator(".thumb")) == [image for image, _, _ in asked[4:]]
    low = min(asked[4][1:])
    page.get_by_role("button", name=f"belong in Cluster {low}", exact=False).first.click()  # all of the block
    rest = len(asked) - page.locator(".thumb").count()
    corrected = window.hand_over(folder, tmp_path / "edits.jsonl", capsys)
    where = dict(zip(corrected.table.images, corrected.table.cluster.tolist(), strict=True))
    first, second, _, fourth = asked[:4]
    assert [where[image] for image, _, _ in asked[:4]] == [first[1], second[2], -1, 5]
    assert {where[image] for image, _, _ in asked[4:rest]} == {low}
    assert {frozenset(pair) for _, *pair in asked[4:rest]} == {frozenset(asked[4][1:])}
    confirmed = {corrected.table.images[row] for row in np.flatnonzero(corrected.confirmed)}
    assert confirmed == {first[0], second[0], fourth[0], *(image for image, _, _ in asked[4:rest])}


ANSWER_ALL = "for (let yes; (yes = document.querySelector('.block .head button')) !== null; ) yes.click()"


def test_what_lies_between_two_clusters_is_one_block_wherever_it_is(folder, reviewing, tmp_path, capsys):
    pairs = [frozenset(pair) for _, *pair in asked_about(folder, tmp_path / "asked.json", capsys)]
    page = reviewing("questions").page
    links = "all => all.map(block => [...block.querySelectorAll('h2 a')].map(a => Number(a.hash.split('/')[2])))"
    blocks = page.locator(".block").evaluate_all(links)
    assert [frozenset(pair) for pair in blocks] == list(dict.fromkeys(pairs))
    both = page.locator(".block", has=page.locator(".asked + .asked")).first  # images of the one and of the other
    names = [text.removeprefix("●") for text in both.locator("h2 a").all_inner_texts()]
    many = both.locator(".thumb").count()
    now = [text.replace("●", "") for text in both.locator(".now").all_inner_texts()]
    assert sorted(now) == sorted(f"Now in {name}" for name in names)
    whole = [f"All {many} are in the right cluster", *(f"All {many} belong in {name}" for name in names)]
    assert both.locator(".head button:visible").all_inner_texts() == whole


def test_undo_brings_the_focus_back_to_what_was_undone(reviewing):
    window = reviewing("questions")
    first = titles(window.page.locator(".block").first.locator(".thumb"))
    window.press(*"y" * len(first))
    beyond = window.in_focus()
    assert beyond not in first  # the next block came
    window.press("u")
    assert window.in_focus() == first[-1]
    window.press("u")
    assert window.in_focus() == first[-2]
    window.press("y", "y")
    assert window.in_focus() == beyond
    window.page.locator(".block .head button").first.click()
    assert window.in_focus() not in (*first, beyond)
    window.press("u")  # of many at once: the first of them
    assert window.in_focus() == beyond


def test_when_all_is_answered_the_page_says_how_to_go_on(folder, reviewing):
    window = reviewing("questions")
    page = window.page
    before = set(titles(page.locator(".thumb")))
    when = page.locator(".when")
    assert when.inner_text().startswith("They were selected when this page was written")
    page.evaluate(ANSWER_ALL)
    assert when.is_hidden()
    assert page.locator(".lead").inner_text() == "Nothing left to check."
    assert page.locator("pre").first.inner_text() == f"propos run --from {folder}"
    assert window.seen() == "100 of 201 reviewed"
    if not window.served:
        assert page.locator("pre").last.inner_text() == f"propos report {folder}"
        return
    page.wait_for_function("document.querySelector('.where').textContent === 'Saved'")
    page.get_by_role("button", name="Select other images").click()
    page.wait_for_selector(".thumb")
    after = titles(page.locator(".thumb"))
    assert len(after) == 100
    assert not before & set(after)
    assert when.is_hidden()  # these know of the answers


def test_only_a_question_has_another_cluster_to_answer_with(from_file):
    window = from_file("questions")
    page = window.page
    window.go("review")  # where nothing says which cluster the other one is
    page.locator(".thumb").first.click(modifiers=["Control"])
    assert page.locator(".chosen-count").inner_text() == "1 image chosen"
    assert page.get_by_role("button", name="To the other").is_hidden()
    page.keyboard.press("o")
    assert window.seen() == "0 of 201 reviewed"
    assert page.locator(".chosen-count").inner_text() == "1 image chosen"


def test_questions_are_answered_by_taps_on_a_phone(from_file):
    window = from_file("questions", viewport=PHONE)
    page = window.page
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    other = page.locator(".block").first.locator("h2 a").nth(1).get_attribute("href")
    image = titles(page.locator(".thumb").first)[0]
    page.get_by_role("button", name="Choose", exact=True).click()
    page.locator(".thumb").first.click()
    page.get_by_role("button", name="To the other").click()
    assert window.seen() == "1 of 201 reviewed"
    window.go(other.removeprefix("#/"))
    assert image in window.names()
    page.get_by_title(image, exact=True).last.click()
    assert page.locator(".chosen-count").inner_text() == "1 image chosen"
    assert page.get_by_role("button", name="To the other").is_hidden()  # it is there


@pytest.mark.full
def test_a_question_between_clusters_that_are_one_by_now_asks_only_whether_it_is_there(reviewing):
    window = reviewing("questions")
    page = window.page
    own, other = (page.locator(".block").first.locator("h2 a").nth(side).get_attribute("href") for side in (0, 1))
    window.go(other.removeprefix("#/")).press("g").answer(own.rsplit("/", 1)[1])
    window.go("questions")
    alone = (
        page.locator(".block")
        .filter(has=page.locator(f"h2 a[href='{own}']"))
        .filter(has_not=page.locator("h2 >> nth=1"))
    )
    assert alone.count() == 1
    assert alone.locator(".head button:visible").count() == 1
