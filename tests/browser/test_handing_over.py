"""Corrections on their way from a page into the run and back, between people who do not see each other."""

import json
import shlex
import shutil
import time

import numpy as np
import pytest

from helpers.command import command
from helpers.reviewed import titles, windows
from helpers.served import serving
from propos.review.report import show_edits, write_report
from propos.runs import Run

AWKWARD = "`${alert(1)}` \\u0060 \\ '\" </script>"


def first_of(window, cluster):
    """The first image of a cluster's screen, chosen."""
    window.go(f"cluster/{cluster}")
    window.thumbs().nth(0).click(modifiers=["Control"])
    return titles(window.thumbs().nth(0))[0]


@pytest.mark.full
def test_splits_of_an_older_page_are_added_to_the_edits_of_others(folder, from_file, tmp_path, capsys):
    run = Run.open(folder)
    table, free = run.table, run.edits.free_id()
    window = from_file()
    theirs = next(name for name, cluster in zip(table.images, table.cluster, strict=True) if cluster == 7)
    edits = [
        {"v": 1, "id": "t1", "op": "split", "images": [theirs], "into": free},
        {"v": 1, "id": "t2", "op": "rename", "cluster": free, "name": "theirs"},
    ]
    (tmp_path / "theirs.jsonl").write_text("".join(f"{json.dumps(edit)}\n" for edit in edits))
    result = command(capsys, "apply", folder, tmp_path / "theirs.jsonl")
    page = folder / "report" / "index.html"
    assert result.out.splitlines() == [
        f"2 edits applied. On the page: open {page}",
        f"Cluster {free} (theirs) is new, with 1 image.",
    ]
    own = [first_of(window, 3)]
    window.press("s").answer("mine")  # the same id here: this page knows nothing of the other
    assert window.page.locator(".said").inner_text() == "Split 1 image off as mine"
    result = command(capsys, "apply", folder, window.download(tmp_path / "mine.jsonl"))
    assert (result.code, result.err) == (0, "")
    new = (
        f"Cluster {free + 1} (mine) is new, with 1 image; "
        f"the file calls it {free}, which is now the id of another cluster."
    )
    assert result.out.splitlines()[1:] == [new]
    own.append(first_of(window, 4))  # still on the old page
    window.press("m").answer("mine")
    window.page.reload()
    assert window.page.get_by_role("button", name="Download").inner_text() == "Download 1"
    assert window.go(f"cluster/{free}").names() == [theirs]
    assert set(window.go(f"cluster/{free + 1}").names()) == set(own)
    result = command(capsys, "apply", folder, window.download(tmp_path / "more.jsonl"))
    assert result.out.splitlines() == [f"1 edit applied. On the page: open {page}"]
    assert command(capsys, "apply", folder, tmp_path / "mine.jsonl").out.startswith("0 edits applied (2 were already")
    corrected = Run.open(folder).corrected
    where = dict(zip(corrected.table.images, corrected.table.cluster.tolist(), strict=True))
    assert [where[name] for name in (theirs, *own)] == [free, free + 1, free + 1]
    assert {corrected.names()[each] for each in (free, free + 1)} == {"theirs", "mine"}


@pytest.mark.full
def test_a_window_says_that_what_it_split_off_has_another_id(folder, browser, tmp_path, capsys):
    with serving(folder) as address, windows(browser, address) as open_it:
        window = open_it("cluster/3")
        free = Run.open(folder).edits.free_id()
        window.page.context.set_offline(True)
        image = first_of(window, 3)
        window.press("s").answer("")
        window.go(f"cluster/{free}")
        theirs = {"v": 1, "id": "t1", "op": "split", "images": [Run.open(folder).table.images[0]], "into": free}
        (tmp_path / "theirs.jsonl").write_text(json.dumps(theirs) + "\n")
        assert command(capsys, "apply", folder, tmp_path / "theirs.jsonl").code == 0
        window.page.context.set_offline(False)
        window.page.wait_for_function(f"location.hash === '#/cluster/{free + 1}'")
        said = f"The new cluster {free} is now cluster {free + 1}: another window used {free} first."
        assert window.page.locator(".said").inner_text() == said
        assert window.names() == [image]


@pytest.mark.full
def test_the_page_by_double_click_shows_what_was_corrected_through_the_server(folder, browser):
    script = folder / "report" / "edits.js"
    with windows(browser, (folder / "report" / "index.html").as_uri()) as from_file:
        with serving(folder) as address, windows(browser, address) as served:
            window = served("cluster/3").press("r").answer(AWKWARD)
            image = first_of(window, 3)
            window.press("m").answer("7")
            while image not in script.read_text(encoding="utf-8"):  # while the server is still there
                time.sleep(0.02)
        by_file = from_file("cluster/3")
        assert AWKWARD in by_file.page.locator("h1").inner_text()
        assert image not in by_file.names()
        assert image in by_file.go("cluster/7").names()
        assert by_file.page.get_by_role("button", name="Download").count() == 0
        assert by_file.press("u").page.locator(".said").inner_text().startswith("Undone: Moved 1 image")


def test_the_command_that_the_page_shows_works_where_the_file_was_saved(folder, browser, tmp_path, capsys, monkeypatch):
    elsewhere = shutil.copytree(folder, tmp_path / "it's a run")
    with windows(browser, (elsewhere / "report" / "index.html").as_uri()) as open_it:
        window = open_it("cluster/3").press("r").answer("threes")
        (tmp_path / "downloads").mkdir()
        window.download(tmp_path / "downloads" / "saved")
        name, shown = window.downloaded
    (tmp_path / "downloads" / "saved").rename(tmp_path / "downloads" / name)
    monkeypatch.chdir(tmp_path / "downloads")
    program, *arguments = shlex.split(shown)
    assert program == "propos"
    assert command(capsys, *arguments).code == 0
    assert Run.open(elsewhere).corrected.names()[3] == "threes"


def test_a_page_without_its_edits_says_what_is_missing(folder, browser):
    (folder / "report" / "edits.js").unlink()
    context = browser.new_context()
    page = context.new_page()
    page.goto((folder / "report" / "index.html").as_uri())
    assert "(edits.js) is missing" in page.locator("#app").inner_text()
    context.close()


@pytest.mark.full
def test_a_log_of_several_scripts_is_shown_from_its_file_and_by_the_server(folder, browser, monkeypatch):
    monkeypatch.setattr("propos.review.report.edits.PART", 500)
    log = folder / "edits.jsonl"
    edits = [
        {"v": 1, "id": f"e{number}", "op": "rename", "cluster": number % 10, "name": f"name {number}"}
        for number in range(40)
    ]
    log.write_text("".join(f"{json.dumps(edit)}\n" for edit in edits))
    assert show_edits(Run.open(folder))
    assert len(list((folder / "report").glob("edits-*.js"))) > 3
    with serving(folder) as address:
        for place in ((folder / "report" / "index.html").as_uri(), address):
            with windows(browser, place) as open_it:
                window = open_it("cluster/3")
                assert "name 33" in window.page.locator("h1").inner_text()
                assert "name 30" in window.go("cluster/0").page.locator("h1").inner_text()
    (folder / "report" / "edits-0002.js").unlink()
    context = browser.new_context()
    page = context.new_page()
    page.goto((folder / "report" / "index.html").as_uri())
    page.get_by_text("(edits-0002.js) is missing").wait_for()
    context.close()


def test_arrays_in_scripts_of_their_own_are_shown_from_their_file_and_by_the_server(folder, browser, monkeypatch):
    monkeypatch.setattr("propos.review.report.payload.LARGE", 10)
    write_report(Run.open(folder))
    parts = sorted(path.name for path in (folder / "report").glob("part-*.js"))
    assert "part-images-names.js" in parts
    assert "part-images-cluster.js" in parts
    assert b"base64" not in (folder / "report" / "data.js").read_bytes().split(b'"moments"')[0]
    table = Run.open(folder).table
    nearest = np.lexsort((np.arange(len(table.images)), table.distance))
    expected = [table.images[row] for row in nearest if table.cluster[row] == 3]
    with serving(folder) as address:
        for place in ((folder / "report" / "index.html").as_uri(), address):
            with windows(browser, place) as open_it:
                assert open_it("cluster/3").names()[:3] == expected[:3]
    (folder / "report" / "part-images-cluster.js").unlink()
    context = browser.new_context()
    page = context.new_page()
    page.goto((folder / "report" / "index.html").as_uri())
    page.get_by_text("(part-images-cluster.js) is missing").wait_for()
    context.close()
