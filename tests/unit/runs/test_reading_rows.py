"""Embeddings are read by row: commands that need a few of them do not read them all."""

import numpy as np
import pytest

from helpers.runs import folder_run, write_edits
from propos.cli.suggest_k import _of_run
from propos.common.errors import InputError
from propos.review.report import choose_images_to_check
from propos.runner import Request
from propos.runs import Run, VectorFile


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return folder_run(tmp_path_factory.mktemp("rows"))


@pytest.fixture
def vectors(tmp_path):
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.save(tmp_path / "rows.npy", rows)
    return rows, tmp_path / "rows.npy"


def test_rows_are_those_of_the_array(vectors):
    rows, path = vectors
    read = VectorFile(path)
    assert (len(read), read.shape) == (50, (50, 3))
    for where in (slice(3, 9), slice(None), np.array([7, 7, 0, 49]), np.arange(0)):
        assert np.array_equal(read[where], rows[where])


@pytest.mark.parametrize(("value", "reason"), [(np.nan, "NaN or infinity"), (2.0, "longer than 1")])
def test_a_bad_row_is_refused_when_it_is_read(vectors, value, reason):
    rows, path = vectors
    rows[20, 1] = value
    np.save(path, rows)
    read = VectorFile(path)
    assert np.array_equal(read[np.array([19, 21])], rows[[19, 21]])
    with pytest.raises(InputError, match=reason):
        read[15:25]


def test_columns_first_are_refused_in_one_line(vectors):
    rows, path = vectors
    np.save(path, np.asfortranarray(rows))
    with pytest.raises(InputError, match="save it by row"):
        VectorFile(path)


def test_questions_and_the_number_of_clusters_need_some_rows_only(run):
    opened = Run.open(run.path)
    assert choose_images_to_check(opened, 5) is not None
    assert "embeddings" not in vars(opened)
    suggestion = _of_run(Request(source=str(run.path), clusters="9..10"), "stability")
    assert suggestion.tried == (9, 10)


def test_corrections_follow_the_log_without_reading_all_embeddings(run):
    opened = Run.open(run.path)
    before, name = opened.corrected, opened.table.images[0]
    assert opened.corrected is before
    other = (opened.table.cluster[0] + 1) % len(opened.prototypes.ids)
    write_edits(run.path / "edits.jsonl", {"op": "move", "images": [name], "into": int(other)})
    try:
        opened.edits.catch_up()
        now = opened.corrected
    finally:
        (run.path / "edits.jsonl").unlink()
    assert (now.table.cluster[0], bool(now.confirmed[0])) == (other, True)
    assert "embeddings" not in vars(opened)
    own = now.table.cluster == other
    mean = opened.embeddings[own].mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(now.prototypes.vectors[other], mean / np.linalg.norm(mean), atol=1e-6)
