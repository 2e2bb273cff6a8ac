"""Two runs compared: images by name, clusters by the best matching."""

import base64
from pathlib import Path

import numpy as np
import pytest

from helpers.runs import make_run
from propos.common.errors import InputError
from propos.review.report.run_diff import compare_runs
from propos.runs import ImageTable, Run, RunFolder


def run_of(path, names, cluster):
    """Write a run of four-pixel images that has these clusters."""
    pixels = np.eye(4)[np.asarray(cluster)] + 0.1
    run = make_run(path, path / "gone", names, pixels, clusters=len(set(cluster)))
    sure, near = np.full(len(names), 0.9, np.float32), np.full(len(names), 0.1, np.float32)
    RunFolder(path).write_images(ImageTable(list(names), np.array(cluster, np.int32), sure, near))
    return Run.open(run.path)


def places(entry):
    return np.frombuffer(base64.b64decode(entry["base64"]), np.int32).tolist()


def test_images_go_by_name_and_clusters_by_what_they_share(tmp_path):
    ours = run_of(tmp_path / "a", ["a", "b", "c", "d", "e"], [0, 0, 1, 1, 2])
    theirs = run_of(tmp_path / "b", ["e", "d", "c", "b", "a"], [0, 1, 1, 1, 2])
    found = compare_runs(ours, theirs)
    # By name theirs are a: 2, b: 1, c: 1, d: 1, e: 0; 1 is ours 1 (c, d), 2 is 0 (a), 0 is 2 (e).
    assert places(found["of"]) == [2, 1, 1, 1, 0]
    assert sorted(map(tuple, found["pairs"])) == [(0, 2), (1, 1), (2, 0)]
    assert found["name"] == "b"
    assert found["names"] == ["Cluster 0", "Cluster 1", "Cluster 2"]


def test_run_folders_of_the_same_name_are_distinguished_by_their_parents(tmp_path, monkeypatch):
    ours = run_of(tmp_path / "a" / "cells" / "run-1", ["a", "b"], [0, 1])
    theirs = run_of(tmp_path / "b" / "cells" / "run-1", ["a", "b"], [0, 1])
    assert compare_runs(ours, theirs)["name"] == "b/cells/run-1"
    monkeypatch.chdir(tmp_path / "b" / "cells")
    assert compare_runs(ours, Run.open(Path("run-1")))["name"] == "b/cells/run-1"
    sibling = run_of(tmp_path / "a" / "cells" / "run-2", ["a", "b"], [0, 1])
    assert compare_runs(ours, sibling)["name"] == "run-2"
    assert compare_runs(ours, ours)["name"] == "run-1"


def test_more_clusters_there_than_here_leave_some_without_a_match(tmp_path):
    ours = run_of(tmp_path / "a", ["a", "b", "c", "d"], [0, 0, 1, 1])
    theirs = run_of(tmp_path / "b", ["a", "b", "c", "d"], [0, 1, 2, 2])
    found = compare_runs(ours, theirs)
    assert len(found["pairs"]) == 2
    assert (2, 1) in found["pairs"]
    assert sorted(found["rows"]) == [0, 1, 2]


def test_other_images_are_refused_in_a_line(tmp_path):
    ours = run_of(tmp_path / "a", ["a", "b", "c"], [0, 1, 1])
    theirs = run_of(tmp_path / "b", ["a", "b", "x"], [0, 1, 1])
    with pytest.raises(InputError, match=r"contains 2 of the 3 images of .*and not .c.: only runs of the same images"):
        compare_runs(ours, theirs)


def test_numbers_of_two_arrays_are_not_names(tmp_path):
    runs = [run_of(tmp_path / name, ["0", "1", "2"], [0, 1, 1]) for name in "ab"]
    assert compare_runs(*runs)["nmi"] == pytest.approx(1.0)
    source = runs[1].info.plain()["source"]
    RunFolder(runs[1].path).update_info(source={**source, "fingerprint": "of other pixels"})
    with pytest.raises(InputError, match="not the same images"):
        compare_runs(runs[0], Run.open(runs[1].path))
