"""A real Chromium, opened on a real report from its file."""

import os
import shutil
from pathlib import Path

import pytest

from helpers.chromium import DESKTOP, FLAGS, PATIENCE
from helpers.reviewed import windows
from helpers.runs import folder_run
from helpers.served import serving
from propos.review.report import write_report
from propos.runs import Run


def chromium():
    """Return the system's Chromium, or skip with the reason."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    return found


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    return write_report(folder_run(tmp_path_factory.mktemp("browser")))


@pytest.fixture(scope="session")
def playwright():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    executable = chromium()
    with sync_api.sync_playwright() as driver:
        yield driver, executable


@pytest.fixture(scope="session")
def browser(playwright):
    driver, executable = playwright
    browser = driver.chromium.launch(executable_path=executable, args=FLAGS, timeout=PATIENCE)
    yield browser
    browser.close()


class Watched:
    """A page, with everything it complains of and asks for."""

    def __init__(self, page, address):
        self.page, self.address = page, address
        self.complaints, self.requests = [], []
        page.on("console", lambda message: self._heard(message))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: (self.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))

    def _heard(self, message):
        # Software WebGL remarks on its own slowness; that is no fault of the page.
        if message.type in ("error", "warning") and "GPU stall" not in message.text:
            self.complaints.append(message.text)

    def go(self, route=""):
        self.page.goto(f"{self.address}#/{route}")
        self.page.wait_for_selector("h1")
        return self.page

    def check(self):
        assert self.complaints == []
        report, photos = self.address.rsplit("/", 1)[0], self.address.rsplit("/", 3)[0] + "/photos/"
        elsewhere = [url for url in self.requests if not url.startswith((report, photos, "data:", "blob:"))]
        assert elsewhere == []


@pytest.fixture
def open_report(browser, report):
    """Give a function that opens the report; at the end no page may have complained or asked for anything else."""
    opened, contexts = [], []

    def open_it(route="", viewport=DESKTOP, used=browser, **options):
        contexts.append(used.new_context(viewport=viewport, **options))
        contexts[-1].set_default_timeout(PATIENCE)
        opened.append(Watched(contexts[-1].new_page(), Path(report).as_uri()))
        return opened[-1].go(route)

    yield open_it
    for watched in opened:
        watched.check()
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def made(report):
    return Run.open(Path(report).parents[1])


@pytest.fixture
def folder(made, tmp_path):
    """A run folder of one's own; its images lie where they were."""
    return shutil.copytree(made.path, tmp_path / "run")


@pytest.fixture
def from_file(browser, folder):
    with windows(browser, (folder / "report" / "index.html").as_uri()) as open_it:
        yield open_it


@pytest.fixture(params=[pytest.param("file", marks=pytest.mark.full), "server"])
def reviewing(request, browser, folder):
    """Give the function for the page as a file, and for the page that the server gives out."""
    if request.param == "file":
        with windows(browser, (folder / "report" / "index.html").as_uri()) as open_it:
            yield open_it
    else:
        with serving(folder) as address, windows(browser, address) as open_it:
            yield open_it
