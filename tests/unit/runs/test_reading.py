"""A run folder is checked once, when it is opened or where it is first read; whatever is wrong is one line."""

import io
import json
import os
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import safetensors.numpy
from numpy.lib import format as npy

from helpers.runs import complete
from propos.common.errors import InputError
from propos.common.plain import read_text
from propos.runs import ImageTable, Prototypes, Run, RunFolder, rows_of
from propos.runs.clusters import gather_clusters

HALF = 0.5**0.5
MEASURES = {"n_clusters": 2, "uniformity_std": 0.2, "uniformity_reference": 0.5, "imbalance_ratio": 1.0}
MEASURES |= {"smallest_cluster": 2, "largest_cluster": 2, "churn": None, "nmi": 0.5}
LINE = {"epoch": 0, "losses": {"total": 1.0, "psl": None}, "rates": {}, "measures": MEASURES, "seconds": {}}


def line(**changes):
    return json.dumps({**LINE, **changes}).encode() + b"\n"


@pytest.fixture
def run(tmp_path):
    """A finished run of four images in two clusters of two dimensions."""
    folder = RunFolder.create(tmp_path / "run", {"status": "finished"}, complete(clusters=2))
    folder.write_history([LINE])
    folder.write_weights({"online.weight": np.ones((2, 2), np.float32)})
    folder.write_array("prototypes.npy", np.eye(2, dtype=np.float32))
    folder.write_array("embeddings.npy", np.array([[1, 0], [0, 1], [HALF, HALF], [0, 1]], np.float32))
    number = np.full(4, 0.5, np.float32)
    folder.write_images(ImageTable(["a", "b", "c", "d"], np.array([0, 1, 0, 1]), number, number))
    return folder.path


def read_everything(path):
    run = Run.open(path)
    return run.table, run.clusters, run.prototypes, run.embeddings, run.weights(), run.map()


def array_bytes(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npz_bytes(array):
    file = io.BytesIO()
    np.savez(file, array)
    return file.getvalue()


def header_of(shape):
    """Return the header of an array that is not there."""
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue()


def table_bytes(**columns):
    """Return the run's table with some columns changed, or left out where they are None."""
    whole = {
        "id": pa.array([0, 1, 2, 3]),
        "image": pa.array(["a", "b", "c", "d"]),
        "cluster": pa.array([0, 1, 0, 1], pa.int32()),
        "confidence": pa.array([0.5] * 4, pa.float32()),
        "distance": pa.array([0.5] * 4, pa.float32()),
    }
    file = io.BytesIO()
    kept = {name: column for name, column in {**whole, **columns}.items() if column is not None}
    pyarrow.parquet.write_table(pa.table(kept), file)
    return file.getvalue()


def doubled(name):
    """Return the run's table with a column twice."""
    table = pyarrow.parquet.read_table(io.BytesIO(table_bytes()))
    file = io.BytesIO()
    pyarrow.parquet.write_table(table.append_column(name, table[name]), file)
    return file.getvalue()


UNITS = np.eye(2, dtype=np.float32)[[0, 1, 0, 1]]
DAMAGES = [
    ("run.json", b"", "cannot be read"),
    ("run.json", b"[1]", "not a table of keys"),
    ("run.json", b"\xff", "byte 0 is not UTF-8"),
    ("run.json", b"[" * 100_000, "cannot be read"),
    ("run.json", b'{"schema": 3, "x": ' + b"[" * 30 + b"]" * 30 + b"}", "nested more than 20 levels deep"),
    ("run.json", b'{"schema": 3, "seconds": 1' + b"0" * 5_000 + b"}", "cannot be read"),
    ("run.json", b" " * 200_000, "larger than 100,000 bytes"),
    ("run.json", b"{}", "not a number: this is not a propos run"),
    (
        "run.json",
        b'{"schema": 2, "propos": "0.1.0"}',
        r"written by propos 0\.1\.0 in another format \(schema 2; this one",
    ),
    ("run.json", b'{"schema": 1}', r"an older propos in another format \(schema 1; this one reads 3\): run it again"),
    ("run.json", b'{"schema": 4}', r"a newer propos in another format \(schema 4; this one reads 3\): upgrade propos"),
    ("run.json", b'{"schema": 3}', "has no status"),
    ("run.json", b'{"schema": 3, "status": "done"}', "status = 'done'"),
    ("run.json", b'{"schema": 3, "status": "finished", "source": 3}', "source = 3"),
    ("run.json", b'{"schema": 3, "status": "finished", "seconds": NaN}', "seconds = nan"),
    ("config.yaml", b"", "expected keys and values"),
    ("config.yaml", b"clusters: 2\n", "pixels.mean and pixels.std"),
    ("config.yaml", b"a: &a [1]\nb: *a\n", "anchors and aliases"),
    ("config.yaml", b"a: &a [*a]\n", "anchors and aliases"),
    ("config.yaml", b"a: " + b"[" * 50_000, "nested more than 20 levels deep"),
    ("config.yaml", b"seed: 1" + b"0" * 30 + b"\n", "too many digits"),
    ("config.yaml", b"seed: 1" + b"0" * 9_000 + b"\n", "not valid YAML"),
    ("config.yaml", b"seed: 2001-99-99\n", "not valid YAML"),
    ("config.yaml", b"seed: 1\nseed: 2\n", "given twice"),
    ("config.yaml", b"x" * 200_000, "larger than 100,000 bytes"),
    ("config.yaml", b'"a\\nb": 1\n', r"unknown key 'a\\nb'"),
    ("history.jsonl", b"{", "line 1: cannot be read"),
    ("history.jsonl", line() + b"[]\n", "line 2"),
    ("history.jsonl", b'{"losses": {}}\n', "line 1: has no epoch"),
    ("history.jsonl", line(losses={"total": "low"}), "losses.total = 'low'"),
    ("history.jsonl", line(measures=MEASURES | {"nmi": float("nan")}), "measures.nmi = nan"),
    ("history.jsonl", line(measures={"nmi": 0.5}), "has no measures.n_clusters"),
    ("history.jsonl", line(measures=MEASURES | {"uniformity_reference": 0}), "measures.uniformity_reference = 0"),
    ("history.jsonl", line(seconds=None), "seconds = None"),
    ("history.jsonl", line(warnings=["collapse"]), "warnings.0"),
    ("suggestion.json", b"{}", "has no range"),
    (
        "suggestion.json",
        b'{"range": [2, 3], "scores": {"a": [1]}, "chosen": 2, "why": ""}',
        "one score for each number",
    ),
    ("skipped.csv", b"a,b\n", "first line is not image,reason"),
    ("skipped.csv", b"image,reason\nx\n", "row 1 has 1 columns"),
    ("prototypes.npy", b"", "not a .npy file"),
    ("prototypes.npy", npz_bytes(UNITS), "not a .npy file"),
    ("prototypes.npy", array_bytes(np.eye(2)), "holds float64, not float32"),
    ("prototypes.npy", array_bytes(np.array([{}], dtype=object)), "holds object"),
    ("prototypes.npy", array_bytes(np.eye(3, dtype=np.float32)), r"shape \(3, 3\), not \(2, any\)"),
    ("prototypes.npy", array_bytes(np.full((2, 2), np.nan, np.float32)), "NaN or infinity"),
    ("prototypes.npy", array_bytes(np.full((2, 2), 1e30, np.float32)), "longer than 1"),
    ("embeddings.npy", header_of((1 << 37, 2)), r"do not match the shape \(137438953472, 2\)"),
    ("embeddings.npy", header_of((-4, -2)), "do not match the shape"),
    ("embeddings.npy", array_bytes(UNITS)[:-1], "do not match the shape"),
    ("embeddings.npy", array_bytes(UNITS).replace(b"'<f4'", b"'<f4)"), "its header is damaged"),
    ("embeddings.npy", array_bytes(UNITS[:, :1]), r"not \(any, 2\)"),
    ("embeddings.npy", array_bytes(UNITS[:3]), "holds 4 images, but embeddings.npy 3"),
    ("clusters.parquet", b"", "cannot be read"),
    ("clusters.parquet", table_bytes()[:-30], "cannot be read"),
    ("clusters.parquet", table_bytes(cluster=None), "column cluster is missing"),
    ("clusters.parquet", doubled("id"), "duplicate column name"),
    ("clusters.parquet", table_bytes(cluster=pa.array(list("abcd"))), "column cluster holds string, not whole numbers"),
    ("clusters.parquet", table_bytes(cluster=pa.array([0, 1, 2, 0])), "row 2 is in cluster 2"),
    ("clusters.parquet", table_bytes(cluster=pa.array([0, 1, None, 0])), "column cluster has 1 rows without a value"),
    ("clusters.parquet", table_bytes(image=pa.array([1, 2, 3, 4])), "column image holds int64, not text"),
    ("clusters.parquet", table_bytes(image=pa.array(["a", None, "c", "d"])), "column image has 1 rows without"),
    ("clusters.parquet", table_bytes(image=pa.array(["a", "b\nc", "c", "d"])), "line break"),
    ("clusters.parquet", table_bytes(id=pa.array([0, 1, 3, 2])), "does not count the rows from 0"),
    ("clusters.parquet", table_bytes(distance=pa.array([0.5, 0.5, float("nan"), 0.5])), "distance holds NaN"),
    ("clusters.parquet", table_bytes(label=pa.array(["a", "b", None, "d"])), "column label has 1 rows without"),
    ("clusters.parquet", table_bytes(label=pa.array([[1], [2], [3], [4]])), "not labels"),
    ("model.safetensors", b"", "cannot be read"),
    ("model.safetensors", struct.pack("<Q", 1 << 60) + b"{}", "cannot be read"),
    ("model.safetensors", safetensors.numpy.save({"a": np.ones(2, np.float16)}), "a holds F16"),
    ("model.safetensors", safetensors.numpy.save({"a": np.full(2, np.inf, np.float32)}), "a holds NaN or infinity"),
    ("snapshots/epoch-0001.npy", npz_bytes(UNITS), "not a .npy file"),
    ("snapshots/epoch-0001.npy", array_bytes(UNITS[:3]), r"not \(4, any\)"),
    ("snapshots/epoch-0001.safetensors", b"x", "cannot be read"),
]


@pytest.mark.parametrize(("name", "content", "sentence"), DAMAGES)
def test_damage_is_one_line_that_names_the_file(run, name, content, sentence):
    read_everything(run)
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence) as error:
        read_everything(run)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(str(run))
    assert name in str(error.value) or "schema" in sentence


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a run"):
        Run.open(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        Run.open(tmp_path / "nowhere")


def test_a_misspelt_run_is_an_error_that_lists_the_latest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for age, name in enumerate(("photos-2", "photos-1", "trips-1", "old-1")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").write_text("{}")
        os.utime(tmp_path / "runs" / name / "run.json", (1_000 - age, 1_000 - age))
    (tmp_path / "runs" / "no run").mkdir()
    for name in ("runs/photo-1", "photos-1"):
        with pytest.raises(InputError) as error:
            Run.open(name)
        latest = "runs/photos-2, runs/photos-1, runs/trips-1"
        assert str(error.value) == f"{name}: no such folder; the latest here: {latest}"


@pytest.mark.parametrize("name", ["prototypes.npy", "embeddings.npy", "clusters.parquet", "model.safetensors"])
def test_a_missing_result_says_how_to_get_it(run, name):
    (run / name).unlink()
    with pytest.raises(InputError, match=f"{name}: missing, although the run is finished"):
        read_everything(run)
    RunFolder(run).update_info(status="interrupted")
    with pytest.raises(InputError, match=f"has no {name} .status: interrupted.: finish the run with --resume"):
        read_everything(run)


def test_keys_that_a_later_propos_added_are_kept(run):
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "from": "elsewhere", "new": {"a": [1]}}))
    RunFolder(run).update_info(status="failed")
    assert json.loads((run / "run.json").read_text()) == {
        "schema": 3, "status": "failed", "from": "elsewhere", "new": {"a": [1]}
    }  # fmt: skip
    assert Run.open(run).info.earlier == "elsewhere"


@pytest.mark.parametrize("content", [b"", npz_bytes(UNITS), array_bytes(UNITS[:2]), array_bytes(UNITS * np.nan)])
def test_a_damaged_map_is_none_to_be_made_again(run, content):
    (run / "map.npy").write_bytes(array_bytes(UNITS))
    assert np.array_equal(Run.open(run).map(), UNITS)
    (run / "map.npy").write_bytes(content)
    assert Run.open(run).map() is None


def test_a_cluster_is_found_by_its_id_wherever_its_prototype_stands():
    prototypes = Prototypes(np.array([[0.0, 1.0], [1.0, 0.0], [0.6, 0.8]], np.float32), np.array([7, 2, 30]))
    clusters = gather_clusters(prototypes, np.array([7, 30, 7, 30, 30]))
    assert [(cluster.id, cluster.members.tolist()) for cluster in clusters] == [(2, []), (7, [0, 2]), (30, [1, 3, 4])]
    assert prototypes.of(clusters).tolist() == prototypes.vectors[[1, 0, 2]].tolist()
    assert rows_of(np.array([30, 2, 7, 7]), prototypes.ids).tolist() == [2, 1, 0, 0]


@pytest.mark.parametrize("name", ["run.json", "config.yaml", "embeddings.npy", "checkpoint/000001-x.safetensors"])
@pytest.mark.parametrize("endless", ["pipe", "/dev/zero"])
def test_what_never_ends_is_not_read(run, name, endless):
    path = run / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if endless == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(endless)
    with pytest.raises(InputError, match="not a run" if name == "run.json" else f"{name}: is a pipe or a device"):
        read_everything(run)


def test_settings_that_never_end_are_not_read():
    with pytest.raises(InputError, match="/dev/zero: cannot be read: not a file"):
        read_text(Path("/dev/zero"))
