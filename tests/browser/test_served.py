"""Corrections made on the page that `propos open` serves: on the disk as they are made, and in every window."""

import shutil

import pytest

from helpers.chromium import PATIENCE
from helpers.runs import folder_run
from helpers.served import Served
from propos.report import write_report
from propos.runs import Run

EVIL_NAME = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    run = folder_run(tmp_path_factory.mktemp("served"))
    write_report(run)
    served = Served(run.path)
    yield served
    if served.process.poll() is None:
        served.end()


@pytest.fixture
def windows(browser, server):
    """Give a function that opens a window; none may complain."""
    context, complaints = browser.new_context(), []
    context.set_default_timeout(PATIENCE)

    def open_it(route, address=None):
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.goto(f"{address or server.address.geturl()}#/{route}")
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


def test_each_correction_is_in_the_log_and_in_the_other_window(server, windows):
    one, two = windows("cluster/3"), windows("cluster/3")
    one.keyboard.press("r")
    choose(one, EVIL_NAME)
    two.wait_for_function("name => document.querySelector('h1').textContent.includes(name)", arg=EVIL_NAME)
    three = titles(two)
    two.locator(".gallery").last.locator(".thumb").nth(0).click(modifiers=["Control"])
    two.keyboard.press("s")  # becomes 10
    one.wait_for_function("before => document.querySelector('.lead').textContent !== before", arg="")
    one.wait_for_function("name => ![...document.querySelectorAll('.thumb')].some(e => e.title === name)", arg=three[0])
    for key, place in (("j", 0), ("m", 0)):
        one.locator(".gallery").last.locator(".thumb").nth(place).focus()
        one.keyboard.press(key)
    choose(one, "5")
    one.goto(f"{server.address.geturl()}#/cluster/8")
    one.wait_for_function("document.querySelector('h1').textContent.includes('Cluster 8')")
    one.keyboard.press("g")
    choose(one, "9")
    one.wait_for_function("location.hash === '#/cluster/9'")
    one.keyboard.press("u")
    one.keyboard.press("Shift+U")
    saved(one)
    corrected = Run.open(server.folder).corrected
    where = dict(zip(corrected.table.images, corrected.table.cluster.tolist(), strict=True))
    assert [where[name] for name in three[:3]] == [10, -1, 5]
    assert corrected.names()[3] == EVIL_NAME
    assert 8 not in corrected.names()
    again = windows("cluster/10")
    assert titles(again) == three[:1]


def test_two_windows_that_split_at_once_get_two_clusters(server, windows):
    one, two = windows("cluster/4"), windows("cluster/6")
    saved(one)
    saved(two)
    names = []
    for page in (one, two):  # neither hears of the other in between
        page.context.set_offline(True)
        names.append(titles(page)[0])
        page.locator(".gallery").last.locator(".thumb").nth(0).focus()
        page.keyboard.press("s")
    one.wait_for_selector(".where .warn")
    one.context.set_offline(False)
    saved(one)
    saved(two)
    corrected = Run.open(server.folder).corrected
    homes = [int(corrected.table.cluster[corrected.table.images.index(name)]) for name in names]
    assert len(set(homes)) == 2
    assert [int((corrected.table.cluster == home).sum()) for home in homes] == [1, 1]


def test_what_a_dead_server_did_not_save_the_next_one_does(server, windows, tmp_path):
    folder = shutil.copytree(server.folder, tmp_path / "run")
    first = Served(folder)
    page = windows("cluster/5", first.address.geturl())
    first.process.kill()
    first.process.communicate()
    page.keyboard.press("r")
    choose(page, "fives")
    page.wait_for_selector(".where .warn")
    assert page.locator(".where .warn").inner_text() == "1 not saved"
    second = Served(folder, first.address.port)
    assert second.address.port == first.address.port
    again = windows("cluster/5", second.address.geturl())  # another token, the same browser
    saved(again)
    second.end()
    assert Run.open(folder).corrected.names()[5] == "fives"


def test_an_original_comes_from_the_server(server, windows):
    page = windows("cluster/0")
    page.locator(".thumb").first.click()
    page.wait_for_function("document.querySelector('dialog img').naturalWidth === 8")
    assert "/original/" in page.locator("dialog img").evaluate("image => image.src")
