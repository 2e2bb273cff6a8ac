"""Corrections are applied wherever a run is read: apply, evaluate, report, predict, the estimator."""

import base64
import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from helpers.command import command
from helpers.runs import folder_run, write_edits
from helpers.served import Served
from helpers.small import digits
from propos import ProPos
from propos.runs import Run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return folder_run(tmp_path_factory.mktemp("corrected")).path


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


def members(folder, cluster):
    table = Run.open(folder).table
    return [table.images[row] for row in np.flatnonzero(table.cluster == cluster)]


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_apply_takes_a_file_in_once_and_lists_images_that_are_gone(folder, tmp_path, capsys):
    first = members(folder, 0)[0]
    file = write_edits(
        tmp_path / "edits.jsonl",
        {"op": "rename", "cluster": 0, "name": "<script>alert(1)</script>"},
        {"op": "move", "images": [first, "long gone.png"], "into": 1},
    )
    result = command(capsys, "apply", folder, file)
    assert (result.code, result.out.splitlines()[0][:17]) == (0, "2 edits applied. ")
    assert "contains edits of 1 image that is missing: long gone.png" in result.err
    again = command(capsys, "apply", folder, file)
    assert again.out.startswith("0 edits applied (2 were already applied).")
    corrected = Run.open(folder).corrected
    assert corrected.names()[0] == "<script>alert(1)</script>"
    assert corrected.table.cluster[corrected.table.images.index(first)] == 1


def test_apply_refuses_in_one_line_and_changes_nothing(folder, tmp_path, capsys):
    before = contents(folder)
    unknown = write_edits(
        tmp_path / "a.jsonl",
        {"op": "rename", "cluster": 0, "name": "x"},
        {"op": "rename", "cluster": 10, "name": "x"},
    )
    other = write_edits(tmp_path / "b.jsonl", {"op": "junk", "images": ["another run's.png"]})
    strange = write_edits(tmp_path / "c.jsonl", {"op": "explode", "cluster": 0})
    newer = write_edits(tmp_path / "d.jsonl", {"v": 2, "op": "junk", "cluster": 0})
    undone = write_edits(tmp_path / "e.jsonl", {"op": "undo", "edit": "never made"})
    (tmp_path / "empty").touch()
    with (tmp_path / "large").open("wb") as large:
        large.truncate(1_000_000_001)
    words = {
        unknown: "line 2: rename: unknown cluster 10",
        other: 'contains none of its images, such as "another run\'s.png": give the run that it was made for',
        strange: "line 1: op = 'explode': unknown operation: choose one of rename, describe",
        newer: "line 1: was written by a newer propos (edits 2, this one reads 1): upgrade propos",
        undone: "line 1: undo: ",
        tmp_path / "empty": "contains no edits",
        tmp_path / "large": "it is larger than 1,000,000,000 bytes",
        tmp_path / "none": "no such file",
        tmp_path: "not a file",
    }
    for file, sentence in words.items():
        result = command(capsys, "apply", folder, file)
        assert result.code == 2
        assert sentence in result.err
        assert result.err.count("\n") == 1
    assert contents(folder) == before


def test_evaluate_scores_corrected_clusters_without_junk(folder, tmp_path, capsys):
    junk = members(folder, 2)
    edits = [{"op": "merge", "clusters": [1], "into": 0}, {"op": "junk", "images": junk}]
    command(capsys, "apply", folder, write_edits(tmp_path / "edits.jsonl", *edits))
    result = json.loads(command(capsys, "evaluate", folder, "--json").out)
    table = Run.open(folder).table
    kept = table.cluster != 2
    merged = np.where(table.cluster == 1, 0, table.cluster)[kept]
    assert result["nmi"] == pytest.approx(normalized_mutual_info_score(table.label[kept], merged))
    assert (result["n_clusters"], result["n_images"], result["n_junk"]) == (8, int(kept.sum()), len(junk))


def page_data(folder):
    text = (folder / "report" / "data.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("window.PROPOS_REPORT=").rstrip().removesuffix(";"))


def test_the_report_shows_names_merges_and_junk_as_a_group_of_its_own(folder, tmp_path, capsys):
    edits = [
        {"op": "rename", "cluster": 0, "name": "</script><b>"},
        {"op": "merge", "clusters": [1], "into": 0},
        {"op": "junk", "cluster": 2},
    ]
    command(capsys, "apply", folder, write_edits(tmp_path / "edits.jsonl", *edits))
    assert command(capsys, "report", folder).code == 0
    data, table = page_data(folder), Run.open(folder).table
    shown = {group["id"]: (group["name"], group["size"]) for group in data["clusters"]}
    sizes = np.bincount(table.cluster, minlength=10)
    assert shown[0] == ("</script><b>", sizes[0] + sizes[1])
    assert shown[-1] == ("Junk", sizes[2])
    assert set(shown) == {0, 3, 4, 5, 6, 7, 8, 9, -1}
    packed = data["images"]["cluster"]
    places = np.frombuffer(base64.b64decode(packed["base64"]), {"u16": "<u2", "i32": "<i4"}[packed["kind"]])
    expected = np.where(table.cluster == 1, 0, np.where(table.cluster == 2, -1, table.cluster))
    np.testing.assert_array_equal(places, expected)
    assert ["Clusters", "8, corrected by hand"] in data["settings"]


def test_corrections_survive_a_renamed_source_and_the_report_of_it(folder, tmp_path, capsys):
    moved = members(folder, 4)[0]
    edits = [{"op": "rename", "cluster": 4, "name": "fours"}, {"op": "move", "images": [moved], "into": 7}]
    command(capsys, "apply", folder, write_edits(tmp_path / "edits.jsonl", *edits))
    photos = Path(Run.open(folder).config.source)
    elsewhere = photos.rename(photos.with_name("renamed"))
    try:
        result = command(capsys, "report", folder)
    finally:
        elsewhere.rename(photos)
    assert result.code == 0
    assert "There are no pictures" in result.err
    shown = {group["id"]: group["name"] for group in page_data(folder)["clusters"]}
    assert shown[4] == "fours"
    corrected = Run.open(folder).corrected
    assert corrected.table.cluster[corrected.table.images.index(moved)] == 7
    assert moved in (folder / "report" / "edits.js").read_text(encoding="utf-8")


def test_a_run_of_junk_alone_is_opened_read_exported_and_undone(folder, tmp_path, capsys):
    junk = [{"op": "junk", "cluster": number} for number in range(10)]
    applied = command(capsys, "apply", folder, write_edits(tmp_path / "junk.jsonl", *junk))
    left = f"every image is marked as junk, so no cluster is left: undo that: propos open {folder}"
    assert (applied.code, applied.err) == (0, f"warning: {folder}: {left}\n")
    server = Served(folder)
    assert f"{folder}: {left}" in server.process.complaints()
    for edit in ({"id": "u", "op": "undo", "edit": "e2"}, {"id": "r", "op": "redo", "edit": "e2"}):
        assert server.save(edit)[0] == 200
    server.end()
    assert command(capsys, "report", folder).code == 0
    data = page_data(folder)
    assert [(group["name"], group["size"]) for group in data["clusters"]] == [("Junk", 201)]
    assert (data["labels"], data["review"]["questions"]) == (None, [])
    for form, name in (("csv", "a.csv"), ("coco", "a.json"), ("fiftyone", "fiftyone"), ("folders", "folders")):
        exported = command(capsys, "export", folder, "--to", form, "-o", tmp_path / name)
        assert exported.code == 0, exported.err
    assert {row["cluster"] for row in read_csv(tmp_path / "a.csv")} == {"-1"}
    assert list((tmp_path / "folders").iterdir()) == []
    for refused in (["evaluate"], ["ask"], ["export", "--to", "model", "-o", tmp_path / "model"]):
        result = command(capsys, refused[0], folder, *refused[1:])
        assert (result.code, result.err) == (2, f"propos: {folder}: {left}\n")
    undone = write_edits(tmp_path / "undo.jsonl", {"id": "v", "op": "undo", "edit": "e3"})
    result = command(capsys, "apply", folder, undone)
    assert (result.code, result.err) == (0, "")
    assert [cluster.id for cluster in Run.open(folder).corrected.clusters] == [3]


@pytest.fixture(scope="module")
def pixels(tmp_path_factory):
    """Return a run that trains nothing: k-means on the pixels of digits."""
    folder = tmp_path_factory.mktemp("pixels")
    images = digits(200).batch(np.arange(200))[:, 0]
    np.save(folder / "images.npy", images)
    ProPos(5, method="kmeans-pixels", random_state=0).fit(images).save(folder / "run")
    return folder


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_predict_puts_new_images_into_corrected_clusters_and_says_their_names(pixels, tmp_path, capsys):
    folder = shutil.copytree(pixels / "run", tmp_path / "run")
    predict = ("predict", folder, pixels / "images.npy", "-o")
    before = command(capsys, *predict, tmp_path / "before.csv")
    assert before.code == 0, before.err
    assert list(read_csv(tmp_path / "before.csv")[0]) == ["id", "image", "cluster", "confidence", "distance"]
    run = Run.open(folder)
    off = members(folder, 0)[:5]
    edits = [
        {"op": "rename", "cluster": 0, "name": "=rest"},
        {"op": "split", "images": off, "into": 7},
        {"op": "merge", "clusters": [2], "into": 1},
        {"op": "junk", "cluster": 3},
    ]
    assert command(capsys, "apply", folder, write_edits(tmp_path / "e.jsonl", *edits)).code == 0
    assert command(capsys, *predict, tmp_path / "after.csv").code == 0
    rows = read_csv(tmp_path / "after.csv")
    # An oracle in plain numpy: the nearest of the normalised means.
    E, found = run.embeddings.astype(np.float64), run.table.cluster.copy()
    found[[int(name) for name in off]] = 7
    found[found == 2] = 1
    ids = np.array([0, 1, 4, 7])
    means = np.stack([E[found == each].mean(axis=0) for each in ids])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    cosine = E @ means.T
    nearest = ids[cosine.argmax(axis=1)]
    sure = np.diff(np.sort(cosine, axis=1)[:, -2:], axis=1)[:, 0] > 1e-6
    assert sure.sum() > 190
    predicted = np.array([int(row["cluster"]) for row in rows])
    np.testing.assert_array_equal(predicted[sure], nearest[sure])
    assert {row["name"] for row in rows if row["cluster"] == "0"} == {"'=rest"}  # no spreadsheet takes it for a formula
    assert {row["name"] for row in rows if row["cluster"] != "0"} == {""}


def test_what_needs_a_cluster_is_refused_in_one_line_where_all_is_junk(pixels, tmp_path, capsys):
    folder = shutil.copytree(pixels / "run", tmp_path / "run")
    write_edits(folder / "edits.jsonl", *({"op": "junk", "cluster": number} for number in range(5)))
    left = f"{folder}: every image is marked as junk, so no cluster is left: undo that: propos open {folder}"
    images = pixels / "images.npy"
    for words in (["predict", folder, images, "-o", tmp_path / "a.csv"], ["run", images, "--from", folder]):
        result = command(capsys, *words)
        assert (result.code, result.err) == (2, f"propos: {left}\n")
    with pytest.raises(ValueError, match="leave no cluster: every image is junk; undo some of them"):
        ProPos.load(folder)


def test_the_estimator_answers_by_corrected_clusters_and_saves_the_corrections(pixels, tmp_path, capsys):
    folder = shutil.copytree(pixels / "run", tmp_path / "run")
    edits = [{"op": "merge", "clusters": [2], "into": 1}, {"op": "junk", "cluster": 3}]
    command(capsys, "apply", folder, write_edits(tmp_path / "e.jsonl", *edits))
    model, found = ProPos.load(folder), Run.open(folder).table.cluster
    rows = {0: 0, 1: 1, 2: 1, 3: -1, 4: 2}
    assert model.labels_.tolist() == [rows[each] for each in found.tolist()]
    assert model.cluster_centers_.shape[0] == 3
    assert set(model.predict(np.load(pixels / "images.npy")).tolist()) == {0, 1, 2}
    model.save(tmp_path / "saved")
    again = ProPos.load(tmp_path / "saved")
    np.testing.assert_array_equal(again.labels_, model.labels_)
