"""Measure the cost of writing and opening a report of 60,000 images, and of a million points.

Digits are shifted and made noisy until there are enough of them; embeddings are points about ten directions. Seconds
on the clock are given next to seconds of processor time, which other work on the machine does not change.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from propos.config import Config, PixelSettings
from propos.data import cache_side, find_configured, fingerprint
from propos.review.report import write_report
from propos.review.report.layout import lay_out
from propos.runs import ImageTable, Run, RunFolder

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
D, K = 128, 10
PATIENCE = 600_000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=60_000)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--layout", action="store_true", help="time the layout too, instead of scattering at random")
    parser.add_argument("--keep", type=Path, help="write the runs into this folder and leave them there")
    options = parser.parse_args()
    root = options.keep or Path(tempfile.mkdtemp(prefix="propos-report-"))
    for count in (options.images, options.points):
        if count:
            measure(root / str(count), count, options.layout and count == options.images)
    if options.keep is None:
        shutil.rmtree(root)


def measure(root, count, with_layout):
    run = make_run(root, count)
    if with_layout:
        clock, processor = time.perf_counter(), time.process_time()
        place = lay_out(run.embeddings, run.table.cluster, 0)
        say(count, "layout", clock, processor)
        RunFolder(run.path).write_array("map.npy", place.astype(np.float32))
    clock, processor = time.perf_counter(), time.process_time()
    page = write_report(run)
    say(count, "report apart from the layout", clock, processor)
    weight = sum(path.stat().st_size for path in page.parent.iterdir()) / 1e6
    print(f"{count:>9,}  page weight {weight:.1f} MB")
    look(page, count)


def say(count, what, clock, processor):
    seconds, used = time.perf_counter() - clock, time.process_time() - processor
    print(f"{count:>9,}  {what}: {seconds:.1f} s on the clock, {used:.1f} s of processor time", flush=True)


def make_run(root, count):
    root.mkdir(parents=True)
    rng = np.random.default_rng(0)
    digits = load_digits()
    chosen = rng.integers(len(digits.images), size=count)
    images = digits.images[chosen].astype(np.float32) * 15.9 + rng.normal(0, 8, (count, 8, 8)).astype(np.float32)
    np.save(root / "images.npy", np.clip(images, 0, 255).astype(np.uint8))
    cluster = digits.target[chosen].astype(np.int32)
    centres = np.ascontiguousarray(np.linalg.qr(rng.normal(size=(D, K)))[0].T, np.float32)
    embeddings = centres[cluster] + rng.normal(0, 0.05, (count, D)).astype(np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    cosine = np.einsum("nd,nd->n", embeddings, centres[cluster])
    config = Config(source=str(root / "images.npy"), clusters=K, pixels=PixelSettings(mean=(0.3,), std=(0.4,)))
    # Without what its images are known by, the page would be one without pictures.
    known_by = fingerprint(find_configured(config).open(cache_side(config.views)))
    info = {"status": "finished", "source": {"name": "digits", "streamed": False, "fingerprint": known_by}}
    run = RunFolder.create(root / "run", info, config)
    names = [str(number) for number in range(count)]
    confidence = rng.random(count).astype(np.float32)
    run.write_images(ImageTable(names, cluster, confidence, (1 - cosine).astype(np.float32), digits.target[chosen]))
    run.write_array("embeddings.npy", embeddings)
    run.write_array("prototypes.npy", centres)
    circle = 2 * np.pi * cluster / K
    place = 0.5 + 0.3 * np.stack([np.cos(circle), np.sin(circle)], axis=1) + rng.normal(0, 0.03, (count, 2))
    run.write_array("map.npy", np.clip(place, 0, 1).astype(np.float32))
    return Run.open(run.path)


@contextmanager
def new_tab():
    """Give a tab of the system's Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        names = ("chromium-headless-shell", "chromium", "chromium-browser")
        executable = next(filter(None, map(shutil.which, names)), None)
        browser = driver.chromium.launch(executable_path=executable, args=FLAGS, timeout=PATIENCE)
        tab = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        tab.set_default_timeout(PATIENCE)
        yield tab
        browser.close()


def look(page, count):
    """Open the page in the system's Chromium and move the map."""
    with new_tab() as tab:
        tools = tab.context.new_cdp_session(tab)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        tab.goto(page.absolute().as_uri())
        tab.wait_for_selector(".card")
        shown = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime / 1000")
        cards = tab.evaluate("performance.now() / 1000")
        used = metrics(tools)["TaskDuration"]
        print(f"{count:>9,}  first view: painted after {shown:.2f} s, usable by {cards:.2f} s on the clock, "
              f"{used:.2f} s of processor time", flush=True)  # fmt: skip
        tab.goto(page.absolute().as_uri() + "#/map")
        tab.wait_for_function("document.querySelector('.number')?.style.transform")
        tab.wait_for_timeout(1000)
        print(f"{count:>9,}  map opened ({tab.locator('.map').get_attribute('data-plot')}); "
              f"script time a pan frame {1000 * pan(tab, tools):.1f} ms", flush=True)  # fmt: skip


def pan(tab, tools, steps=40):
    """Return the script time, on the processor, of each frame drawn while the map is dragged."""
    tab.evaluate("window.frames_ = 0; (function tick() { window.frames_++; requestAnimationFrame(tick); })()")
    box = tab.locator(".map").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    before, first = metrics(tools)["ScriptDuration"], tab.evaluate("window.frames_")
    for step in range(1, steps + 1):
        tab.mouse.move(x + 4 * step, y + 2 * step)
        tab.wait_for_timeout(16)
    after, last = metrics(tools)["ScriptDuration"], tab.evaluate("window.frames_")
    tab.mouse.up()
    return (after - before) / max(1, last - first)


def metrics(tools):
    return {entry["name"]: entry["value"] for entry in tools.send("Performance.getMetrics")["metrics"]}


if __name__ == "__main__":
    main()
