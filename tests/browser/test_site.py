"""The documentation as a site: built without a warning, whole, and at home in a browser without a network."""

import html.parser
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from helpers.chromium import DESKTOP, PATIENCE, PHONE

pytestmark = pytest.mark.full

pytest.importorskip("mkdocs", reason="the extra docs is not installed")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = ["-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # which speaks of versions to come, not of these pages
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    subprocess.run([sys.executable, ROOT / "docs" / "demo.py", folder, "1"], check=True)
    return folder


class Links(html.parser.HTMLParser):
    """What a page links to, what it loads, and what can be linked to in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.ids = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.ids |= {named["id"]} if named.get("id") else set()
        if tag == "a" and named.get("href"):
            self.links.append(named["href"])
        if tag in ("img", "script", "iframe") and named.get("src"):
            self.loaded.append(named["src"])
        if tag == "link" and named.get("rel") != "canonical":
            self.loaded.append(named["href"])


def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    pages = {path: Links(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 20
    for path, page in pages.items():
        assert [link for link in page.loaded if urlsplit(link).scheme not in ("", "data")] == [], path
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{path.name}: {link}"
            drawn = site / "demo" in target.parents  # by a script, with its anchors
            if parts.fragment and target in pages and not drawn and parts.fragment != "__tabbed":
                assert unquote(parts.fragment) in pages[target].ids | {"", "__skip"}, f"{path.name}: {link}"


@pytest.fixture
def look(browser, site):
    """Give a function that opens a page from its file; none may complain or ask for anything elsewhere."""
    contexts, complaints, elsewhere = [], [], []

    def open_it(name, viewport=DESKTOP, scheme="light"):
        contexts.append(browser.new_context(viewport=viewport, color_scheme=scheme))
        contexts[-1].set_default_timeout(PATIENCE)
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on(
            "request", lambda asked: elsewhere.append(asked.url) if asked.url.startswith(("http:", "https:")) else None
        )
        page.goto((site / name).as_uri())
        page.wait_for_selector("h1")
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert complaints == []
    assert elsewhere == []


@pytest.mark.parametrize("name", ["digits", "scenes"])
def test_the_demo_works_from_a_file(look, site, name):
    page = look(f"demo/{name}/index.html")
    page.wait_for_selector(".card")
    assert page.locator(".card").count() >= 8
    data = (site / "demo" / name / "data.js").read_text()
    assert "file:" not in data, "originals of another machine"
    assert str(Path.home()) not in data


def test_the_demo_is_shown_within_the_site(look):
    page = look("demo.html")
    frame = page.frame_locator("iframe.demo")
    frame.get_by_text("scenes.zip").first.wait_for()
    page.click("a[target=demo] >> text=handwritten digits")
    frame.get_by_text("digits").first.wait_for()


def test_its_search_works_from_a_file(look):
    page = look("index.html")
    page.keyboard.press("/")
    page.wait_for_selector("input.md-search__input:focus")
    page.keyboard.type("prototype scattering")
    page.wait_for_selector(".md-search-result__item")
    assert "prototype" in page.inner_text(".md-search-result__list").lower()


def test_equations_are_set_by_the_browser(look):
    page = look("method.html")
    equations = page.locator("div.math math")
    assert equations.count() >= 5
    for number in range(equations.count()):
        box = equations.nth(number).bounding_box()
        assert box["height"] > 10
        assert box["width"] > 50
    assert "\\frac" not in page.inner_text("article")
    assert "$" not in page.inner_text("article")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index.html", "tutorial.html", "method.html", "review.html", "api.html"])
def test_no_page_is_wider_than_a_phone(look, name, scheme):
    page = look(name, PHONE, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(int(part) for part in shown.removeprefix("rgb(").removesuffix(")").split(",")) > 3 * 128
    assert light == (scheme == "light")


def test_the_reference_has_what_docstrings_say(look):
    page = look("api.html")
    text = page.inner_text("article")
    assert "Push cluster prototypes apart" in text
    assert "Cluster images with ProPos" in text
