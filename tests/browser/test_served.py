"""Several windows on the page that `propos open` serves, and what they do when it ends."""

import json
import signal

import pytest

from helpers.chromium import PATIENCE
from helpers.command import command
from helpers.quick import quick_cases
from helpers.served import Served, serving
from propos.runs import Run

EVIL_NAME = "<script>alert(1)</script>"


@pytest.fixture
def address(folder):
    with serving(folder) as given:
        yield given


@pytest.fixture
def windows(browser):
    """Give a function that opens a window; none may complain."""
    context, complaints = browser.new_context(accept_downloads=True), []
    context.set_default_timeout(PATIENCE)

    def open_it(address, route):
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.goto(f"{address}#/{route}")
        page.wait_for_selector("h1")
        return page

    yield open_it
    assert complaints == []
    context.close()


def saved(page):
    page.wait_for_function("document.querySelector('.where').textContent === 'Saved'")


def choose(page, wanted):
    page.fill("dialog input", wanted)
    page.keyboard.press("Enter")


def titles(page):
    return page.locator(".gallery").last.locator(".thumb").evaluate_all("all => all.map(each => each.title)")


def test_each_correction_is_in_the_log_and_in_the_other_window(folder, address, windows):
    one, two = windows(address, "cluster/3"), windows(address, "cluster/3")
    one.keyboard.press("r")
    choose(one, EVIL_NAME)
    two.wait_for_function("name => document.querySelector('h1').textContent.includes(name)", arg=EVIL_NAME)
    three = titles(two)
    two.locator(".gallery").last.locator(".thumb").nth(0).click(modifiers=["Control"])
    two.keyboard.press("s")
    choose(two, "")
    one.wait_for_function("before => document.querySelector('.lead').textContent !== before", arg="")
    one.wait_for_function("name => ![...document.querySelectorAll('.thumb')].some(e => e.title === name)", arg=three[0])
    for key, place in (("j", 0), ("m", 0)):
        one.locator(".gallery").last.locator(".thumb").nth(place).focus()
        one.keyboard.press(key)
    choose(one, "5")
    one.goto(f"{address}#/cluster/8")
    one.wait_for_function("document.querySelector('h1').textContent.includes('Cluster 8')")
    one.keyboard.press("g")
    choose(one, "9")
    one.wait_for_function("location.hash === '#/cluster/9'")
    one.keyboard.press("u")
    one.keyboard.press("Shift+U")
    one.keyboard.press("Shift+C")
    one.locator("dialog .main").click()
    saved(one)
    seen = one.locator(".seen").inner_text()
    two.wait_for_function("seen => document.querySelector('.seen').textContent === seen", arg=seen)
    two.keyboard.press("u")  # what the other window did
    saved(two)
    assert two.locator(".said").inner_text() == "Undone: Confirmed all of Cluster 9"
    corrected = Run.open(folder).corrected
    where = dict(zip(corrected.table.images, corrected.table.cluster.tolist(), strict=True))
    (new,) = {each.id for each in corrected.clusters} - set(range(10))
    assert [where[name] for name in three[:3]] == [new, -1, 5]
    assert corrected.names()[3] == EVIL_NAME
    assert 8 not in corrected.names()
    again = windows(address, f"cluster/{new}")
    assert titles(again) == three[:1]


@pytest.mark.full
def test_two_windows_that_split_at_once_get_two_clusters(folder, address, windows):
    one, two = windows(address, "cluster/4"), windows(address, "cluster/6")
    names = []
    for page in (one, two):  # neither hears of the other in between
        page.context.set_offline(True)
        names.append(titles(page)[0])
        page.locator(".gallery").last.locator(".thumb").nth(0).focus()
        page.keyboard.press("s")
        choose(page, "")
    one.wait_for_selector(".where .warn")
    one.context.set_offline(False)
    saved(one)
    saved(two)
    corrected = Run.open(folder).corrected
    homes = [int(corrected.table.cluster[corrected.table.images.index(name)]) for name in names]
    assert len(set(homes)) == 2
    assert [int((corrected.table.cluster == home).sum()) for home in homes] == [1, 1]


@pytest.mark.full
def test_what_a_dead_server_did_not_save_can_be_downloaded_and_the_next_one_saves(folder, windows, tmp_path, capsys):
    first = Served(folder)
    page = windows(first.address.geturl(), "cluster/5")
    first.end(signal.SIGKILL)
    page.keyboard.press("r")
    choose(page, "fives")
    page.wait_for_selector(".where .warn")
    assert page.locator(".where .warn").inner_text() == "1 not saved"
    with page.expect_download() as started:
        page.get_by_role("button", name="Download").click()
    started.value.save_as(tmp_path / "edits.jsonl")
    second = Served(folder, first.address.port)
    assert second.address.port == first.address.port
    again = windows(second.address.geturl(), "cluster/5")  # another token, the same browser
    saved(again)
    second.end()
    assert Run.open(folder).corrected.names()[5] == "fives"
    taken = command(capsys, "apply", folder, tmp_path / "edits.jsonl")
    assert taken.out.startswith("0 edits applied (1 was already applied).")


def test_the_page_keeps_what_the_server_refuses_says_why_and_saves_it_once_the_run_is_back(folder, address, windows):
    page = windows(address, "cluster/5")
    away = folder.rename(folder.with_name("renamed"))
    page.wait_for_selector(".where .warn")
    assert page.locator(".where .warn").inner_text() == "Cannot save"
    page.keyboard.press("r")
    choose(page, "fives")
    title = page.locator(".where .warn", has_text="1 not saved").get_attribute("title")
    assert title.startswith(f"{folder}: the run that was opened is no longer here: it was renamed, deleted or replaced")
    assert title.endswith("This browser keeps them until they can be saved.")
    away.rename(folder)
    saved(page)
    assert Run.open(folder).corrected.names()[5] == "fives"


def test_nothing_is_called_saved_that_waits_for_another_answer(folder, address, windows):
    page, held = windows(address, "cluster/5"), []
    page.keyboard.press("r")
    choose(page, "five")
    saved(page)
    with page.expect_request(lambda request: "/api/edits" in request.url):  # as each second
        page.route("**/api/edits*", lambda route: route.continue_() if held else held.append(route))
    page.keyboard.press("r")
    choose(page, "fives")
    assert page.locator(".where").inner_text() == "Saving …"
    held[0].continue_()
    saved(page)
    assert Run.open(folder).corrected.names()[5] == "fives"


@pytest.mark.parametrize("written", quick_cases("after", rest=["before"]))
def test_a_run_of_junk_alone_is_opened_and_undone(folder, windows, capsys, written):
    """Also where the page was written when no cluster was left."""
    lines = (json.dumps({"v": 1, "id": f"e{number}", "op": "junk", "cluster": number}) for number in range(10))
    (folder / "edits.jsonl").write_text("\n".join(lines))
    if written == "after":
        assert command(capsys, "report", folder).code == 0
    with serving(folder) as address:
        page = windows(address, "overview")
        assert page.locator(".brand .quiet").inner_text() == "201 images in 0 clusters"
        for route in ("map", "review", "questions", "problems", "training", "cluster/-1", "cluster/3"):
            page.goto(f"{address}#/{route}")
            page.wait_for_selector("h1")
        page.keyboard.press("u")
        saved(page)
        page.wait_for_function("document.querySelector('.brand .quiet').textContent === '201 images in 1 cluster'")
        page.goto(f"{address}#/cluster/9")
        page.wait_for_function("document.querySelector('h1').textContent.includes('Cluster 9')")
        assert len(titles(page)) > 0
    assert [cluster.id for cluster in Run.open(folder).corrected.clusters] == [9]


BURST = """([from, to]) => {
  for (let made = from; made < to; made++) {
    document.querySelector('.thumb').focus();
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'c', bubbles: true }));
  }
}"""


@pytest.mark.full
def test_a_server_killed_in_a_burst_of_edits_loses_none_that_the_page_calls_saved(folder, windows):
    """The page confirms 200 images, one edit each; what the dead server lacks, the next one gets."""
    first = Served(folder)
    page = windows(first.address.geturl(), "review")
    page.evaluate(BURST, [0, 120])
    page.wait_for_function("document.querySelector('.where').textContent !== 'Saving …'")
    page.evaluate(BURST, [120, 160])
    first.process.kill()  # while they are under way
    page.evaluate(BURST, [160, 200])
    page.wait_for_selector(".where .warn")
    unsaved = int(page.locator(".where .warn").inner_text().split()[0])
    kept = [edit.id for edit in Run.open(folder).edits.edits]
    assert unsaved >= 40
    assert len(kept) >= 200 - unsaved >= 120
    second = Served(folder, first.address.port)
    saved(windows(second.address.geturl(), "review"))
    first.end()
    second.end()
    edits = Run.open(folder).edits.edits
    assert [edit.id for edit in edits[: len(kept)]] == kept
    assert len({edit.images for edit in edits}) == len(edits) == 200


def test_an_original_comes_from_the_server(address, windows):
    page = windows(address, "cluster/0")
    page.locator(".thumb").first.click()
    page.wait_for_function("document.querySelector('dialog img').naturalWidth === 8")
    assert "/original/" in page.locator("dialog img").evaluate("image => image.src")
