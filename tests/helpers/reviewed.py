"""Windows on a run's page, as a person uses them: from its file or through the server."""

from contextlib import contextmanager

from helpers.chromium import DESKTOP, PATIENCE
from helpers.command import command
from propos.runs import Run


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

    def in_focus(self):
        """The name of the image that keys mean."""
        return self.page.evaluate("document.activeElement.title")

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
        """Return the number of images on a cluster's card; None if there is no card."""
        self.go("overview")
        card = self.page.locator(f"li[data-cluster='{cluster}'] .pair span")
        return int(card.first.inner_text().split()[0]) if card.count() else None

    def seen(self):
        return self.page.locator(".seen").inner_text()

    def download(self, path):
        with self.page.expect_download() as started:
            self.page.get_by_role("button", name="Download").click()
        started.value.save_as(path)
        self.downloaded = started.value.suggested_filename, self.page.locator("dialog pre").inner_text()
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
