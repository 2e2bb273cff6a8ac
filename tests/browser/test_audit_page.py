"""An audit answered on the page: one drawn image after the other, by keys and buttons."""

from helpers.command import command
from propos.review.quality import measure_quality
from propos.runs import Run
from propos.runs.audit import NOT_RIGHT, RIGHT, read_audit


def test_drawn_images_are_answered_by_keys_and_the_page_says_how_many_labels_are_right(
    folder, reviewing, tmp_path, capsys
):
    assert command(capsys, "audit", folder, "-n", 12).code == 0
    run = Run.open(folder)
    drawn = [run.table.images[row] for row in read_audit(run).rows.tolist()]
    window = reviewing("audit")
    page = window.page
    assert page.locator(".lead").inner_text() == "0 of 12 images checked."
    assert window.in_focus() == drawn[0]
    for key, place in (("y", 1), ("n", 2), ("j", 3)):
        window.press(key)
        assert window.in_focus() == drawn[place]
    home = int(run.table.cluster[run.table.images.index(drawn[3])])
    window.press("m").answer(str((home + 1) % 10))
    window.press("n", "u")  # the answer is taken back
    assert page.locator(".lead").inner_text() == "4 of 12 images checked."
    for _ in range(8):
        page.get_by_role("button", name="Yes, it is right").click()
    assert page.locator(".lead").inner_text() == "12 of 12 images checked."
    if window.served:
        page.wait_for_selector("[role=status] p:has-text('% right (95%, 12 answers).')")
        page.get_by_role("button", name="Draw 100 more").click()
        page.wait_for_selector(".lead:has-text('12 of 112 images checked.')")
    else:
        assert "propos audit" in page.locator("[role=status] pre").inner_text()
    window.hand_over(folder, tmp_path / "edits.jsonl", capsys)
    run = Run.open(folder)
    answers = read_audit(run).answers(run)[:12].tolist()
    assert answers == [RIGHT, NOT_RIGHT, NOT_RIGHT, NOT_RIGHT, *[RIGHT] * 8]
    assert measure_quality(run, read_audit(run)).share.answers == 12
