"""`propos audit`, as a person would use it: images are drawn, answered in a table or on the page, and counted."""

import csv
import json
import re

import numpy as np
import pytest

from helpers.command import command
from helpers.runs import make_run
from propos.review.promise import promise_of
from propos.review.quality import describe_quality, measure_quality
from propos.runs import Run
from propos.runs.audit import draw_images, drawing_order, read_audit

SIZES = (40, 20, 20)


@pytest.fixture
def run(tmp_path):
    pixels = np.repeat(np.eye(3, dtype=np.float32), SIZES, axis=0)
    return make_run(tmp_path / "run", tmp_path / "none", [f"{n}.png" for n in range(80)], pixels, clusters=3)


def filled_in(path, answers):
    """Fill in a table as a spreadsheet would save it; `answers` gives right and belongs_to of a row."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["right"], row["belongs_to"] = answers(row)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows


def edit(run, *edits):
    with (run.path / "edits.jsonl").open("a") as log:
        for each in edits:
            edit.number += 1
            log.write(json.dumps({"v": 1, "id": f"e{edit.number}", **each}) + "\n")
    return Run.open(run.path)


edit.number = 0


def quality(run):
    return measure_quality(run, read_audit(run))


def test_answers_in_a_table_give_the_interval_of_the_sample(run, tmp_path, capsys):
    asked = tmp_path / "asked.csv"
    result = command(capsys, "audit", run.path, "-n", 40, "-o", asked)
    assert result.code == 0, result.err
    assert "No answers yet" in result.out
    rows = filled_in(asked, lambda row: ("y", ""))
    assert len({row["image"] for row in rows}) == 40
    sizes = np.bincount([int(row["cluster"]) for row in rows])
    assert sorted(sizes) == [10, 10, 20]  # each cluster's share
    wrong = [row["image"] for row in rows[:4]]
    filled_in(asked, lambda row: ("n", "") if row["image"] in wrong else ("y", ""))
    result = command(capsys, "audit", run.path, "--answers", asked)
    assert result.code == 0, result.err
    first = result.out.splitlines()[0]
    assert re.fullmatch(r"Labels are \d+–\d+% right \(95%, 40 answers\)\.", first)
    found = quality(Run.open(run.path)).share
    assert found.low < 0.9 < found.high < 0.96  # four wrong ones of 80 are known
    assert "About " in result.out
    again = command(capsys, "audit", run.path, "--answers", asked)
    assert again.out.splitlines()[0] == first


def test_a_wrong_label_that_is_mended_counts_as_wrong_when_drawn_and_right_now(run):
    audit = draw_images(run, 80)
    images = [run.table.images[row] for row in audit.rows.tolist()]
    run = edit(run, {"op": "wrong", "images": images[:8]}, {"op": "confirm", "images": images[8:], "how": "audited"})
    found = quality(run)
    assert (found.share.low, found.share.high) == (0.9, 0.9)
    assert found.more is None
    said = describe_quality(run, found)
    assert said[0] == "Labels are 90% right (all 80 checked)."
    assert all(re.fullmatch(r"   cluster \d: [\d.]+% \(all \d+ checked\)", line) for line in said[1:4])
    other = int((run.table.cluster[audit.rows[0]] + 1) % 3)
    run = edit(run, {"op": "move", "images": [images[0]], "into": other}, {"op": "junk", "images": [images[1]]})
    found = quality(run).share
    assert found.low == found.high == pytest.approx(73 / 79)  # six of 79 are wrong still


def test_answers_about_chosen_images_do_not_count(run):
    audit = draw_images(run, 20)
    drawn = set(audit.rows.tolist())
    others = [name for row, name in enumerate(run.table.images) if row not in drawn]
    images = [run.table.images[row] for row in audit.rows.tolist()]
    run = edit(run, {"op": "confirm", "images": others}, {"op": "confirm", "images": images, "how": "reviewed"})
    assert quality(run) is None
    words = "Not counted: 80 images that people chose to confirm; such images are not representative."
    assert describe_quality(run, None) == ["No answers yet.", words]
    run = edit(run, {"op": "confirm", "images": images[:10], "how": "audited"})
    found = quality(run)
    assert (found.share.answers, found.skipped) == (10, 0)
    assert found.share.low < 0.8
    assert describe_quality(run, quality(run))[-1] == words.replace("80", "70")


def test_corrections_of_chosen_images_improve_the_promise(run):
    audit = draw_images(run, 40)
    images = [run.table.images[row] for row in audit.rows.tolist()]
    run = edit(run, {"op": "wrong", "images": images[:10]}, {"op": "confirm", "images": images[10:], "how": "audited"})
    before = quality(run).share
    drawn = set(audit.rows.tolist())
    chosen = [row for row in range(80) if row not in drawn and run.table.cluster[row] == run.table.cluster[0]][:5]
    other = int((run.table.cluster[0] + 1) % 3)
    run = edit(run, {"op": "move", "images": [run.table.images[row] for row in chosen], "into": other})
    after = quality(run).share
    # Five of the wrong ones are right now.
    assert after.low == pytest.approx(before.low + 5 / 80)
    assert after.high == pytest.approx(min(before.high + 5 / 80, 70 / 80))


def test_a_skipped_image_counts_either_way_and_answers_beyond_many_skipped_ones_do_not(run):
    audit = draw_images(run, 40)
    images = [run.table.images[row] for row in audit.rows.tolist()]
    run = edit(run, {"op": "confirm", "images": [*images[:10], *images[11:30]], "how": "audited"})
    skipped = quality(run)
    assert (skipped.share.answers, skipped.skipped) == (29, 1)
    assert skipped.share.high == 1.0
    answered = quality(edit(run, {"op": "wrong", "images": [images[10]]}))
    assert answered.share.low == skipped.share.low
    run = edit(run, {"op": "confirm", "images": images[39:], "how": "audited"})
    assert quality(run).share.answers == 30


def test_a_merge_makes_answers_right_and_pools_the_clusters(run):
    audit = draw_images(run, 40)
    images = [run.table.images[row] for row in audit.rows.tolist()]
    in_one = [name for name, row in zip(images, audit.rows, strict=True) if run.table.cluster[row] == 1]
    run = edit(run, {"op": "confirm", "images": images, "how": "audited"})
    run = edit(run, {"op": "move", "images": in_one[:5], "into": 2})
    assert quality(run).share.high < 1.0 - 4 / 80 + 5 / 80
    assert quality(run).clusters[1].high < 1.0
    merged = quality(edit(run, {"op": "merge", "clusters": [1], "into": 2}))
    assert sorted(merged.clusters) == [0, 2]
    assert merged.clusters[2].high == merged.share.high == 1.0


def test_more_images_are_drawn_after_those_before_and_new_ones_from_the_clusters_as_they_are(run):
    first = draw_images(run, 20)
    more = draw_images(run, 30)
    assert more.rows[:20].tolist() == first.rows.tolist()
    run = edit(run, {"op": "junk", "images": [run.table.images[first.rows[0]]]})
    assert read_audit(run).rows.tolist() == more.rows.tolist()
    new = draw_images(run, 80, new=True)
    assert int(first.rows[0]) not in new.rows
    assert len(new.rows) == 79


def test_every_image_is_as_likely_to_be_drawn_as_any_other():
    names, cluster = [f"{n}.png" for n in range(111)], np.repeat([0, 1, 2], [100, 10, 1])
    count = np.zeros(111)
    for seed in range(600):
        count[drawing_order(names, cluster, seed)[:20]] += 1
    share = [count[cluster == each].mean() / 600 for each in range(3)]
    np.testing.assert_allclose(share, 20 / 111, atol=0.06)  # 3.7 standard deviations of the single image


def test_what_cannot_be_answered_is_refused_in_one_line(run, tmp_path, capsys):
    asked = tmp_path / "asked.csv"
    assert command(capsys, "audit", run.path, "-n", 5, "-o", asked).code == 0
    for answer, words in (
        (("maybe", ""), "answer y or n"),
        (("y", "1"), "leave belongs_to empty, or say n"),
        (("n", "cats"), "no cluster is called so"),
    ):
        filled_in(asked, lambda row, answer=answer: answer)
        result = command(capsys, "audit", run.path, "--answers", asked)
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert words in result.err
    asked.write_text("image,right\nnot drawn.png,y\n")
    assert "was not drawn" in command(capsys, "audit", run.path, "--answers", asked).err
    assert Run.open(run.path).edits.edits == []
    (run.path / "audit.json").write_text('{"v": 1, "edits": 7, "seed": 0, "rows": [5], "clusters": [0]}')
    result = command(capsys, "audit", run.path)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "draw again with propos audit --new" in result.err


def test_exports_say_how_many_labels_are_right_and_how_probable_each_is(run, tmp_path, capsys):
    result = command(capsys, "export", run.path, "--to", "csv", "-o", tmp_path / "before.csv")
    assert "Labels: not audited, and confidence is not calibrated" in result.out
    assert "probability" not in (tmp_path / "before.csv").read_text().splitlines()[0]
    images = [run.table.images[row] for row in draw_images(run, 40).rows.tolist()]
    run = edit(run, {"op": "confirm", "images": images[:20], "how": "audited"})
    assert "not calibrated before 30" in str(promise_of(run))
    wrong, moved = images[20:30], images[30]
    run = edit(run, {"op": "confirm", "images": images[31:], "how": "audited"}, {"op": "wrong", "images": wrong})
    run = edit(
        run, {"op": "move", "images": [moved], "into": int((run.table.cluster[run.table.images.index(moved)] + 1) % 3)}
    )
    result = command(capsys, "export", run.path, "--to", "csv", "-o", tmp_path / "after.csv")
    assert re.search(r"Labels: \d+–\d+% are right \(95%, 40 answers\)\n", result.out)
    with (tmp_path / "after.csv").open(newline="") as file:
        probability = {row["image"]: float(row["probability"]) for row in csv.DictReader(file)}
    assert probability[moved] == probability[images[0]] == 1.0
    assert probability[wrong[0]] == 0.0
    unchecked = [each for name, each in probability.items() if name not in images]
    assert 0.5 < np.mean(unchecked) < 0.9  # 11 of 40 were wrong
    assert command(capsys, "export", run.path, "--to", "model", "-o", tmp_path / "model").code == 0
    assert "are right (95%, 40 answers)" in (tmp_path / "model" / "README.md").read_text().replace("\\", "")
