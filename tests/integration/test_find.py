"""`propos find`, as a person would use it: the run's own images and new ones."""

import csv
import io

import numpy as np
import pytest
from PIL import Image

from helpers.command import command
from helpers.runs import corrected, folder_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = folder_run(tmp_path_factory.mktemp("searched"))
    return corrected(made.path, {"op": "rename", "cluster": int(made.table.cluster[3]), "name": "=mine"})


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_nearest_images_are_listed_with_their_clusters(run, tmp_path, capsys):
    name = run.table.images[3]
    result = command(capsys, "find", run.path, name, "-n", 7)
    assert result.code == 0, result.err
    cosines = run.embeddings @ run.embeddings[3]
    expected = [row for row in np.argsort(-cosines, kind="stable").tolist() if row != 3][:7]
    found = rows(result.out)
    assert [row["image"] for row in found] == [run.table.images[row] for row in expected]
    assert [float(row["cosine"]) for row in found] == pytest.approx(cosines[expected], abs=1e-4)
    assert [int(row["cluster"]) for row in found] == run.table.cluster[expected].tolist()
    assert {row["name"] for row in found if int(row["cluster"]) == run.table.cluster[3]} == {"'=mine"}
    written = command(capsys, "find", run.path, name, "-n", 7, "-o", tmp_path / "found.csv")
    assert written.out == f"7 images: {tmp_path / 'found.csv'}\n"
    assert rows((tmp_path / "found.csv").read_text(encoding="utf-8")) == found


def test_several_images_are_searched_together(run, capsys):
    one, other = run.embeddings[3], run.embeddings[50]
    result = command(capsys, "find", run.path, run.table.images[3], run.table.images[50], "-n", 5)
    order = [row for row in np.argsort(-(run.embeddings @ (one + other))).tolist() if row not in (3, 50)]
    assert [row["image"] for row in rows(result.out)] == [run.table.images[row] for row in order[:5]]


def test_what_is_no_image_is_refused_in_one_line(run, tmp_path, capsys):
    (tmp_path / "there.csv").write_text("mine")
    for given in (["nowhere.png"], [run.table.images[0], "-o", tmp_path / "there.csv"]):
        result = command(capsys, "find", run.path, *given)
        assert (result.code, result.err.count("\n"), result.out) == (2, 1, "")
    assert "'nowhere.png': neither an image of" in command(capsys, "find", run.path, "nowhere.png").err


def test_a_new_image_is_searched_through_the_runs_network(tmp_path, capsys):
    draw = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for number in range(40):
        pixels = draw.integers(0, 255, (16, 16, 3)) // (1 + number % 2 * 8)
        Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "photos" / f"{number:02}.png")
    made = command(capsys, "run", tmp_path / "photos", "-k", 2, "--method", "kmeans-pixels", "-o", tmp_path / "run")
    assert made.code == 0, made.err
    copy = tmp_path / "new.png"
    copy.write_bytes((tmp_path / "photos" / "07.png").read_bytes())
    found = rows(command(capsys, "find", tmp_path / "run", copy, "-n", 1).out)
    assert [(row["image"], row["cosine"]) for row in found] == [("07.png", "1.0000")]
