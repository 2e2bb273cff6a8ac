"""The whole way in the browser: from a folder with awkward files to exported labels, without a terminal command."""

import csv
import signal

import pytest

from helpers.chromium import DESKTOP
from helpers.hold import PATIENCE
from helpers.studio import UNREADABLE, StudioServer, photographs
from propos.runs import Run

IMAGES = 48 + 5  # and half of one, which is noticed when it is decoded


@pytest.fixture
def place(tmp_path):
    photographs(tmp_path / "holiday")
    return tmp_path


class Window:
    """A browser window on Studio that notes what it complains of."""

    def __init__(self, browser):
        self.context = browser.new_context(viewport=DESKTOP, accept_downloads=True)
        self.context.set_default_timeout(1000 * PATIENCE)  # it waits for whole commands
        self.page, self.complaints = self.context.new_page(), []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))

    def open(self, server, route=""):
        self.page.goto(f"{server.address.geturl()}#/{route}")
        self.page.wait_for_selector("h1")
        return self.page

    def close(self):
        assert self.complaints == []
        self.context.close()


@pytest.fixture
def window(browser):
    window = Window(browser)
    yield window
    window.close()


def choose_and_start(page):
    page.get_by_role("link", name="New: choose a folder").click()
    page.get_by_role("button", name="holiday", exact=True).click()
    page.wait_for_function("document.querySelectorAll('.samples img').length === 8")
    page.get_by_role("button", name="Use this folder").click()
    page.get_by_text(f"{len(UNREADABLE)} files that cannot be read will be left out").wait_for()
    assert f"{IMAGES + 1} images, colour" in page.locator("main").inner_text()
    page.get_by_label("Number of clusters", exact=True).last.fill("8")
    page.get_by_role("button", name="Start").click()
    page.wait_for_function("location.hash === '#/run/holiday-1'")


def name_and_confirm(page):
    page.get_by_role("link", name="Review", exact=True).click()
    page.wait_for_selector("nav >> text=Map")
    page.locator(".card").first.click()
    page.wait_for_function("location.hash.startsWith('#/cluster/')")
    page.keyboard.press("r")
    page.fill("dialog input", "the first kind")
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+C")
    page.wait_for_function("document.querySelector('.said').textContent.startsWith('Confirmed')")
    page.wait_for_function("document.querySelector('.where').textContent === 'Saved'")


def learn(page):
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("link", name="Learn, export holiday-1").click()
    page.get_by_role("button", name="Learn").click()
    page.wait_for_function("location.hash === '#/run/holiday-2'")


def compare(page):
    page.get_by_text("What changed since holiday-1").click()
    page.wait_for_selector("h1 >> text=holiday-1")


def write_folders(page, place):
    page.get_by_role("button", name="Show what would be written").click()
    page.get_by_text(f"{IMAGES} images would go to {place / 'holiday-sorted'}").wait_for()
    assert not (place / "holiday-sorted").exists()
    page.get_by_role("button", name="Write").click()
    page.get_by_text("Started").wait_for()


def download_table(page, path):
    page.get_by_label("Table (CSV)").check()
    page.get_by_role("button", name="Show what would be written").click()
    page.get_by_role("button", name="Write").click()
    with page.expect_download() as started:
        page.get_by_role("link", name="Download").click()
    started.value.save_as(path)


def stamps(folder):
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}


def check_results(place):
    """Everything was written, once."""
    assert sorted(path.name for path in (place / "runs").iterdir()) == [".studio", "holiday-1", "holiday-2"]
    run = Run.open(place / "runs" / "holiday-2")
    assert "the first kind" in run.corrected.names().values()
    folders = [path.name for path in (place / "holiday-sorted").iterdir() if path.is_dir()]
    assert any(name.startswith("the first kind") for name in folders)
    assert sum(path.is_symlink() for path in (place / "holiday-sorted").rglob("*")) == IMAGES


def test_a_folder_is_clustered_reviewed_learnt_from_and_exported_without_a_command(place, window):
    before = stamps(place / "holiday")
    server = StudioServer(place)
    page = window.open(server)
    choose_and_start(page)
    name_and_confirm(page)
    learn(page)
    compare(page)
    page = window.open(server, "run/holiday-2/export")
    write_folders(page, place)
    page.get_by_text(str(place / "holiday-sorted")).last.wait_for()
    download_table(page, place / "labels.csv")
    page = window.open(server, "run/holiday-2")
    page.get_by_role("link", name="Export").click()
    page.wait_for_function(
        "document.querySelector('#place')?.value.endsWith('/holiday-sorted-2')"
    )  # the first is taken
    server.end()
    check_results(place)
    with (place / "labels.csv").open(newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == IMAGES
    assert stamps(place / "holiday") == before


@pytest.mark.full
def test_a_server_that_is_killed_in_every_step_and_started_again_loses_nothing(place, window):
    server = StudioServer(place)
    page = window.open(server, "new")
    page.get_by_role("button", name="holiday", exact=True).click()
    page.get_by_role("button", name="Use this folder").click()
    page.get_by_text("Inspecting the folder").first.wait_for()
    server.end(signal.SIGKILL)
    page.get_by_text("The server does not respond").first.wait_for()

    restarted = [server]

    def restart(route=""):
        restarted[-1].end(signal.SIGKILL)
        restarted.append(StudioServer(place, port=server.address.port))
        return window.open(restarted[-1], route)

    choose_and_start(restart())
    restarted[-1].wait("holiday-1", "working")
    page = restart("run/holiday-1")  # while it computes
    name_and_confirm(page)
    page = restart("run/holiday-1")  # when an edit was just called saved
    assert "the first kind" in Run.open(place / "runs" / "holiday-1").corrected.names().values()
    page.get_by_text("So far:").wait_for()
    page.goto(f"{restarted[-1].address.geturl()}run/holiday-1/")
    learn(page)
    compare(restart("run/holiday-2"))
    page = restart("run/holiday-2/export")
    write_folders(page, place)
    page = restart("run/holiday-2/export")  # while it is written
    page.get_by_text(str(place / "holiday-sorted")).last.wait_for()
    page = restart("run/holiday-2/predict")
    page.get_by_role("button", name="holiday", exact=True).click()
    page.wait_for_function("document.querySelectorAll('.samples img').length === 8")
    page.get_by_role("button", name="Use this folder").click()
    page.get_by_text("Started").wait_for()
    page = restart("run/holiday-2/predict")  # while it computes
    page.locator(".counts li").first.wait_for()
    assert sum(int(line.rpartition(": ")[2]) for line in page.locator(".counts li").all_inner_texts()) == IMAGES
    restarted[-1].end()
    check_results(place)


def tab_to(page, name):
    """Press Tab until an element of this name has the focus."""
    for _ in range(40):
        page.keyboard.press("Tab")
        active = page.evaluate("document.activeElement.ariaLabel || document.activeElement.textContent")
        if active.strip().startswith(name):
            return
    raise AssertionError(f"Tab does not reach {name}")


def has_focus(page, selector):
    page.wait_for_function("(selector) => document.activeElement.matches(selector)", arg=selector)


@pytest.mark.full
def test_keys_alone_suffice_and_the_focus_is_never_lost(folder, tmp_path, window):
    (tmp_path / "runs").mkdir()
    folder.rename(tmp_path / "runs" / "digits-1")
    (tmp_path / "photos").mkdir()
    server = StudioServer(tmp_path)
    page = window.open(server)
    page.wait_for_selector(".card")
    tab_to(page, "New: choose a folder")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="photos", exact=True).wait_for()
    tab_to(page, "photos")
    page.keyboard.press("ArrowDown")  # the runs
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('#path').value.endsWith('/photos')")
    has_focus(page, ".folders .up")
    tab_to(page, "Use this folder")

    page.goto(f"{server.address.geturl()}#/run/digits-1")
    page.get_by_role("button", name="Move to trash").wait_for()
    tab_to(page, "Move to trash")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog")
    page.keyboard.press("Escape")
    has_focus(page, "button")
    page.keyboard.press("Enter")
    tab_to(page, "Move to trash")  # of the dialog
    page.keyboard.press("Enter")
    page.get_by_text("Nothing here yet").wait_for()
    has_focus(page, "main")
    page.goto(f"{server.address.geturl()}#/trash")
    page.get_by_role("button", name="Restore").wait_for()
    tab_to(page, "Restore")
    page.keyboard.press("Enter")
    page.get_by_text("digits-1 is back among the runs").wait_for()
    has_focus(page, "main")

    page.goto(f"{server.address.geturl()}#/run/digits-1/export")
    page.get_by_role("radio").first.focus()
    page.keyboard.press("ArrowDown")  # a table
    tab_to(page, "Show what would be written")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Write").wait_for()
    has_focus(page, "button:enabled")
    tab_to(page, "Write")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Download").wait_for()
    has_focus(page, "main")
    server.end()


HELD = """const held = new Promise((resolve) => (window.release = resolve)), ask = window.fetch;
window.fetch = async (path, options) => (String(path).startsWith("api/state") && (await held), ask(path, options));"""


@pytest.mark.full
def test_an_export_is_planned_only_once_it_is_known_where_to(folder, tmp_path, window):
    (tmp_path / "runs").mkdir()
    folder.rename(tmp_path / "runs" / "digits-1")
    server = StudioServer(tmp_path)
    window.page.add_init_script(HELD)
    page = window.open(server, "run/digits-1/export")
    plan = page.get_by_role("button", name="Show what would be written")
    assert plan.is_disabled()
    page.evaluate("release()")
    plan.click()
    assert page.input_value("#place").endswith("-sorted")
    server.end()
