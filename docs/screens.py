"""Take the pictures of docs/report.md and docs/review.md: python docs/screens.py RUN docs/ [NAME …]."""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Playwright, sync_playwright

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
DESKTOP, PHONE = {"width": 1180, "height": 820}, {"width": 390, "height": 780}
REVIEW = {"review": "review", "review-move": "cluster/3", "questions": "questions"}
SCREENS = {"overview": "overview", "map": "map", "cluster": "cluster/3", "problems": "problems", "labels": "labels"}
PATIENCE = 600_000
PLAIN = 0.97  # of a picture's area: what 256 colours cover of one without photographs


def main(run: Path, folder: Path, only: list[str]) -> None:
    address = (run / "report" / "index.html").absolute().as_uri()
    with sync_playwright() as driver:
        browser = launched(driver)
        for scheme, viewport, screens in (
            ("light", DESKTOP, {**SCREENS, **REVIEW, "map-pictures": "map", "training": "training"}),
            ("dark", DESKTOP, {"overview": "overview", "map": "map", "review": "review"}),
            ("light", PHONE, {"overview": "overview", "map": "map", "review": "review"}),
        ):
            context = browser.new_context(viewport=viewport, color_scheme=scheme)
            context.set_default_timeout(PATIENCE)
            for name, route in screens.items():
                if only and name not in only:
                    continue
                page = context.new_page()
                page.goto(f"{address}#/{route}")
                page.wait_for_selector("h1")
                if route == "map":
                    page.wait_for_function("document.querySelector('.number')?.style.transform")
                if route == "map":
                    page.select_option("#show", "thumbnails" if name == "map-pictures" else "dots")
                if route == "review":
                    page.locator(".thumb").nth(1).click(modifiers=["Control"])
                    page.locator(".thumb").nth(3).click(modifiers=["Shift"])
                if name == "review-move":
                    page.locator(".thumb").nth(1).click(modifiers=["Control"])
                    page.keyboard.press("m")
                page.wait_for_timeout(1500)
                kind = "phone" if viewport is PHONE else scheme
                prefix = "" if name in REVIEW else "report-"
                save(page.screenshot(), folder / f"{prefix}{name}{'' if kind == 'light' else '-' + kind}.png")
                page.close()
        browser.close()


def launched(driver: Playwright) -> Browser:
    """Start the system's Chromium."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    executable = next(filter(None, map(shutil.which, names)), None)
    return driver.chromium.launch(executable_path=executable, args=FLAGS, timeout=PATIENCE)


def save(content: bytes, path: Path) -> None:
    """Write a picture with a palette, a third of the size: of its commonest colours, unless it shows photographs."""
    with Image.open(io.BytesIO(content)) as picture:
        full = picture.convert("RGB")
    common = sorted(full.getcolors(full.width * full.height), reverse=True)[:256]
    if sum(count for count, _ in common) < PLAIN * full.width * full.height:
        full.quantize(256, Image.Quantize.MEDIANCUT).save(path, optimize=True)
        return
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in common for part in colour])
    full.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
