"""The steps of a review on the overview, and the labels as a file."""

import csv
import io
import json

from helpers.command import command
from propos.review.report.problems import find_outliers

NAME = '=1+"2", x'  # which a spreadsheet would compute


def badge(page):
    return int(page.locator("nav .badge:visible").inner_text())


def test_problems_count_what_is_left_to_act_on(made, from_file):
    assert len(find_outliers(made.table.cluster, made.table.distance)) > 0
    assert (made.table.confidence < 0.5).sum() > 0
    window = from_file("problems")
    page = window.page
    near = page.locator("section", has_text="Near duplicates").locator(".group").count()
    assert badge(page) == 1 + 1 + near  # a file, a group of two copies; outliers may belong where they are
    words = page.locator("main").inner_text()
    assert f"{(made.table.confidence < 0.5).sum()} images of low confidence" in words
    page.locator("section", has_text="Exact duplicates").locator(".thumb").first.focus()
    window.press("j")
    assert badge(page) == 1 + near
    window.press("u")
    assert badge(page) == 2 + near


def test_one_place_says_what_comes_first_and_follows_what_is_done(from_file):
    window = from_file()
    page = window.page
    steps = page.locator(".start li")
    assert [text.split("\n")[0] for text in steps.all_inner_texts()] == ["Problems", "Questions", "Review", "Export"]
    assert [text.split()[0] for text in page.locator("nav a").all_inner_texts()][3:6] == [
        "Problems",
        "Questions",
        "Review",
    ]
    first = page.locator(".start [aria-current=step]")
    assert first.locator("a").inner_text() == "Problems"
    assert "1 unreadable file, 1 group of duplicates" in first.inner_text()
    assert "100 images to check." in steps.nth(1).inner_text()
    assert "201 of 201 images not reviewed." in steps.nth(2).inner_text()
    for cluster in range(10):
        window.go(f"cluster/{cluster}").press("Shift+C")
        if page.locator("dialog").count():
            page.locator("dialog .main").click()
    window.go("overview")
    assert "Every image has been reviewed." in steps.nth(2).inner_text()
    assert "Nothing to check." in steps.nth(1).inner_text()
    assert first.locator("p").first.inner_text() == "1 unreadable file."  # which no page can repair


# Tightness, cosine to the next prototype, and 1 - (1 - t) / (1 - t * s).
CLUSTERS = [
    (0.90, 0.80, "tight"),  # 0.64
    (0.54, -0.13, "tight"),  # 0.57
    (0.71, 0.64, "loose"),  # 0.47
    (0.38, -0.15, "loose"),  # 0.41
    (0.25, 0.00, "very loose"),  # 0.25
    (0.90, 0.98, "very loose"),  # 0.15
]


def test_a_word_says_whether_a_cluster_is_tight(open_report):
    page = open_report()
    words = "all => all.map(([tightness, cosine]) => ProposReport.cohesion({ tightness, nearest: [[1, cosine]] }).word)"
    assert page.evaluate(words, CLUSTERS) == [word for _, _, word in CLUSTERS]
    assert page.evaluate("ProposReport.cohesion({ tightness: 0.4, nearest: [] }).word") == "loose"
    shown = page.locator("li[data-cluster='3'] .pair span").last.inner_text()
    page.goto(page.url.split("#")[0] + "#/cluster/3")
    page.wait_for_selector(".lead")
    assert f", {shown} (tightness 0." in page.locator(".lead").inner_text()


def downloaded(page, kind):
    with page.expect_download() as started:
        page.get_by_role("button", name=f"Download {kind}", exact=True).click()
    return started.value.suggested_filename, started.value.path().read_text(encoding="utf-8")


def test_the_labels_are_exported_as_the_command_does(made, folder, reviewing, tmp_path, capsys):
    window = reviewing("cluster/3").press("r").answer(NAME)
    window.thumbs().nth(0).focus()
    window.press("j")
    window.thumbs().nth(0).focus()
    window.press("c")
    page = window.page
    page.locator("footer").get_by_role("button", name="Export").click()
    assert f"propos export {folder} --to" in page.locator("dialog pre").inner_text()
    (name, table), (_, rows) = downloaded(page, "CSV"), downloaded(page, "JSON")
    assert name == "labels.csv"
    window.press("Escape")
    window.hand_over(folder, tmp_path / "edits.jsonl", capsys)
    for form in ("csv", "json"):
        assert command(capsys, "export", folder, "--to", form, "-o", tmp_path / f"all.{form}").code == 0
    wanted = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    for row in wanted:
        del row["confidence"], row["distance"]
    assert json.loads(rows) == wanted
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        expected = list(csv.DictReader(file))
    found = list(csv.DictReader(io.StringIO(table, newline="")))
    assert found == [{key: row[key] for key in found[0]} for row in expected]
    assert {row["name"] for row in found} == {"", "'" + NAME}
