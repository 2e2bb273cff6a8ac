import json

import numpy as np
import pyarrow.parquet
import pytest

from propos.config import Config
from propos.errors import InputError
from propos.runs import Clusters, RunFolder, newest_folder, next_free_folder, read_label_file, write_table
from propos.runs.atomic import write_atomically


def clusters():
    return Clusters(["0", "1"], np.array([1, 0]), np.array([0.9, 0.5]), np.array([0.1, 0.25]), np.array(["cat", "dog"]))


@pytest.fixture
def run(tmp_path):
    return RunFolder.create(tmp_path / "run", {"status": "running"}, Config(clusters=3))


def test_what_is_written_is_read_back(run):
    again = RunFolder.open(run.path)
    assert again.config() == Config(clusters=3)
    assert again.info()["schema"] == 1
    again.update_info(status="finished")
    assert RunFolder.open(run.path).info()["status"] == "finished"
    run.write_history([{"epoch": 0, "loss": 0.1}, {"epoch": 1, "loss": None}])
    assert run.history() == [{"epoch": 0, "loss": 0.1}, {"epoch": 1, "loss": None}]
    run.write_array("prototypes.npy", np.eye(3))
    assert np.array_equal(run.array("prototypes.npy"), np.eye(3))
    run.write_weights({"a": np.ones(2, np.float32)})
    assert run.weights()["a"].tolist() == [1, 1]
    run.write_clusters(clusters())
    found = run.clusters()
    assert found.images == ["0", "1"]
    assert found.cluster.tolist() == [1, 0]
    assert found.label.tolist() == ["cat", "dog"]


def test_the_table_has_the_columns_that_are_promised(run):
    run.write_clusters(clusters())
    table = pyarrow.parquet.read_table(run.path / "clusters.parquet")
    assert table.column_names == ["id", "image", "cluster", "confidence", "distance", "label"]
    assert table["distance"].to_pylist() == pytest.approx([0.1, 0.25])


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def fail(file):
        file.write(b"new")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_with_a_run_or_with_other_things_is_not_overwritten(tmp_path, run):
    with pytest.raises(InputError, match="--resume"):
        RunFolder.create(run.path, {}, Config())
    other = tmp_path / "other"
    other.mkdir()
    (other / "holiday.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        RunFolder.create(other, {}, Config())
    with pytest.raises(InputError, match="is a file"):
        RunFolder.create(other / "holiday.txt", {}, Config())
    with pytest.raises(InputError, match="cannot be made"):
        RunFolder.create(other / "holiday.txt" / "run", {}, Config())


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no run"):
        RunFolder.open(tmp_path)


def test_a_run_of_a_newer_version_is_refused(run):
    run.update_info(schema=99)
    with pytest.raises(InputError, match="newer propos"):
        RunFolder.open(run.path)


@pytest.mark.parametrize("content", ["", "{", "[1]"])
def test_a_broken_run_json_is_refused_by_name(run, content):
    (run.path / "run.json").write_text(content)
    with pytest.raises(InputError, match=r"run\.json: cannot be read"):
        RunFolder.open(run.path)


@pytest.mark.parametrize("name", ["prototypes.npy", "clusters.parquet", "model.safetensors"])
def test_an_unfinished_run_says_how_to_finish_it(run, name):
    read = {"prototypes.npy": lambda: run.array(name), "clusters.parquet": run.clusters}.get(name, run.weights)
    with pytest.raises(InputError, match="finish the run with --resume"):
        read()
    (run.path / name).write_bytes(b"rubbish")
    with pytest.raises(InputError, match=f"{name}: cannot be read"):
        read()


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_tables_are_written_in_each_format(tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    write_table(clusters(), path)
    if ending == "json":
        rows = json.loads(path.read_text())
    elif ending == "csv":
        header, *lines = path.read_text().splitlines()
        assert header == '"id","image","cluster","confidence","distance","label"'
        rows = [{"cluster": int(line.split(",")[2])} for line in lines]
    else:
        rows = pyarrow.parquet.read_table(path).to_pylist()
    assert [row["cluster"] for row in rows] == [1, 0]


def test_other_endings_are_refused_before_any_work(tmp_path):
    with pytest.raises(InputError, match=r"\.csv, \.parquet, \.json"):
        write_table(clusters(), tmp_path / "out.xlsx")
    with pytest.raises(InputError, match="does not exist"):
        write_table(clusters(), tmp_path / "nowhere" / "out.csv")


def test_labels_are_read_by_image_in_any_order_with_or_without_a_byte_order_mark(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("\ufeffimage,label\n1,dog\n0,cat\n7,more\n", encoding="utf-8")
    assert read_label_file(path, ["0", "1"]).tolist() == ["cat", "dog"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("image,label\n0,cat\n", "no label for 1 of 2"),
        ("a,b\n0,cat\n", "needs image,label"),
        ("", "needs image,label"),
        ("image,label\n0\n1,a\n", "line 2: give '0' one label"),
        ("image,label\n0,a\n0,b\n1,a\n", "line 3: give '0' one label"),
    ],
)
def test_label_files_that_do_not_fit_are_refused(tmp_path, content, sentence):
    path = tmp_path / "labels.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=sentence):
        read_label_file(path, ["0", "1"])


def test_a_label_file_of_another_encoding_is_refused(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_bytes("image,label\n0,hôtel\n".encode("latin-1"))
    with pytest.raises(InputError, match="cannot be read as CSV in UTF-8"):
        read_label_file(path, ["0"])


def test_names_with_brackets_are_numbered_too(tmp_path):
    (tmp_path / "p [2020]-1").mkdir()
    assert next_free_folder(tmp_path, "p [2020]").name == "p [2020]-2"


def test_run_folders_are_numbered(tmp_path):
    assert next_free_folder(tmp_path, "digits").name == "digits-1"
    for name in ("digits-1", "digits-10", "digits-old", "digits-2"):
        (tmp_path / name).mkdir()
    assert next_free_folder(tmp_path, "digits").name == "digits-11"
    assert newest_folder(tmp_path, "digits").name == "digits-10"
    with pytest.raises(InputError, match="no run of photos"):
        newest_folder(tmp_path, "photos")
