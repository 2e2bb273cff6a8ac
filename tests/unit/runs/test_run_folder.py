import errno
import json
import resource
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow.parquet
import pytest

from helpers.runs import complete
from propos.common.errors import InputError, describe_os_error
from propos.config import Config
from propos.runs import ImageTable, Run, RunFolder, newest_folder, next_free_folder, read_label_file, write_table
from propos.runs.atomic import write_atomically


def table():
    return ImageTable(
        ["0", "1"], np.array([1, 0]), np.array([0.9, 0.5]), np.array([0.1, 0.25]), np.array(["cat", "dog"])
    )


def large_table(count=10_000):
    numbers = np.random.default_rng(0).random(count)
    return ImageTable([str(number) for number in numbers], np.arange(count), numbers, numbers)


@pytest.fixture
def run(tmp_path):
    return RunFolder.create(tmp_path / "run", {"status": "running"}, complete(clusters=3))


def test_what_is_written_is_read_back(run):
    assert Run.open(run.path).config == complete(clusters=3)
    assert json.loads((run.path / "run.json").read_text()) == {"schema": 3, "status": "running"}
    run.update_info(status="finished", seconds=1.5)
    rest = {"rates": {}, "measures": {}, "seconds": {"estep": 0.5}}
    history = [{"epoch": 0, "losses": {"total": 0.1}, **rest}, {"epoch": 1, "losses": {}, **rest}]
    run.write_history(history)
    run.write_array("prototypes.npy", np.eye(3, dtype=np.float32))
    run.write_array("embeddings.npy", np.eye(3, dtype=np.float32)[[1, 0]])
    run.write_weights({"a": np.ones(2, np.float32)})
    run.write_images(table())
    run.write_skipped([("a, b.png", "cut short")])
    again = Run.open(run.path)
    assert (again.finished, again.info.seconds) == (True, 1.5)
    assert again.history == history
    assert np.array_equal(again.prototypes.vectors, np.eye(3))
    assert again.embeddings.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert again.weights()["a"].tolist() == [1, 1]
    assert again.skipped == [("a, b.png", "cut short")]
    assert again.table.images == ["0", "1"]
    assert again.table.cluster.tolist() == [1, 0]
    assert again.table.label.tolist() == ["cat", "dog"]
    assert [(cluster.id, cluster.name, cluster.members.tolist()) for cluster in again.clusters] == [
        (0, None, [1]), (1, None, [0]), (2, None, [])
    ]  # fmt: skip


def test_the_table_has_the_columns_that_are_promised(run):
    run.write_images(table())
    written = pyarrow.parquet.read_table(run.path / "clusters.parquet")
    assert written.column_names == ["id", "image", "cluster", "confidence", "distance", "label"]
    assert written["distance"].to_pylist() == pytest.approx([0.1, 0.25])


def test_a_failed_write_leaves_only_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def fail(file):
        file.write(b"new")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "write",
    [
        lambda run: run.write_array("embeddings.npy", np.random.default_rng(0).random((1000, 10))),
        lambda run: run.write_weights({"a": np.zeros(10_000)}),
        *(lambda run, e=e: write_table(large_table(), run.path / f"a.{e}") for e in ("csv", "json", "parquet")),
    ],
    ids=["npy", "safetensors", "csv", "json", "parquet"],
)
def test_a_full_disk_is_named_whatever_is_written(run, write):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, before[1]))
    try:
        with pytest.raises(OSError) as failure:
            write(run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert failure.value.errno == errno.EFBIG
    assert "free some space" in describe_os_error(failure.value)
    assert {path.name for path in run.path.iterdir()} == {"config.yaml", "run.json"}


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
    with pytest.raises(InputError, match="cannot create the folder"):
        RunFolder.create(other / "holiday.txt" / "run", {}, Config())


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_tables_are_written_in_each_format(tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    write_table(table(), path)
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
        write_table(table(), tmp_path / "out.xlsx")
    with pytest.raises(InputError, match="does not exist"):
        write_table(table(), tmp_path / "nowhere" / "out.csv")


def test_labels_are_read_by_image_in_any_order_with_or_without_a_byte_order_mark(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("\ufeffimage,label\n1,dog\n0,cat\n7,more\n", encoding="utf-8")
    assert read_label_file(path, ["0", "1"]).tolist() == ["cat", "dog"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("image,label\n0,cat\n", "no label for 1 of 2"),
        ("image,label\n/home/0,cat\n", "the file names '/home/0': name images as the run does, relative to its source"),
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


def test_labels_of_some_images_are_enough_where_that_is_said(tmp_path):
    path, said = tmp_path / "labels.csv", []
    path.write_text("image,label\n2,dog\n0,cat\n")
    assert read_label_file(path, ["0", "1", "2"], said.append, some=True).tolist() == ["cat", None, "dog"]
    assert said == [f"{path}: labels for 2 of 3 images: scores are computed on these"]
    with pytest.raises(InputError, match="no label for 2 of 2"):
        read_label_file(path, ["a", "b"], some=True)


def test_a_label_file_of_another_encoding_is_read_with_a_warning(tmp_path):
    path, said = tmp_path / "labels.csv", []
    path.write_bytes("image,label\n0,hôtel\n".encode("latin-1"))
    assert read_label_file(path, ["0"], said.append).tolist() == ["hôtel"]
    assert len(said) == 1
    assert "read as Windows-1252" in said[0]


def test_names_with_brackets_are_numbered_too(tmp_path):
    (tmp_path / "p [2020]-1").mkdir()
    with next_free_folder(tmp_path, "p [2020]") as folder:
        assert folder.name == "p [2020]-2"


def test_run_folders_are_numbered(tmp_path):
    with next_free_folder(tmp_path / "runs", "digits") as folder:
        assert folder.name == "digits-1"
        assert folder.is_dir()
    for name in ("digits-1", "digits-10", "digits-old", "digits-2"):
        (tmp_path / name).mkdir()
    with next_free_folder(tmp_path, "digits") as folder:
        assert folder.name == "digits-11"
    assert newest_folder(tmp_path, "digits").name == "digits-10"
    with pytest.raises(InputError, match="no run of photos"):
        newest_folder(tmp_path, "photos")


def test_runs_that_begin_at_once_get_numbers_of_their_own(tmp_path):
    together = threading.Barrier(8)

    def begin(_):
        together.wait()
        with next_free_folder(tmp_path, "photos") as folder:
            together.wait()
            return folder.name

    with ThreadPoolExecutor(8) as threads:
        names = set(threads.map(begin, range(8)))
    assert names == {f"photos-{number}" for number in range(1, 9)}
    assert not list(tmp_path.iterdir())


def test_a_run_that_could_not_begin_leaves_nothing(tmp_path):
    unwritable = {"status": object()}
    with pytest.raises(TypeError):
        RunFolder.create(tmp_path / "run", unwritable, Config())
    assert not list(tmp_path.iterdir())
    with pytest.raises(TypeError):
        RunFolder.create(tmp_path, unwritable, Config())
    assert not list(tmp_path.iterdir())


def test_what_a_run_leaves_that_was_killed_before_it_began_is_in_nobodys_way(tmp_path):
    (tmp_path / "config.yaml").write_text(Config(clusters=7).to_yaml())
    (tmp_path / ".run.json.123.part").write_text("{")
    RunFolder.create(tmp_path, {"status": "running"}, complete(clusters=3))
    assert Run.open(tmp_path).config.clusters == 3


def test_settings_that_a_person_wrote_are_not_taken_for_remains(tmp_path):
    (tmp_path / "config.yaml").write_text("clusters: 7\n")
    with pytest.raises(InputError, match="not empty"):
        RunFolder.create(tmp_path, {}, Config())
