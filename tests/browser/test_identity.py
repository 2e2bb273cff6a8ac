"""A cluster is its id: a page whose ids are no places in a list, and whose clusters have names, shows the same."""

import base64
import json
import shutil

import numpy as np
import pytest

pytestmark = pytest.mark.full

BEGIN = "window.PROPOS_REPORT="
IDS = [41, 3, 57, 8, 12, 70, 0, 25, 33, 90]  # of the clusters that were 0 to 9
NAMED = 57
TYPES = {"u16": np.uint16, "i32": np.int32}


@pytest.fixture(scope="session")
def renumbered(report, tmp_path_factory):
    """Return a copy of the report under other ids, in another order, one of them named."""
    folder = tmp_path_factory.mktemp("renumbered") / "report"
    shutil.copytree(report.parent, folder)
    data = json.loads((folder / "data.js").read_text().removeprefix(BEGIN).rstrip().removesuffix(";"))
    for cluster in data["clusters"]:
        cluster["id"] = IDS[cluster["id"]]
        cluster["name"] = "sevens" if cluster["id"] == NAMED else None
        cluster["nearest"] = [(IDS[other], likeness) for other, likeness in cluster["nearest"]]
    data["clusters"].sort(key=lambda cluster: cluster["id"])
    images = data["images"]["cluster"]
    old = np.frombuffer(base64.b64decode(images["base64"]), TYPES[images["kind"]])
    images["base64"] = base64.b64encode(np.array(IDS)[old].astype(TYPES[images["kind"]]).tobytes()).decode()
    data["review"]["ids"] = sorted(IDS)
    data["review"]["tree"] = None
    named = json.dumps({"v": 1, "id": "a", "op": "rename", "cluster": NAMED, "name": "sevens"})
    (folder / "edits.js").write_text(f"window.PROPOS_EDITS=String.raw`{named}`;\n")
    data["review"]["questions"] = [(image, IDS[other]) for image, other in data["review"]["questions"]]
    data["labels"]["columns"] = [IDS[column] for column in data["labels"]["columns"]]
    (folder / "data.js").write_text(f"{BEGIN}{json.dumps(data)};\n")
    return folder / "index.html", data


@pytest.fixture
def page(browser, renumbered):
    page = browser.new_page()
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(renumbered[0].as_uri())
    page.wait_for_selector("h1")
    yield page
    page.close()
    assert complaints == []


def go(page, route, title):
    page.goto(f"{page.url.split('#')[0]}#/{route}")
    page.wait_for_function("title => document.querySelector('h1')?.textContent.includes(title)", arg=title)


def test_cards_lead_to_their_own_clusters(page, renumbered):
    sizes = {cluster["id"]: cluster["size"] for cluster in renumbered[1]["clusters"]}
    for number in IDS:
        name = "sevens" if number == NAMED else f"Cluster {number}"
        go(page, f"cluster/{number}", name)
        assert f"{sizes[number]} images" in page.locator(".lead").inner_text()
        assert page.locator(".gallery").last.locator(".thumb").count() == min(120, sizes[number])
    go(page, "cluster/1", "Unknown cluster")


def test_neighbours_in_the_list_are_the_next_ids(page):
    go(page, f"cluster/{NAMED}", "sevens")
    assert page.locator(".steps a").all_inner_texts() == ["← Cluster 41", "All clusters", "Cluster 70 →"]
    go(page, "cluster/0", "Cluster 0")
    assert page.locator(".steps a").all_inner_texts() == ["All clusters", "Cluster 3 →"]


def test_a_name_is_found_and_shown_wherever_its_cluster_is(page):
    page.fill("#search", "sevens")
    assert page.locator(".card").count() == 1
    page.locator(".card").click()
    page.locator(".thumb").first.click()
    assert "sevens" in page.locator("dialog .facts").inner_text()


def test_the_map_and_the_matrix_know_clusters_by_their_ids(page, renumbered):
    go(page, "map", "Map")
    keys = [text[1:].strip() for text in page.locator(".keys button").all_inner_texts()]
    assert keys == [str(number) if number != NAMED else "sevens" for number in sorted(IDS)]
    assert sorted(page.locator(".number").all_inner_texts(), key=int) == [str(number) for number in sorted(IDS)]
    go(page, "labels", "Comparison with labels")
    cell = page.locator(".matrix td a").first
    count = int(cell.inner_text())
    cell.click()
    page.wait_for_selector(".cell")
    assert page.locator(".cell .thumb").count() == count
