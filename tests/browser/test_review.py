"""Corrections made on the page, from its file and through the server: shown at once, kept, and taken in by the run."""

import json
import random
import re

import numpy as np
import pytest

from helpers.chromium import DESKTOP, PATIENCE, PHONE
from helpers.command import command
from helpers.reviewed import Reviewed, titles
from helpers.trees import random_tree
from propos.runs import parse_edits
from propos.runs.corrections import replay
from propos.runs.edits import OPERATIONS, Known, as_line

EVIL_NAME = "<script>alert(1)</script>"


def sizes(run):
    return np.bincount(run.table.cluster, minlength=10)


def test_a_name_stays_text_and_is_shown_everywhere(reviewing):
    window = reviewing("cluster/3").press("r").answer(EVIL_NAME)
    assert EVIL_NAME in window.page.locator("h1").inner_text()
    window.go("overview")
    assert EVIL_NAME in window.page.locator("li[data-cluster='3'] h2").inner_text()
    window.go("map")
    assert any(EVIL_NAME in text for text in window.page.locator(".keys button").all_inner_texts())
    assert window.page.locator("script").count() == 3  # the page's own


def test_moved_images_are_where_they_were_moved_to_at_once(made, reviewing):
    window = reviewing("cluster/3")
    first = window.names()[:3]
    window.thumbs().nth(0).click(modifiers=["Control"])
    window.thumbs().nth(2).click(modifiers=["Shift"])
    assert window.page.locator(".chosen-count").inner_text() == "3 images chosen"
    window.press("m").answer("7")
    assert not set(first) & set(window.names())
    window.go("cluster/7")
    assert set(first) <= set(window.names())
    assert window.seen() == "3 of 201 reviewed"
    assert window.size(3) == sizes(made)[3] - 3
    assert window.size(7) == sizes(made)[7] + 3


@pytest.mark.full
def test_one_cluster_that_is_left_is_called_one(reviewing):
    window = reviewing("overview")
    above = window.page.locator(".brand .quiet")
    assert above.inner_text() == "201 images in 10 clusters"
    for cluster in range(1, 10):
        window.go(f"cluster/{cluster}").press("g").answer("0")
        window.page.wait_for_function("location.hash === '#/cluster/0'")
    assert above.inner_text() == "201 images in 1 cluster"


def test_undo_and_redo_go_back_and_forth(made, reviewing):
    before = sizes(made)
    window = reviewing("cluster/3").press("g").answer("7")
    window.page.wait_for_function("location.hash === '#/cluster/7'")
    assert (window.size(3), window.size(7)) == (None, before[3] + before[7])
    window.press("u")
    assert (window.size(3), window.size(7)) == (before[3], before[7])
    assert window.page.get_by_role("button", name="Undo").is_disabled()
    window.press("Shift+U")
    assert (window.size(3), window.size(7)) == (None, before[3] + before[7])
    window.press("Control+z")
    assert window.size(3) == before[3]


def test_what_was_done_on_the_page_holds_in_the_run(made, folder, reviewing, tmp_path, capsys):
    """Rename, describe, merge, split, move, junk, confirm, undo and redo; download and apply; report; open again."""
    window = reviewing("cluster/3").press("r").answer("threes").press("d")
    window.page.fill("dialog textarea", "round\nabove")
    window.press("Control+Enter")
    three = window.names()
    window.thumbs().nth(0).click(modifiers=["Control"])
    window.thumbs().nth(1).click(modifiers=["Control"])
    window.press("s", "Escape")  # nothing is split off
    window.press("s").answer("")
    window.thumbs().nth(0).focus()
    window.press("j")
    window.thumbs().nth(0).focus()
    window.press("m").answer("5")
    window.go("cluster/8").press("g").answer("9")
    window.go("cluster/4").press("Shift+C").page.locator("dialog .main").click()
    window.go("cluster/6").press("Shift+J").press("u", "u", "Shift+U")
    corrected = window.hand_over(folder, tmp_path / "edits.jsonl", capsys)
    names = corrected.table.images
    where = dict(zip(names, corrected.table.cluster.tolist(), strict=True))
    cluster = {each.id: each for each in corrected.clusters}
    (new,) = cluster.keys() - set(range(10))
    assert [where[name] for name in three[:4]] == [new, new, -1, 5]
    assert (cluster[3].name, cluster[3].description) == ("threes", "round\nabove")
    assert 8 not in cluster
    assert len(cluster[9].members) == sizes(made)[8] + sizes(made)[9]
    assert len(cluster[6].members) == sizes(made)[6]
    four = {names[row] for row in np.flatnonzero(made.table.cluster == 4)}
    assert {names[row] for row in np.flatnonzero(corrected.confirmed)} == {*three[:2], three[3], *four}
    shown = {each: window.size(each) for each in (*range(10), new, -1)}
    assert command(capsys, "report", folder).code == 0
    again = reviewing()
    assert again.page.get_by_role("button", name="Download").count() == 0  # they are in the run
    assert {each: again.size(each) for each in shown} == shown
    fresh = reviewing(profile="another browser")
    assert {each: fresh.size(each) for each in shown} == shown
    fresh.press("u")
    assert fresh.page.locator(".said").inner_text().startswith("Undone: ")


def test_corrections_stay_in_the_browser_and_reach_its_other_windows(from_file):
    one, two = from_file("cluster/3"), from_file("cluster/3")
    one.press("r").answer("threes")
    two.page.wait_for_function("document.querySelector('h1').textContent.includes('threes')")
    two.press("d")
    two.page.fill("dialog textarea", "round")
    two.press("Control+Enter")
    one.page.wait_for_selector(".description")
    one.page.reload()
    assert "threes" in one.page.locator("h1").inner_text()
    assert one.page.get_by_role("button", name="Download").inner_text() == "Download 2"


def test_a_browser_that_keeps_nothing_says_so(browser, folder):
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError') } })"
    )
    window = Reviewed(context, (folder / "report" / "index.html").as_uri()).go("cluster/3").press("r").answer("threes")
    assert "threes" in window.page.locator("h1").inner_text()
    assert window.page.locator(".where .warn").inner_text() == "Not stored in this browser"
    assert window.complaints == []
    context.close()


@pytest.mark.parametrize(
    "viewport", [pytest.param(DESKTOP, id="desktop"), pytest.param(PHONE, id="phone", marks=pytest.mark.full)]
)
def test_the_review_fits_its_width_and_shrinks_as_images_are_confirmed(reviewing, viewport):
    window = reviewing("review", viewport=viewport)
    assert window.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    shown = window.thumbs(0).evaluate_all("all => all.map(each => +each.ariaLabel.split('confidence ')[1])")
    assert shown == sorted(shown)
    window.page.get_by_role("button", name="Confirm these").first.click()
    assert window.page.locator(".seen").inner_text() == f"{len(shown)} of 201 reviewed"
    # By touch: choosing is a mode, and the bar has what keys do.
    window.page.get_by_role("button", name="Choose", exact=True).click()
    window.thumbs(0).nth(0).click()
    window.thumbs(0).nth(1).click()
    assert window.page.locator(".chosen-count").inner_text() == "2 images chosen"
    assert window.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    window.page.locator(".doing").get_by_role("button", name="Junk").click()
    assert window.page.locator(".seen").inner_text() == f"{len(shown) + 2} of 201 reviewed"


LARGE = 4  # a cluster of more images than a block shows


def test_confirming_more_than_is_shown_asks_for_the_number_first_and_offers_to_undo(made, from_file):
    window = from_file("review")
    page, many = window.page, sizes(made)[LARGE]
    block = page.locator(f".block[data-cluster='{LARGE}']")
    every = block.get_by_role("button", name=f"Confirm all {many} images left")
    pictures, button = block.locator(".gallery").bounding_box(), every.bounding_box()
    assert button["y"] >= pictures["y"] + pictures["height"]
    every.click()
    words = page.locator("dialog p").inner_text()
    assert words.startswith(f"{many - block.locator('.thumb').count()} of them are not shown.")
    window.press("Enter")  # a key that is held down
    page.wait_for_selector("dialog", state="detached")
    assert window.seen() == "0 of 201 reviewed"
    every.click()
    page.get_by_role("button", name=f"Confirm {many} images", exact=True).click()
    assert window.seen() == f"{many} of 201 reviewed"
    assert page.locator(".said").inner_text() == f"Confirmed {many} images"
    page.locator(".toast").get_by_role("button", name="Undo").click()
    assert window.seen() == "0 of 201 reviewed"


def test_a_cluster_of_few_images_shows_them_once(from_file):
    window = from_file(f"cluster/{LARGE}")
    shown = window.page.locator("main h2:visible")
    assert {"Typical", "Borderline", "Odd", "All images"} <= set(shown.all_inner_texts())
    window.thumbs().nth(0).click(modifiers=["Control"])
    window.press("s").answer("")
    split = window.page.locator(".said").inner_text().rsplit(" ", 1)[1]
    window.go(f"cluster/{split}")
    assert not {"Typical", "Borderline", "Odd"} & set(shown.all_inner_texts())
    assert "All images" in shown.all_inner_texts()


def test_a_whole_cluster_of_many_images_is_confirmed_or_made_junk_only_when_agreed_to(made, from_file):
    window = from_file(f"cluster/{LARGE}")
    many = sizes(made)[LARGE]
    for key, yes in (("Shift+C", f"Confirm {many} images"), ("Shift+J", f"Mark {many} images as junk")):
        window.press(key, "Escape")
        assert window.seen() == "0 of 201 reviewed"
        window.press(key)
        window.page.get_by_role("button", name=yes, exact=True).click()
        assert window.seen() == f"{many} of 201 reviewed"
        window.press("u")


def test_a_key_pressed_right_after_a_dialog_closes_is_not_lost(from_file):
    page = from_file(f"cluster/{LARGE}").press("Shift+J").page
    page.evaluate(
        """() => {
            document.querySelector("dialog").close();
            document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "J", bubbles: true }));
        }"""
    )
    page.locator("dialog[open]").wait_for(timeout=10_000)


def test_rows_are_full_at_every_size_which_is_remembered(from_file):
    page = from_file("review").page
    lists = f"document.querySelector('.block[data-cluster=\"{LARGE}\"] .gallery')"
    shown = f"[{lists}.children.length, getComputedStyle({lists}).gridTemplateColumns.split(' ').length]"
    before = page.evaluate(shown)
    assert before[0] % before[1] == 0
    page.locator("#size").fill("160")
    page.wait_for_function(f"before => {lists}.children.length !== before", arg=before[0])
    images, columns = page.evaluate(shown)
    assert columns < before[1]
    assert images % columns == 0
    assert page.locator(".thumb").first.bounding_box()["width"] >= 160
    page.set_viewport_size(PHONE)
    page.wait_for_function(
        f"{lists}.children.length === 2 * getComputedStyle({lists}).gridTemplateRows.split(' ').length"
    )
    page.reload()
    assert page.locator("#size").input_value() == "160"


def blocks(page):
    return page.locator(".block").evaluate_all("all => all.map(each => Number(each.dataset.cluster))")


def confidences(page):
    return [
        float(re.search(r"mean confidence (\S+)", text)[1]) for text in page.locator(".block .head p").all_inner_texts()
    ]


@pytest.mark.full
def test_blocks_stay_where_they_are_while_a_person_works(reviewing):
    window = reviewing("review")
    page = window.page
    before, sure = blocks(page), confidences(page)
    assert sure == sorted(sure)
    again = page.get_by_role("button", name="Sort again")
    assert again.is_hidden()
    least = titles(window.thumbs(0))
    window.thumbs(0).nth(0).focus()
    for following in least[1:]:  # the block is surer with each
        window.press("j")
        assert window.in_focus() == following
        if confidences(page)[0] > confidences(page)[1]:
            break
    assert confidences(page)[0] > confidences(page)[1]
    assert blocks(page) == before
    window.press("Shift+C")  # a block that is done goes, and the next comes into focus
    assert blocks(page)[:3] == before[1:4]
    assert window.in_focus() == titles(window.thumbs(0))[0]
    window.press("u")
    assert blocks(page) == before
    again.click()
    assert confidences(page) == sorted(confidences(page))
    assert blocks(page)[0] != before[0]


def test_the_next_image_comes_into_focus_when_several_go(reviewing):
    window = reviewing("review")
    least = titles(window.thumbs(0))
    window.thumbs(0).nth(1).focus()
    window.press("Space", "Shift+ArrowRight", "Shift+ArrowRight", "j")
    assert window.in_focus() == least[4]
    assert titles(window.thumbs(0))[:2] == [least[0], least[4]]
    window.press("Space", "ArrowRight", "ArrowRight", "Space", "j")  # one between them stays
    assert window.in_focus() == least[7]


def test_the_number_of_clusters_follows_what_is_corrected(reviewing):
    window = reviewing()
    facts = window.page.locator(".facts dd")
    asked = facts.nth(1).inner_text()
    assert asked.startswith("10, ")
    window.go("cluster/3").press("g").answer("7")
    assert window.go("overview").page.locator(".facts dd").nth(1).inner_text() == "9, corrected by hand"
    window.press("u")
    assert facts.nth(1).inner_text() == asked


def test_the_keyboard_alone_does_all_of_it(made, reviewing):
    window = reviewing("cluster/3")
    page = window.page
    page.locator("#main").focus()
    for _ in range(40):  # to the first list
        window.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('thumb')"):
            break
    window.press("Space", "Shift+ArrowRight", "Shift+ArrowRight")
    assert page.locator(".chosen-count").inner_text() == "3 images chosen"
    window.press("Escape")
    assert page.locator(".doing").is_hidden()
    window.press("c")  # the one in focus
    assert page.locator(".seen").inner_text() == "1 of 201 reviewed"
    assert page.evaluate("document.activeElement.classList.contains('thumb')")  # the place is kept
    window.press("ArrowRight", "Enter")
    page.wait_for_selector("dialog.viewer")
    window.press("j")
    assert page.locator(".seen").inner_text() == "2 of 201 reviewed"
    window.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    window.press("?")
    page.wait_for_selector("dialog.help")
    window.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    window.press("n")
    page.wait_for_function("location.hash === '#/cluster/4'")
    window.press("w")
    page.wait_for_function("document.querySelector('h1').textContent === 'Least confident first'")


def random_log(rng, names, ids, length):
    """Edits of every kind, each of which may speak of clusters and edits that came before it."""
    known, edits, meant = list(ids), [], []
    for number in range(length):
        op = rng.choice([*OPERATIONS[:-2], *(OPERATIONS[-2:] if meant else [])])
        edit = random_edit(rng, op, rng.sample(names, rng.randint(1, 4)), known, meant)
        edits.append({"v": 1, "id": f"e{number}", "op": op, **edit})
        known += [edit["into"]] if op == "split" else []
        meant += [] if op in ("undo", "redo") else [f"e{number}"]
    return edits


def random_edit(rng, op, some, known, meant):
    one = rng.choice(known)
    match op:
        case "rename":
            return {"cluster": one, "name": rng.choice([None, "a", "b"])}
        case "describe":
            return {"cluster": one, "text": rng.choice([None, "c"])}
        case "merge":
            return {"clusters": rng.choices(known, k=rng.randint(1, 2)), "into": one}
        case "split":
            return {"images": some, "into": max(known) + rng.randint(1, 3)}
        case "move":
            return {"images": some, "into": one}
        case "wrong":
            return {"images": some}
        case "confirm":
            how = rng.choice([{}, {"how": "audited"}, {"how": "reviewed"}])
            return {**rng.choice([{"images": some}, {"cluster": one}]), **how}
        case "cut":
            return {"node": one, "open": rng.sample(known, rng.randint(0, len(known)))}
        case "dismiss":
            return {"proposal": "name-1"}
        case "undo" | "redo":
            return {"edit": rng.choice(meant)}
    return rng.choice([{"images": [*some, "not of this run"]}, {"cluster": one}])


# All at once; edit by edit, as a person makes them; and after a log that begins like it and then goes elsewhere.
REPLAYED = """logs => logs.map(([names, cluster, ids, edits, elsewhere, nodes]) => {
  const tree = nodes === null ? null : new ProposReport.Tree(...nodes);
  const told = state => [[...state.cluster()], [...state.how], [...state.standingIds()],
                         Object.fromEntries(state.names), Object.fromEntries(state.descriptions)];
  const step = ProposReport.replay(names, cluster, ids, [], tree);
  edits.forEach((_, at) => step.follow(edits.slice(0, at + 1)));
  const changed = ProposReport.replay(names, cluster, ids, elsewhere, tree);
  changed.follow(edits);
  return [ProposReport.replay(names, cluster, ids, edits, tree), step, changed].map(told);
})"""


def test_the_page_applies_edits_as_python_does(from_file):
    logs, expected = [], []
    for seed in range(300):
        rng = random.Random(seed)
        ids = list(range(rng.randint(2, 5)))
        names = [f"{number}.png" for number in range(12)]
        cluster = [rng.choice(ids) for _ in names]
        tree = random_tree(rng, cluster, ids) if seed % 3 else None
        known = ids if tree is None else sorted(tree.ids)
        log = random_log(rng, names, known, rng.randint(1, 25))
        start = rng.randint(0, len(log))
        others = [edit for edit in random_log(rng, names, known, 12) if edit["op"] not in ("split", "undo", "redo")]
        other = [{**edit, "id": f"other-{edit['id']}"} for edit in others]
        nodes = None if tree is None else [tree.leaves, tree.merges, tree.leaf.tolist()]
        logs.append([names, cluster, ids, log, [*log[:start], *other], nodes])
        edits = [edit for _, edit in numbered(log)]
        review = replay(names, np.array(cluster, np.int32), np.array(ids), edits, tree)
        said = [{str(key): text for key, text in each.items()} for each in (review.names, review.descriptions)]
        expected.append([review.cluster.tolist(), review.how.tolist(), sorted(review.standing), *said])
    found = from_file().page.evaluate(REPLAYED, logs)
    for number, (ways, other) in enumerate(zip(found, expected, strict=True)):
        for one in ways:
            one[2].sort()
            assert one == other, logs[number]


AFTER = """pairs => pairs.map(([ids, saved, own]) => {
  const { kept, renumbered } = ProposReport.after(new ProposReport.Known(ids, saved), own);
  return [kept, Object.fromEntries(renumbered)];
})"""


def test_the_page_lets_edits_follow_those_of_others_as_python_does(from_file):
    """Two who began with the same clusters: the second's edits, after the first's and after some of its own."""
    pairs, expected = [], []
    for seed in range(200):
        rng = random.Random(seed)
        ids, names = list(range(rng.randint(2, 4))), [f"{number}.png" for number in range(6)]
        theirs = [renamed(edit, "their") for edit in random_log(rng, names, ids, 8)]
        own = random_log(rng, names, ids, 12)
        known = Known(ids)
        saved = known.add_new(numbered(theirs), "theirs")
        saved += known.add_new(numbered(own[: rng.randint(0, 12)]), "own", others=True)
        written = [plain(edit) for edit in saved]
        fresh = known.add_new(numbered(own), "own", others=True)
        now = {edit.id: edit.into for edit in [*saved, *fresh] if edit.op == "split"}
        given = {edit["into"]: now[edit["id"]] for edit in own if edit["op"] == "split"}
        changed = {str(was): id_ for was, id_ in given.items() if was != id_}
        pairs.append([ids, written, own])
        expected.append([[plain(edit) for edit in fresh], changed])
    assert sum(bool(changed) for _, changed in expected) > 30
    assert from_file().page.evaluate(AFTER, pairs) == expected


def renamed(edit, prefix):
    """Give an edit an id of another's log."""
    return {key: f"{prefix}-{value}" if key in ("id", "edit") else value for key, value in edit.items()}


def plain(edit):
    return {key: value for key, value in json.loads(as_line(edit)).items() if key != "at"}


def numbered(edits):
    return parse_edits("".join(f"{json.dumps(edit)}\n" for edit in edits).encode(), "log")[0]
