"""Every export: what it holds, by readers that are not ours (see also test_export_readers.py), and what is refused."""

import ast
import csv
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image

from helpers.command import command
from helpers.runs import folder_run, write_edits
from helpers.small import digits
from propos import ProPos
from propos.review.export.safe_names import Distinct, safe_name
from propos.runs import Run

NAMED, SAME = "CON: a/b?", "twice"
EDITS = [
    {"op": "rename", "cluster": 0, "name": NAMED},
    {"op": "rename", "cluster": 3, "name": SAME},
    {"op": "rename", "cluster": 4, "name": SAME},
    {"op": "rename", "cluster": 5, "name": "=1+1"},
    {"op": "merge", "clusters": [1], "into": 0},
    {"op": "junk", "cluster": 2},
    {"op": "confirm", "cluster": 3},
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = folder_run(tmp_path_factory.mktemp("export"))
    write_edits(made.path / "edits.jsonl", *EDITS)
    return Run.open(made.path)


@pytest.fixture(scope="module")
def expected(run):
    """The cluster of each image, worked out from the edits above."""
    found = run.table.cluster.astype(np.int64)
    return np.where(found == 1, 0, np.where(found == 2, -1, found))


@pytest.fixture
def export(run, tmp_path, capsys):
    def exported(form, name, *options):
        result = command(capsys, "export", run.path, "--to", form, "-o", tmp_path / name, *options)
        assert result.code == 0, result.err
        return tmp_path / name

    return exported


def test_csv_is_read_by_pythons_own_reader(run, export, expected):
    with export("csv", "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["cluster"]) for row in rows] == expected.tolist()
    by_cluster = {0: NAMED, 3: SAME, 4: SAME, 5: "'=1+1"}
    assert [row["name"] for row in rows] == [by_cluster.get(each, "") for each in expected.tolist()]
    assert [row["confirmed"] == "true" for row in rows] == (expected == 3).tolist()
    assert [row["image"] for row in rows] == run.table.images


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "embedding-atlas"])
def test_a_file_may_be_named_without_an_ending(export, form):
    ending = "parquet" if form == "embedding-atlas" else form
    assert export(form, "labels").read_bytes() == export(form, f"labels.{ending}").read_bytes()


@pytest.mark.parametrize("how", ["symlink", "hardlink", "copy"])
def test_folders_hold_every_image_once_and_leave_originals_alone(run, export, expected, how):
    source = Path(run.config.source)
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    out = export("folders", "sorted", "--how", how)
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before
    folders = {path.name: sorted(path.iterdir()) for path in out.iterdir()}
    rest = {f"cluster {number}": number for number in (6, 7, 8, 9)}
    numbers = {"CON_ a_b_": 0, SAME: 3, f"{SAME} (4)": 4, "=1+1": 5, **rest}
    assert set(folders) == set(numbers)
    for name, number in numbers.items():
        originals = sorted(before[source / run.table.images[row]] for row in np.flatnonzero(expected == number))
        assert sorted(path.read_bytes() for path in folders[name]) == originals
    files = [path for inside in folders.values() for path in inside]
    assert all(path.is_symlink() == (how == "symlink") for path in files)
    linked = {path.stat().st_ino for path in before}
    assert all((path.stat().st_ino in linked) == (how != "copy") for path in files)


def test_a_dry_run_says_what_would_go_where_and_writes_nothing(run, tmp_path, capsys, expected):
    out, junk = tmp_path / "sorted", (expected < 0).sum()
    assert junk > 1
    result = command(capsys, "export", run.path, "--to", "folders", "-o", out, "--dry-run")
    *lines, total, left_out = result.out.splitlines()
    assert len(lines) == (expected >= 0).sum()
    assert all(f" -> {out}{os.sep}" in line for line in lines)
    assert total == f"{len(lines)} images would go to {out}"
    assert left_out == f"{junk} images are junk and are left out"
    other = command(capsys, "export", run.path, "--to", "onnx", "-o", tmp_path / "model.onnx", "--dry-run")
    assert (other.code, other.err) == (2, "propos: --dry-run: only available with --to folders\n")
    assert list(tmp_path.iterdir()) == []
    assert command(capsys, "export", run.path, "--to", "folders", "-o", out).out.splitlines()[1:] == [left_out]


def test_existing_files_are_not_overwritten(run, tmp_path, capsys):
    (tmp_path / "there.csv").write_text("mine")
    source = Path(run.config.source)
    for form, out, words in [
        ("csv", tmp_path / "there.csv", "already exists"),
        ("folders", tmp_path, "already exists"),
        ("folders", source / "sorted", "the folder of the run's images"),
        ("model", run.path / "model", "the folder of the run:"),
        ("csv", tmp_path / "no" / "a.csv", "does not exist"),
        ("csv", tmp_path / "a.parquet", "name the file *.csv"),
    ]:
        result = command(capsys, "export", run.path, "--to", form, "-o", out)
        assert result.code == 2
        assert words in result.err
        assert result.err.count("\n") == 1
    assert (tmp_path / "there.csv").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["there.csv"]


def test_coco_refers_to_images_and_categories_that_are_there(run, export, expected):
    content = json.loads(export("coco", "coco.json").read_text(encoding="utf-8"))
    images = {image["id"]: image for image in content["images"]}
    categories = {category["id"]: category["name"] for category in content["categories"]}
    assert len(images) == len(content["images"]) == len(run.table.images)
    assert len(categories) == len(content["categories"]) == 8
    for image in images.values():
        with Image.open(image["file_name"]) as opened:
            assert opened.size == (image["width"], image["height"])
    assert len({each["id"] for each in content["annotations"]}) == (expected >= 0).sum()
    names = {0: NAMED, 3: f"{SAME} (3)", 4: f"{SAME} (4)", 5: "=1+1"}
    for each in content["annotations"]:
        image = images[each["image_id"]]
        assert each["bbox"] == [0, 0, image["width"], image["height"]]
        assert (each["area"], each["iscrowd"]) == (image["width"] * image["height"], 0)
        number = int(expected[each["image_id"] - 1])
        assert categories[each["category_id"]] == names.get(number, f"cluster {number}")


def test_fiftyones_layout_has_a_path_and_a_class_for_every_image(run, export, expected):
    out = export("fiftyone", "dataset")
    assert sorted(path.name for path in out.iterdir()) == ["data.json", "labels.json"]
    data, labels = (json.loads((out / name).read_text(encoding="utf-8")) for name in ("data.json", "labels.json"))
    assert set(labels) == {"classes", "labels"}
    assert set(data) == set(labels["labels"])
    assert len(set(labels["classes"])) == len(labels["classes"]) == 8
    read_row = {str(Path(run.config.source) / name): row for row, name in enumerate(run.table.images)}
    for key, path in data.items():
        number = int(expected[read_row[path]])
        names = {0: NAMED, 3: f"{SAME} (3)", 4: f"{SAME} (4)", 5: "=1+1"}
        assert labels["classes"][labels["labels"][key]] == names.get(number, f"cluster {number}")
    assert len(data) == (expected >= 0).sum()


def test_how_fiftyone_loads_it_is_said(run, tmp_path, capsys):
    """Its importer, left to itself, looks for a folder of images: data.json has to be named."""
    result = command(capsys, "export", run.path, "--to", "fiftyone", "-o", tmp_path / "out")
    call = result.out.splitlines()[1].removeprefix("Load it: ")
    keywords = {each.arg: ast.unparse(each.value) for each in ast.parse(call, mode="eval").body.keywords}
    assert keywords == {
        "dataset_dir": repr(str(tmp_path / "out")),
        "data_path": "'data.json'",
        "dataset_type": "fiftyone.types.FiftyOneImageClassificationDataset",
    }


def test_embedding_atlas_finds_vectors_names_and_places(run, export, expected):
    table = pyarrow.parquet.read_table(export("embedding-atlas", "atlas.parquet"))
    vectors = np.array(table["vector"].to_pylist(), dtype=np.float32)
    np.testing.assert_array_equal(vectors, run.embeddings)
    assert [name == "junk" for name in table["name"].to_pylist()] == (expected == -1).tolist()
    assert "projection_x" not in table.column_names
    place = np.random.default_rng(0).random((len(vectors), 2), dtype=np.float32)
    np.save(run.path / "map.npy", place)
    placed = pyarrow.parquet.read_table(export("embedding-atlas", "placed.parquet"))
    (run.path / "map.npy").unlink()
    np.testing.assert_array_equal(placed["projection_y"].to_numpy(), place[:, 1])


def test_a_model_is_loaded_and_answers_as_the_run_does(tmp_path, capsys):
    images = digits(200).batch(np.arange(200))[:, 0]
    ProPos(5, method="kmeans-pixels", random_state=0).fit(images).save(tmp_path / "run")
    write_edits(tmp_path / "run" / "edits.jsonl", *EDITS[:1], {"op": "merge", "clusters": [2], "into": 1})
    result = command(capsys, "export", tmp_path / "run", "--to", "model", "-o", tmp_path / "model")
    assert result.out == f"4 clusters: {tmp_path / 'model'}\n"
    answers = ProPos.load(tmp_path / "run").predict(images)
    shutil.rmtree(tmp_path / "run")
    model = ProPos.load(tmp_path / "model")
    np.testing.assert_array_equal(model.predict(images), answers)
    assert set(answers.tolist()) == {0, 1, 2, 3}
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlibrary_name: propos\n")
    assert "4 clusters of 200 images, corrected by hand with 2 edits." in card
    assert json.loads((tmp_path / "model" / "config.json").read_text())["method"] == "kmeans-pixels"


def test_forms_that_need_files_say_so_where_there_are_none(tmp_path, capsys):
    images = digits(50).batch(np.arange(50))[:, 0]
    ProPos(2, method="kmeans-pixels", random_state=0).fit(images).save(tmp_path / "run")
    for form in ("folders", "coco", "fiftyone"):
        result = command(capsys, "export", tmp_path / "run", "--to", form, "-o", tmp_path / "out")
        assert result.code == 2
        assert "its images were an array in memory, without files" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("cats", "cats"),
        ("con", "_con"),
        ("NUL.txt", "_NUL.txt"),
        ("com¹", "_com¹"),
        ("console", "console"),
        ("..", "_"),
        (".git", "_.git"),
        ("a/b\\c:d", "a_b_c_d"),
        ("ends in dots...", "ends in dots"),
        ("  ", "_"),
        ("\u202egnp", "_gnp"),
        ("e\u0301", "é"),
        ("ö" * 200, "ö" * 60),
        ("x" * 300 + ".jpeg", "x" * 115 + ".jpeg"),
    ],
)
def test_names_are_such_as_every_system_takes(text, name):
    assert safe_name(text) == name


def test_names_differ_where_letters_have_no_case():
    name = Distinct()
    assert [name("A.png", 1), name("a.png", 2), name("a.PNG", 3), name("a.png", 2)] == [
        "A.png",
        "a (2).png",
        "a (3).PNG",
        "a (2-1).png",
    ]
