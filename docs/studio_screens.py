"""Take the pictures of docs/studio.md: python docs/studio_screens.py docs/. The paths that they show are nobody's."""

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright
from screens import DESKTOP, PATIENCE, PHONE, launched
from sklearn.datasets import load_digits

PHOTOS = Path(__file__).parents[1] / "examples" / "photos.py"
HOME = Path("/tmp/pictures")
FILES, DIGITS = 120, 500


def main(folder: Path) -> None:
    shutil.rmtree(HOME, ignore_errors=True)
    images(HOME)
    command = [sys.executable, "-m", "propos", "studio", str(HOME), "--runs", str(HOME / ".runs"), "--no-browser"]
    with (
        subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as driver,
    ):
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        browser = launched(driver)

        def window(viewport: dict[str, int], scheme: str = "light") -> Page:
            context = browser.new_context(viewport=viewport, color_scheme=scheme)
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            page.goto(found[0])
            page.wait_for_selector("h1")
            return page

        desktop, phone = window(DESKTOP), window(PHONE)
        for page, name in ((desktop, "studio-new"), (phone, "studio-new-phone")):
            choose(page, "photos")
            take(page, folder / f"{name}.png", whole=page is desktop)
        start(desktop, "8")
        desktop.get_by_role("link", name="Review", exact=True).wait_for()
        desktop.get_by_role("link", name="Export", exact=True).click()
        desktop.get_by_role("button", name="Show what would be written").click()
        desktop.get_by_role("button", name="Write").wait_for()
        take(desktop, folder / "studio-export.png", whole=True)
        choose(desktop, "digits")
        start(desktop, "10")
        desktop.wait_for_selector("img.clusters")
        desktop.wait_for_selector(".charts")
        desktop.set_viewport_size({**DESKTOP, "height": 1040})  # without the curves
        take(desktop, folder / "studio-progress.png")
        desktop.set_viewport_size(DESKTOP)
        for page, name in ((desktop, "studio"), (window(DESKTOP, "dark"), "studio-dark")):
            page.get_by_role("link", name="Runs", exact=True).click()
            page.wait_for_selector("progress")
            take(page, folder / f"{name}.png")
        desktop.get_by_role("link", name="Show digits-1").click()
        for name in ("Pause", "Stop now"):
            desktop.get_by_role("button", name=name).click()
        desktop.get_by_role("button", name="Resume").wait_for()
        browser.close()
        server.terminate()
    shutil.rmtree(HOME)


def images(home: Path) -> None:
    """Make two folders of images, and one that is just there."""
    (home / "digits").mkdir(parents=True)
    (home / "letters").mkdir()
    subprocess.run([sys.executable, PHOTOS, home / "photos", str(FILES)], check=True)
    for number, digit in enumerate(load_digits().images[:DIGITS]):
        Image.fromarray((digit * 15.9).astype("uint8")).save(home / "digits" / f"{number:03d}.png")


def choose(page: Page, name: str) -> None:
    """Choose a folder, and wait until it is inspected."""
    page.get_by_role("link", name="New", exact=True).click()
    page.get_by_role("button", name=name, exact=True).click()
    page.wait_for_function("document.querySelectorAll('.samples img').length === 8")
    page.get_by_role("button", name="Use this folder").click()
    page.get_by_role("button", name="Start").wait_for()


def start(page: Page, clusters: str) -> None:
    page.get_by_label("Number of clusters", exact=True).last.fill(clusters)
    page.get_by_role("button", name="Start").click()


def take(page: Page, path: Path, whole: bool = False) -> None:
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(1000)
    with Image.open(io.BytesIO(page.screenshot(full_page=whole))) as picture:
        picture.convert("RGB").quantize(256, Image.Quantize.MEDIANCUT).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
