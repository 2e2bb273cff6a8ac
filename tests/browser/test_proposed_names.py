"""Names that are proposed: shown apart from those that people gave, accepted or dismissed, and taken back."""

import pytest

from propos.review.report import show_edits
from propos.runs import Proposal, Rename, Run, write_proposals

EVIL = "<b>teapots</b>"


def proposed(cluster, name):
    edit = Rename(v=1, id=f"name-{cluster}-00", op="rename", cluster=cluster, name=name)
    return Proposal(
        id=edit.id, kind="name", source="words", evidence="81% of its images agree", cluster=cluster, edit=edit
    )


@pytest.fixture
def _named(folder):
    run = Run.open(folder)
    write_proposals(folder, "name", [proposed(3, EVIL), proposed(4, "cups"), proposed(5, "lids")])
    assert show_edits(run)


def chips(window):
    return window.page.locator(".proposed").all_inner_texts()


@pytest.mark.usefixtures("_named")
def test_names_are_proposed_until_they_are_accepted_dismissed_or_replaced(reviewing, folder, tmp_path, capsys):
    window = reviewing("overview")
    assert chips(window) == [f"{EVIL}?", "cups?", "lids?"]
    assert "Cluster 3" in window.page.locator("li[data-cluster='3'] h2").inner_text()
    window.go("cluster/3")
    assert f"Proposed name: {EVIL} 81% of its images agree." in window.page.locator(".proposal").inner_text()
    window.press("a")
    assert EVIL in window.page.locator("h1").inner_text()
    assert window.page.locator(".proposal").count() == 0
    window.press("u")
    assert window.page.locator(".proposal").count() == 1
    window.page.get_by_role("button", name="Name it").click()
    assert EVIL in window.page.locator("h1").inner_text()
    window.go("cluster/4")
    window.page.get_by_role("button", name="Dismiss").click()
    assert window.page.locator(".proposal").count() == 0
    window.go("cluster/5").press("r").answer("pot lids")
    assert window.page.locator(".proposal").count() == 0
    window.go("overview")
    assert chips(window) == []
    corrected = window.hand_over(folder, tmp_path / "edits.jsonl", capsys)
    names = corrected.names()
    assert (names[3], names[4], names[5]) == (EVIL, None, "pot lids")
    assert [state for _, state in Run.open(folder).proposals()] == ["accepted", "dismissed", "dismissed"]


@pytest.mark.usefixtures("_named")
def test_a_cluster_is_chosen_by_the_name_that_is_proposed_for_it(reviewing):
    window = reviewing("cluster/4").press("g")
    window.page.fill("#wanted", "LIDS")
    assert "lids?" in window.page.locator("#candidates li").first.inner_text()
    assert window.page.locator("#candidates li").count() == 1
    window.page.fill("#wanted", "saucers")
    assert window.page.locator("#candidates li").count() == 0
    assert window.page.get_by_text("no cluster with this name or number").is_visible()
