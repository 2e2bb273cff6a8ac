"""The map: hovering, drawing round images, keys; with WebGL and without."""

import io
import itertools
import math

import numpy as np
import pytest
from PIL import Image

from helpers.chromium import DESKTOP, FLAGS, PATIENCE, PHONE

# A busy machine draws late: what is waited for is frames, not time.
FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
STILL = """() => {
  const place = document.querySelector('.number')?.style.transform;
  window.still = place && place === window.lastPlace ? window.still + 1 : 0;
  window.lastPlace = place;
  return window.still === 20;
}"""

# Whether two clusters' numbers are as far from each other as is wanted, to two of a hundred.
COMES_TO = """wanted => {
  const [one, other] = [...document.querySelectorAll('.number')].map((number) => number.getBoundingClientRect());
  const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];
  const [[x, y], [X, Y]] = [middle(one), middle(other)];
  return Math.abs(Math.hypot(x - X, y - Y) / wanted - 1) < 0.02;
}"""


@pytest.fixture(params=["webgl", pytest.param("canvas", marks=pytest.mark.full)])
def map_page(request, open_report, playwright, browser):
    if request.param == "webgl":
        page = open_report("map", used=browser)
        page.wait_for_selector(".map[data-plot]")
        if page.locator(".map").get_attribute("data-plot") != "webgl":
            pytest.skip("this Chromium has no WebGL")
        yield page
        return
    driver, executable = playwright
    without = driver.chromium.launch(executable_path=executable, args=[*FLAGS, "--disable-3d-apis"], timeout=PATIENCE)
    page = open_report("map", used=without)
    page.wait_for_selector(".map[data-plot=canvas]")
    yield page
    page.close()
    without.close()


def number_at(page, place=0):
    """Where a cluster's number is drawn, among its dots, once the map is drawn and keeps still."""
    page.evaluate("() => { window.still = 0; }")
    page.wait_for_function(STILL)
    box = page.locator(".number").nth(place).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def draw_round(page, x, y, radius, steps=10):
    page.mouse.move(x + radius, y)
    page.mouse.down()
    for step in range(1, steps + 1):
        angle = 2 * math.pi * step / steps
        page.mouse.move(x + radius * math.cos(angle), y + radius * math.sin(angle))
        page.evaluate(FRAMES)
    page.mouse.up()


# For a number of images, the map's size and the reach of its dots: where the outermost square ends, and half the map.
OUTERMOST = """([count, width, height, x, y]) => {
  const points = { x: { length: count }, reach: { x, y }, smallestTile: 40 };
  const tile = ProposReport.tileSide(points, width, height);
  const scale = height / 2 / ProposReport.homeReach(points, width, height);
  return [[x * scale, width / 2], [y * scale, height / 2]].map(([dot, half]) => [Math.ceil(dot / tile) * tile, half]);
}"""


def test_thumbnails_of_the_outermost_images_are_not_cut(open_report):
    page = open_report("map")
    sizes, reaches = [(772, 580), (358, 268), (1_400, 800)], [(1, 1), (1, 0.6), (0.3, 1)]
    for count, size, reach in itertools.product((2, 64, 90, 201, 5_000), sizes, reaches):
        for square, half in page.evaluate(OUTERMOST, [count, *size, *reach]):
            assert square <= half


def show_dots(page):
    page.select_option("#show", "dots")
    page.evaluate(FRAMES)


def test_few_images_are_thumbnails_and_fill_the_map_next_to_its_legend(map_page):
    number_at(map_page)
    assert map_page.locator("#show").input_value() == "thumbnails"
    keys, bar = map_page.locator(".keys").bounding_box(), map_page.locator("footer").bounding_box()
    assert keys["y"] + keys["height"] < bar["y"]
    show_dots(map_page)
    with Image.open(io.BytesIO(map_page.locator(".map").screenshot())) as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)[8:-8, 8:-8]
    drawn = np.abs(pixels - pixels[0, 0]).sum(axis=2) > 30
    height, width = (np.ptp(np.flatnonzero(drawn.any(axis=axis))) for axis in (1, 0))
    assert height * width > 0.7 * drawn.size


@pytest.mark.full
def test_hover_shows_the_image(map_page):
    x, y = number_at(map_page)
    show_dots(map_page)
    for step in range(40):
        map_page.mouse.move(x + 1.5 * step * math.cos(step), y + 1.5 * step * math.sin(step))
        map_page.evaluate(FRAMES)
        if map_page.locator(".tooltip").is_visible():
            break
    text = map_page.locator(".tooltip").inner_text()
    assert "Cluster" in text
    assert ".png" in text


@pytest.mark.full
def test_drawing_round_images_lists_them(map_page):
    x, y = number_at(map_page)
    map_page.click("#lasso")
    draw_round(map_page, x, y, 60)
    map_page.wait_for_selector(".chosen .thumb")
    heading = map_page.locator(".chosen h2").inner_text()
    assert int(heading.split()[0]) == map_page.locator(".chosen .thumb").count() > 0
    assert map_page.locator(".jump").inner_text() == f"{heading} ↓"
    box = map_page.locator(".map").bounding_box()
    draw_round(map_page, box["x"] + 12, box["y"] + 12, 8)  # a corner without dots
    map_page.wait_for_function("document.querySelectorAll('.chosen .thumb').length === 0")
    map_page.keyboard.press("Escape")
    assert map_page.locator("#lasso").get_attribute("aria-pressed") == "false"


def test_what_was_drawn_round_is_split_off_by_a_key(map_page):
    x, y = number_at(map_page)
    map_page.click("#lasso")
    draw_round(map_page, x, y, 60)
    map_page.wait_for_selector(".chosen .thumb")
    names = "all => all.map(each => each.title)"
    drawn = map_page.locator(".chosen .thumb").evaluate_all(names)
    map_page.keyboard.press("s")
    map_page.keyboard.press("Enter")
    plural = "image" if len(drawn) == 1 else "images"
    words, _, new = map_page.locator(".said").inner_text().rpartition(" ")
    assert words == f"Split {len(drawn)} {plural} off as Cluster"
    map_page.goto(map_page.url.split("#")[0] + f"#/cluster/{new}")
    map_page.wait_for_function(f"document.querySelector('h1').textContent.includes('Cluster {new}')")
    assert set(map_page.locator(".gallery").last.locator(".thumb").evaluate_all(names)) == set(drawn)


def apart(page):
    """How far two clusters' numbers are from each other."""
    return math.dist(number_at(page, 0), number_at(page, 1))


@pytest.mark.full
def test_the_map_fills_a_window_of_another_size_as_one_that_began_so(map_page):
    wide = apart(map_page)
    map_page.set_viewport_size(PHONE)
    map_page.reload()
    narrow = apart(map_page)
    assert narrow < 0.9 * wide
    for window, distance in ((DESKTOP, wide), (PHONE, narrow)):
        map_page.set_viewport_size(window)
        map_page.wait_for_function(COMES_TO, arg=distance)


def test_a_thumbnail_shows_and_opens_its_own_image(map_page):
    x, y = number_at(map_page)
    map_page.mouse.move(x + 2, y + 2)
    map_page.wait_for_selector(".tooltip:not([hidden])")
    name = map_page.locator(".tooltip strong").inner_text()
    map_page.mouse.click(x + 2, y + 2)
    assert name in map_page.locator("dialog .facts").inner_text()
    # The pictures are 8 pixels wide; they are shown large enough to see.
    map_page.wait_for_function("document.querySelector('dialog .stage img, dialog .enlarged').clientWidth >= 300")


def test_keys_move_zoom_and_list(map_page):
    number_at(map_page)
    place = "document.querySelector('.number').style.transform"
    before = map_page.evaluate(place)
    map_page.locator(".map").focus()
    map_page.keyboard.press("ArrowRight")
    map_page.keyboard.press("+")
    map_page.wait_for_function(f"before => {place} !== before", arg=before)
    map_page.keyboard.press("0")
    map_page.keyboard.press("Enter")
    map_page.wait_for_selector(".chosen h2")
    assert map_page.locator(".chosen h2").inner_text() == "201 images chosen"


@pytest.mark.full
def test_colours_and_thumbnails_can_be_chosen(map_page):
    number_at(map_page)
    map_page.select_option("#colour", "confidence")
    assert map_page.locator(".keys li").count() == 10
    map_page.select_option("#colour", "label")
    assert map_page.locator(".keys button").first.inner_text().endswith("digit 0")
    map_page.locator(".keys button").first.click()
    assert map_page.locator(".keys button").first.get_attribute("aria-pressed") == "true"
    show_dots(map_page)
