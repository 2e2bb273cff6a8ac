"""Corrections made on the page, from its file and through the server: shown at once, kept, and taken in by the run."""

import json
import random
import shutil
from contextlib import contextmanager

import numpy as np
import pytest

from helpers.chromium import DESKTOP, PATIENCE, PHONE
from helpers.command import command
from helpers.runs import folder_run
from helpers.served import serving
from propos.report import write_report
from propos.runs import Run, parse_edits
from propos.runs.corrections import replay
from propos.runs.edits import OPERATIONS

EVIL_NAME = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    run = folder_run(tmp_path_factory.mktemp("review"))
    write_report(run)
    return run


class Reviewed:
    """A window on a run's page."""

    def __init__(self, context, address):
        self.address = address
        self.complaints = []
        self.page = context.new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))

    @property
    def served(self):
        return self.address.startswith("http:")

    def go(self, route):
        self.page.goto(f"{self.address}#/{route}")
        self.page.wait_for_selector("h1")
        return self

    def thumbs(self, gallery=-1):
        return self.page.locator(".gallery").nth(gallery).locator(".thumb")

    def names(self):
        """The names of the images in the last list of the screen."""
        return titles(self.thumbs())

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        return self

    def answer(self, text):
        self.page.locator("dialog input, dialog textarea").first.fill(text)
        return self.press("Enter")

    def size(self, cluster):
        """How many images a cluster's card speaks of; None where there is no card."""
        self.go("overview")
        card = self.page.locator(f"li[data-cluster='{cluster}'] .pair span")
        return int(card.first.inner_text().split()[0]) if card.count() else None

    def seen(self):
        return self.page.locator(".seen").inner_text()

    def download(self, path):
        with self.page.expect_download() as started:
            self.page.get_by_role("button", name="Download").click()
        started.value.save_as(path)
        self.press("Escape")
        return path

    def hand_over(self, folder, path, capsys):
        """Have the run know what was done: it is saved already, or is downloaded and applied."""
        if self.served:
            self.page.wait_for_function("document.querySelector('.where').textContent === 'Saved'")
        else:
            assert command(capsys, "apply", folder, self.download(path)).code == 0
        return Run.open(folder).corrected


def titles(thumbs):
    return thumbs.evaluate_all("all => all.map(each => each.title)")


@pytest.fixture
def folder(made, tmp_path):
    """A run folder of one's own; its images lie where they were."""
    return shutil.copytree(made.path, tmp_path / "run")


@contextmanager
def windows(browser, address):
    """Give a function that opens a window on the page, all in one browser profile unless another is named."""
    contexts, opened = {}, []

    def open_it(route="overview", viewport=DESKTOP, profile="one"):
        if profile not in contexts:
            contexts[profile] = browser.new_context(viewport=viewport, accept_downloads=True)
            contexts[profile].set_default_timeout(PATIENCE)
        opened.append(Reviewed(contexts[profile], address))
        return opened[-1].go(route)

    yield open_it
    for window in opened:
        assert window.complaints == []
    for context in contexts.values():
        context.close()


@pytest.fixture
def from_file(browser, folder):
    with windows(browser, (folder / "report" / "index.html").as_uri()) as open_it:
        yield open_it


@pytest.fixture(params=["file", "server"])
def reviewing(request, browser, folder):
    """Give the function for the page as a file, and for the page that the server gives out."""
    if request.param == "file":
        with windows(browser, (folder / "report" / "index.html").as_uri()) as open_it:
            yield open_it
    else:
        with serving(folder) as address, windows(browser, address) as open_it:
            yield open_it


def sizes(run):
    return np.bincount(run.table.cluster, minlength=10)


def test_a_name_stays_text_and_is_shown_everywhere(reviewing):
    window = reviewing("cluster/3").press("r").answer(EVIL_NAME)
    assert EVIL_NAME in window.page.locator("h1").inner_text()
    window.go("overview")
    assert EVIL_NAME in window.page.locator("li[data-cluster='3'] h2").inner_text()
    window.go("map")
    assert any(EVIL_NAME in text for text in window.page.locator(".keys button").all_inner_texts())
    assert window.page.locator("script").count() == 2  # the page's own


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
    assert window.seen() == "3 of 201 looked at"
    assert window.size(3) == sizes(made)[3] - 3
    assert window.size(7) == sizes(made)[7] + 3


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
    window.press("s")  # becomes 10
    window.thumbs().nth(0).focus()
    window.press("j")
    window.thumbs().nth(0).focus()
    window.press("m").answer("5")
    window.go("cluster/8").press("g").answer("9")
    window.go("cluster/4").press("Shift+C")
    window.go("cluster/6").press("Shift+J").press("u", "u", "Shift+U")
    corrected = window.hand_over(folder, tmp_path / "edits.jsonl", capsys)
    names = corrected.table.images
    where = dict(zip(names, corrected.table.cluster.tolist(), strict=True))
    assert [where[name] for name in three[:4]] == [10, 10, -1, 5]
    cluster = {each.id: each for each in corrected.clusters}
    assert (cluster[3].name, cluster[3].description) == ("threes", "round\nabove")
    assert 8 not in cluster
    assert len(cluster[9].members) == sizes(made)[8] + sizes(made)[9]
    assert len(cluster[6].members) == sizes(made)[6]
    four = {names[row] for row in np.flatnonzero(made.table.cluster == 4)}
    assert {names[row] for row in np.flatnonzero(corrected.confirmed)} == {*three[:2], three[3], *four}
    shown = {each: window.size(each) for each in (*range(11), -1)}
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
    assert window.page.locator(".where .warn").inner_text() == "Not kept here"
    assert window.complaints == []
    context.close()


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_review_fits_its_width_and_shrinks_as_images_are_confirmed(reviewing, viewport):
    window = reviewing("review", viewport=viewport)
    assert window.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    shown = window.thumbs(0).evaluate_all("all => all.map(each => +each.ariaLabel.split('confidence ')[1])")
    assert shown == sorted(shown)
    window.page.get_by_role("button", name="Confirm these").first.click()
    assert window.page.locator(".seen").inner_text() == f"{len(shown)} of 201 looked at"
    # By touch: choosing is a mode, and the bar has what keys do.
    window.page.get_by_role("button", name="Choose", exact=True).click()
    window.thumbs(0).nth(0).click()
    window.thumbs(0).nth(1).click()
    assert window.page.locator(".chosen-count").inner_text() == "2 images chosen"
    assert window.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    window.page.locator(".doing").get_by_role("button", name="Junk").click()
    assert window.page.locator(".seen").inner_text() == f"{len(shown) + 2} of 201 looked at"


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
    assert page.locator(".seen").inner_text() == "1 of 201 looked at"
    assert page.evaluate("document.activeElement.classList.contains('thumb')")  # the place is kept
    window.press("ArrowRight", "Enter")
    page.wait_for_selector("dialog.viewer")
    window.press("j")
    assert page.locator(".seen").inner_text() == "2 of 201 looked at"
    window.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    window.press("?")
    page.wait_for_selector("dialog.help")
    window.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    window.press("n")
    page.wait_for_function("location.hash === '#/cluster/4'")
    window.press("w")
    page.wait_for_function("document.querySelector('h1').textContent === 'Worst first'")


def asked_about(folder, path, capsys):
    """What `propos ask` says of the run: image, where it is, where else it may belong."""
    assert command(capsys, "ask", folder, "-o", path).code == 0
    return [(row["image"], row["cluster"], row["alternative"]) for row in json.loads(path.read_text(encoding="utf-8"))]


def test_questions_are_answered_by_keys_and_hold_in_the_run(folder, reviewing, tmp_path, capsys):
    asked = asked_about(folder, tmp_path / "asked.json", capsys)
    window = reviewing().press("q")
    page = window.page
    page.wait_for_function("document.querySelector('h1').textContent === 'What would teach most'")
    assert titles(page.locator(".thumb")) == [image for image, _, _ in asked]
    assert page.locator(".lead").inner_text().startswith("100 images to answer for, in ")
    in_focus = "document.activeElement.title"
    assert page.evaluate(in_focus) == asked[0][0]
    for key, place in (("y", 1), ("o", 2), ("j", 3)):
        window.press(key)
        assert page.evaluate(in_focus) == asked[place][0]  # the next one
    window.press("m").answer("5")
    window.press("o", "u")  # the last answer is taken back
    assert window.seen() == "4 of 201 looked at"
    assert titles(page.locator(".thumb")) == [image for image, _, _ in asked[4:]]
    page.locator(".block .head button").nth(1).click()  # all of the block belong to the other cluster
    rest = len(asked) - page.locator(".thumb").count()
    corrected = window.hand_over(folder, tmp_path / "edits.jsonl", capsys)
    where = dict(zip(corrected.table.images, corrected.table.cluster.tolist(), strict=True))
    first, second, _, fourth = asked[:4]
    assert [where[image] for image, _, _ in asked[:4]] == [first[1], second[2], -1, 5]
    assert [where[image] for image, _, _ in asked[4:rest]] == [other for _, _, other in asked[4:rest]]
    confirmed = {corrected.table.images[row] for row in np.flatnonzero(corrected.confirmed)}
    assert confirmed == {first[0], second[0], fourth[0], *(image for image, _, _ in asked[4:rest])}


ANSWER_ALL = "for (let yes; (yes = document.querySelector('.block .head button')) !== null; ) yes.click()"


def test_when_all_is_answered_the_page_says_how_to_go_on(reviewing):
    window = reviewing("questions")
    page = window.page
    before = set(titles(page.locator(".thumb")))
    page.evaluate(ANSWER_ALL)
    assert page.locator(".lead").inner_text() == "Nothing is asked any longer."
    assert "propos run --from run" in page.locator("pre").first.inner_text()
    assert window.seen() == "100 of 201 looked at"
    if not window.served:
        assert page.locator("pre").last.inner_text() == "propos report run"
        return
    page.wait_for_function("document.querySelector('.where').textContent === 'Saved'")
    page.get_by_role("button", name="Ask about others").click()
    page.wait_for_selector(".thumb")
    after = titles(page.locator(".thumb"))
    assert len(after) == 100
    assert not before & set(after)


def test_questions_are_answered_by_taps_on_a_phone(from_file):
    window = from_file("questions", viewport=PHONE)
    page = window.page
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    other = page.locator(".block").first.locator("h2 a").nth(1).get_attribute("href")
    image = titles(page.locator(".thumb").first)[0]
    page.get_by_role("button", name="Choose", exact=True).click()
    page.locator(".thumb").first.click()
    page.get_by_role("button", name="To the other").click()
    assert window.seen() == "1 of 201 looked at"
    window.go(other.removeprefix("#/"))
    assert image in window.names()
    page.get_by_title(image, exact=True).last.click()
    assert page.locator(".chosen-count").inner_text() == "1 image chosen"
    assert page.get_by_role("button", name="To the other").is_hidden()  # it is there


def test_a_question_between_clusters_that_are_one_by_now_asks_only_whether_it_is_there(reviewing):
    window = reviewing("questions")
    page = window.page
    own, other = (page.locator(".block").first.locator("h2 a").nth(side).get_attribute("href") for side in (0, 1))
    window.go(other.removeprefix("#/")).press("g").answer(own.rsplit("/", 1)[1])
    window.go("questions")
    alone = page.locator(".block").filter(has=page.locator(f"h2 a[href='{own}']")).filter(has_not_text="or rather")
    assert alone.count() == 1
    assert alone.locator(".head button:visible").count() == 1


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
        case "undo" | "redo":
            return {"edit": rng.choice(meant)}
    return rng.choice([{"images": [*some, "not of this run"]}, {"cluster": one}])


# All at once; edit by edit, as a person makes them; and after a log that begins like it and then goes elsewhere.
REPLAYED = """logs => logs.map(([names, cluster, ids, edits, elsewhere]) => {
  const told = state => [[...state.cluster()], [...state.confirmed], [...state.standingIds()],
                         Object.fromEntries(state.names), Object.fromEntries(state.descriptions)];
  const step = ProposReport.replay(names, cluster, ids, []);
  edits.forEach((_, at) => step.follow(edits.slice(0, at + 1)));
  const changed = ProposReport.replay(names, cluster, ids, elsewhere);
  changed.follow(edits);
  return [ProposReport.replay(names, cluster, ids, edits), step, changed].map(told);
})"""


def test_the_page_applies_edits_as_python_does(from_file):
    logs, expected = [], []
    for seed in range(300):
        rng = random.Random(seed)
        ids = list(range(rng.randint(2, 5)))
        names = [f"{number}.png" for number in range(12)]
        cluster = [rng.choice(ids) for _ in names]
        log = random_log(rng, names, ids, rng.randint(1, 25))
        start = rng.randint(0, len(log))
        others = [edit for edit in random_log(rng, names, ids, 12) if edit["op"] not in ("split", "undo", "redo")]
        other = [{**edit, "id": f"other-{edit['id']}"} for edit in others]
        logs.append([names, cluster, ids, log, [*log[:start], *other]])
        edits = [edit for _, edit in parse_edits("".join(f"{json.dumps(each)}\n" for each in log).encode(), "log")[0]]
        review = replay(names, np.array(cluster, np.int32), np.array(ids), edits)
        said = [{str(key): text for key, text in each.items()} for each in (review.names, review.descriptions)]
        confirmed = review.confirmed.astype(int).tolist()
        expected.append([review.cluster.tolist(), confirmed, sorted(review.standing), *said])
    found = from_file().page.evaluate(REPLAYED, logs)
    for number, (ways, other) in enumerate(zip(found, expected, strict=True)):
        for one in ways:
            one[2].sort()
            assert one == other, logs[number]
