"""Every screen of a report, in a real browser, from its file."""

import re

import pytest

from helpers.chromium import DESKTOP, PHONE
from helpers.command import command
from helpers.reviewed import windows
from helpers.runs import EVIL
from propos.review.report.name_list import pack_names

SCREENS = {
    "": "Clusters found",
    "map": "Map",
    "cluster/3": "Cluster 3",
    "review": "Least confident first",
    "questions": "Most informative images",
    "problems": "Possible problems",
    "labels": "Comparison with labels",
    "training": "Training",
}


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_screen_opens_and_fits_its_width(open_report, viewport):
    page = open_report(viewport=viewport)
    for route, title in SCREENS.items():
        page.goto(page.url.split("#")[0] + f"#/{route}")
        page.wait_for_function("title => document.querySelector('h1')?.textContent.includes(title)", arg=title)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, route
        tab = page.locator("nav [aria-current]").bounding_box()
        assert tab["x"] >= 0, route
        assert tab["x"] + tab["width"] <= viewport["width"], route


def test_sizes_and_settings_stand_on_the_overview(open_report):
    page = open_report()
    assert page.locator(".card").count() == 10
    sizes = [int(re.search(r"(\d+) image", text)[1]) for text in page.locator(".card").all_inner_texts()]
    assert sum(sizes) == 201
    assert "201 from digits" in page.locator(".settings").inner_text()
    assert "most images are in one cluster" in page.locator(".notes").inner_text()
    assert page.locator(".scores dd").count() == 4


def test_search_finds_a_file_and_says_how_many(open_report):
    page = open_report()
    page.fill("#search", "copy of 0001")
    assert page.locator(".card").count() == 1
    assert page.locator("[role=status]").first.inner_text() == "1 of 10 clusters"
    assert page.locator(".named h2").inner_text() == "1 image by name"
    page.locator(".named .thumb").click()
    assert "copy of 0001" in page.locator("dialog .facts").inner_text()
    page.keyboard.press("Escape")
    page.fill("#search", "nothing is called so")
    assert page.locator(".card").count() == page.locator(".named").count() == 0
    assert page.locator("[role=status]").first.inner_text() == "No matches."


def test_sorting_puts_the_largest_first(open_report):
    page = open_report()
    page.select_option("#order", "largest")
    sizes = [int(re.search(r"(\d+) image", text)[1]) for text in page.locator(".card").all_inner_texts()]
    assert sizes == sorted(sizes, reverse=True)


def test_thumbnails_show_the_images_themselves(open_report):
    page = open_report("cluster/0")
    file = page.locator(".thumb .picture").first.evaluate("e => getComputedStyle(e).backgroundImage")
    assert "sheet-0000.png" in file
    assert (
        page.evaluate(
            "f => new Promise(done => { const i = new Image(); i.onload = () => done(i.naturalWidth); i.src = f })",
            file[5:-2],
        )
        == 8 * 32
    )


def test_a_click_opens_the_original_and_arrows_lead_on(open_report):
    page = open_report("cluster/0")
    page.locator(".thumb").first.click()
    image = page.locator("dialog img")
    image.wait_for()
    assert image.get_attribute("src").startswith("file://")
    page.wait_for_function("document.querySelector('dialog img').naturalWidth === 8")
    before = image.get_attribute("src")
    page.keyboard.press("ArrowRight")
    assert page.locator("dialog img").get_attribute("src") != before
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")


def test_problems_are_listed(open_report):
    page = open_report("problems")
    text = page.locator("main").inner_text()
    assert "notes.txt" in text
    assert "not an image" in text
    twins = page.locator("section", has_text="Exact duplicates").locator(".group").first.locator(".thumb")
    assert twins.count() == 2
    assert "copy of 0001" in " ".join(twins.evaluate_all("all => all.map(e => e.title)"))


def test_a_cell_of_the_matrix_opens_its_images(open_report):
    page = open_report("labels")
    cell = page.locator(".matrix td a").first
    count = int(cell.inner_text())
    cell.click()
    page.wait_for_selector(".cell")
    assert page.locator(".cell .thumb").count() == count


def test_a_correction_changes_only_what_it_touches_of_the_labels(open_report):
    page = open_report("labels")
    cell = page.locator(".matrix td a.strong").first
    count = int(cell.inner_text())
    cell.click()
    page.wait_for_selector(".cell")
    page.evaluate("document.querySelector('.cell').same = true")
    second = page.locator(".cell .thumb").nth(1).get_attribute("title")
    page.locator(".cell .thumb").first.focus()
    page.keyboard.press("j")
    assert page.evaluate("document.querySelector('.cell').same") is True
    assert page.evaluate("document.activeElement.title") == second
    assert page.locator(".cell .thumb").count() == count - 1
    assert page.locator(".matrix [aria-current]").inner_text() == str(count - 1)
    assert "Scores date from when this page was written" in page.locator(".screen").inner_text()
    page.evaluate("document.querySelector('.matrix').same = true")
    page.keyboard.press("c")  # nobody changes place
    assert page.evaluate("document.querySelector('.matrix').same") is True


def test_training_draws_what_the_history_holds(open_report):
    page = open_report("training")
    assert page.locator(".chart h2").all_inner_texts() == [
        "Losses", "Spread of the embeddings", "Scores", "Images that moved", "Balance", "Cluster sizes"
    ]  # fmt: skip
    assert "Accuracy from 0.60 to 0.90" in page.locator(".chart svg[role=img]").nth(2).get_attribute("aria-label")


def test_a_run_that_trained_nothing_has_no_training_screen(browser, folder, capsys):
    history = folder / "history.jsonl"
    history.write_text(history.read_text().splitlines(keepends=True)[0])
    assert command(capsys, "report", folder).code == 0
    with windows(browser, (folder / "report" / "index.html").as_uri()) as open_it:
        page = open_it("training").page
        assert page.locator("h1").inner_text() == "Clusters found"
        assert "Training" not in page.locator("nav").inner_text()


def test_a_name_that_is_markup_stays_text(open_report):
    page = open_report("cluster/0")
    for number in range(10):
        page.goto(page.url.split("#")[0] + f"#/cluster/{number}")
        page.wait_for_function("n => document.querySelector('h1').textContent.includes(`Cluster ${n}`)", arg=number)
        evil = page.get_by_title(EVIL)
        if evil.count():
            break
    assert evil.count() >= 1
    evil.last.click()
    page.wait_for_selector("dialog")
    assert EVIL in page.locator("dialog .facts").inner_text()
    assert page.locator("img[onerror]").count() == 0


def test_keyboard_alone_reaches_the_content_and_moves_in_a_gallery(open_report):
    page = open_report("cluster/0")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement.id === 'main'")
    page.reload()
    assert page.locator("h1").inner_text() == "Clusters found"
    page.goto(f"{page.url.split('#')[0]}#/cluster/0")
    thumbs = page.locator(".gallery").first.locator(".thumb")
    thumbs.first.focus()
    page.keyboard.press("ArrowRight")
    assert thumbs.nth(1).evaluate("e => e === document.activeElement")
    assert thumbs.first.get_attribute("tabindex") == "-1"
    page.keyboard.press("Control+ArrowRight")  # is the browser's
    assert thumbs.nth(1).evaluate("e => e === document.activeElement")


def test_dark_mode_is_dark(open_report):
    light, dark = (open_report(color_scheme=scheme) for scheme in ("light", "dark"))
    colour = "getComputedStyle(document.body).backgroundColor"
    assert light.evaluate(colour) == "rgb(250, 249, 246)"
    assert dark.evaluate(colour) == "rgb(21, 23, 26)"


@pytest.mark.full
def test_every_picture_and_control_has_a_name(open_report):
    for route in SCREENS:
        page = open_report(route)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll('button, a, select, input, [role=img]')].filter(e =>
                 !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).length"""
        )
        assert nameless == 0, route


def test_the_overview_shows_why_a_number_of_clusters_was_suggested(open_report):
    page = open_report()
    chart = page.locator(".suggestion figure")
    assert chart.locator("h2").inner_text() == "Why 10 clusters"
    assert chart.locator("figcaption").inner_text().endswith("Next best: 11 and 9.")
    # The values at 10, not the last ones.
    assert chart.locator(".legend strong").all_inner_texts() == ["0.46", "0.97"]
    assert "0.46 at 10" in chart.locator("svg[role=img]").get_attribute("aria-label")


def test_a_page_without_another_run_compares_nothing(open_report):
    page = open_report("comparison")
    assert page.locator("h1").inner_text() == "Nothing to compare with"
    assert page.locator("nav a", has_text="Compared").count() == 0


NAMES = """([packed, count, wanted]) => {
  const names = new ProposReport.Names(packed, count);
  names.lookUp(wanted);
  return [Array.from({ length: count }, (_, row) => names.at(row)), wanted.map((name) => names.rowOf(name) ?? null)];
}"""


def test_the_page_spells_out_names_as_they_were_packed(open_report):
    names = [f"{'é' * (row % 7)}{row // 100}/ IMG_{row % 31 + 1:04d}-{row}.jpg" for row in range(300)]
    wanted = [names[299], "of no image", names[64], names[0]]
    assert open_report().evaluate(NAMES, [pack_names(names), 300, wanted]) == [names, [299, None, 64, 0]]
    numbers = [str(row) for row in range(5)]
    wanted = ["4", "5", "04", "1.0", "-1", "x"]
    assert open_report().evaluate(NAMES, [pack_names(numbers), 5, wanted]) == [numbers, [4, *[None] * 5]]


# Ten dots of which five are drawn: a plot that only remembers what it is given.
DRAWN = """() => {
  const heard = [];
  const listener = { hover: (image) => heard.push(image), select: (images) => heard.push(images), view: () => {} };
  const x = Float32Array.from({ length: 10 }, (_, image) => image);
  let given;
  const plot = ProposReport.drawSome({ x, y: x, reach: { x: 9, y: 9 } }, listener, (points, inner) => {
    given = { points, inner, painted: [] };
    return { paint: (codes) => given.painted.push(codes) };
  }, 5);
  const codes = Float32Array.from(x, (image) => 10 * image);
  plot.paint(codes, []);
  plot.paint(codes, []);
  given.inner.hover(4);
  given.inner.hover(null);
  given.inner.select([0, 3]);
  return [[...given.points.x], [...given.painted[0]], given.painted[0] === given.painted[1], heard];
}"""


def test_a_map_of_too_many_dots_draws_an_even_selection_under_the_images_own_numbers(open_report):
    some, painted, again, heard = open_report().evaluate(DRAWN)
    assert some == [0, 2, 4, 6, 8]
    assert painted == [0, 20, 40, 60, 80]
    assert again  # the same object: the plot keeps its index of them
    assert heard == [8, None, [0, 6]]
