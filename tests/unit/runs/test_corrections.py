"""Corrections applied to a run's clusters; expected values are worked out by hand."""

import json

import numpy as np
import pytest

from propos.runs import JUNK, ImageTable, Prototypes, parse_edits
from propos.runs.corrections import correct

# Six images on the unit circle, at 0°, 90°, 180°, 270°, and 0° and 90° again.
EMBEDDINGS = np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0], [0, 1]], dtype=np.float32)
CLUSTER = np.array([0, 1, 2, 3, 0, 1], dtype=np.int32)
VECTORS = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float32)
NAMES = ["a.png", "b.png", "c.png", "d.png", "e.png", "f.png"]
HALF = np.sqrt(0.5)


def table():
    return ImageTable(NAMES, CLUSTER, np.full(6, 0.75, np.float32), np.full(6, 0.25, np.float32))


def corrected(*edits, embeddings=lambda: EMBEDDINGS):
    lines = [json.dumps({"v": 1, "id": f"e{number}", **edit}) for number, edit in enumerate(edits)]
    parsed = [edit for _, edit in parse_edits("\n".join(lines).encode(), "given")[0]]
    return correct(table(), Prototypes.in_order(VECTORS), embeddings, parsed)


def unread():
    raise AssertionError("no image changed its cluster")


def rename(cluster, name):
    return {"op": "rename", "cluster": cluster, "name": name}


def move(into, *images):
    return {"op": "move", "images": images, "into": into}


def split(into, *images):
    return {"op": "split", "images": images, "into": into}


def merge(into, *clusters):
    return {"op": "merge", "clusters": clusters, "into": into}


def undo(number):
    return {"op": "undo", "edit": f"e{number}"}


def redo(number):
    return {"op": "redo", "edit": f"e{number}"}


def found(result):
    return result.table.cluster.tolist()


def test_without_edits_everything_is_as_training_left_it():
    result = corrected(embeddings=unread)
    assert (result.edited, result.regrouped, result.gone) == (False, False, ())
    assert result.table.cluster is not None
    np.testing.assert_array_equal(result.table.confidence, table().confidence)
    np.testing.assert_array_equal(result.prototypes.vectors, VECTORS)
    assert not result.confirmed.any()


def test_names_and_descriptions_are_the_last_that_were_given():
    result = corrected(
        rename(0, "dogs"),
        rename(0, "cats"),
        rename(1, "birds"),
        rename(1, None),
        {"op": "describe", "cluster": 0, "text": "asleep"},
        embeddings=unread,
    )
    assert result.names() == {0: "cats", 1: None, 2: None, 3: None}
    assert [cluster.description for cluster in result.clusters] == ["asleep", None, None, None]
    assert (result.edited, result.regrouped) == (True, False)


def test_a_merged_cluster_is_one_with_the_normalised_mean_of_its_images():
    result = corrected(rename(1, "old"), rename(0, "kept"), merge(0, 1))
    assert found(result) == [0, 0, 2, 3, 0, 0]
    assert result.names() == {0: "kept", 2: None, 3: None}
    assert result.prototypes.ids.tolist() == [0, 2, 3]
    np.testing.assert_allclose(result.prototypes.vectors, [[HALF, HALF], [-1, 0], [0, -1]], atol=1e-7)
    np.testing.assert_allclose(result.table.distance, [1 - HALF, 1 - HALF, 0.25, 0.25, 1 - HALF, 1 - HALF], atol=1e-6)
    # Cosines of the first image to the three prototypes: √½, −1, 0.
    weights = np.exp(np.array([HALF, -1, 0]) / 0.1)
    assert result.table.confidence[0] == pytest.approx(weights[0] / weights.sum(), rel=1e-5)
    assert [cluster.members.tolist() for cluster in result.clusters] == [[0, 1, 4, 5], [2], [3]]


def test_split_off_images_make_a_cluster_and_the_rest_keeps_the_other():
    result = corrected(split(9, "e.png", "f.png"), rename(9, "new"))
    assert found(result) == [0, 1, 2, 3, 9, 9]
    assert result.names()[9] == "new"
    np.testing.assert_allclose(result.prototypes.vectors[-1], [HALF, HALF], atol=1e-7)
    np.testing.assert_allclose(result.prototypes.vectors[:4], VECTORS, atol=1e-7)
    assert result.confirmed.tolist() == [False, False, False, False, True, True]


def test_moved_images_change_both_prototypes_and_leave_the_others_to_the_bit():
    result = corrected(move(2, "b.png"))
    assert found(result) == [0, 2, 2, 3, 0, 1]
    np.testing.assert_allclose(result.prototypes.vectors[2], [-HALF, HALF], atol=1e-7)
    np.testing.assert_array_equal(result.prototypes.vectors[[0, 3]], VECTORS[[0, 3]])
    assert result.table.distance[3] == np.float32(0.25)


def test_a_cluster_that_lost_all_its_images_is_none_until_one_comes_back():
    away = move(0, "c.png")
    assert corrected(away).prototypes.ids.tolist() == [0, 1, 3]
    back = corrected(away, move(2, "d.png"))
    assert back.prototypes.ids.tolist() == [0, 1, 2]
    assert found(back) == [0, 1, 0, 2, 0, 1]


def test_junk_belongs_to_no_cluster_and_is_brought_back_by_moving_it():
    result = corrected({"op": "junk", "cluster": 1}, {"op": "junk", "images": ["c.png"]}, move(0, "f.png"))
    assert found(result) == [0, JUNK, JUNK, 3, 0, 0]
    assert result.junk.tolist() == [False, True, True, False, False, False]
    assert result.prototypes.ids.tolist() == [0, 3]
    assert result.table.distance[1] == np.float32(0.25)  # as it was found


def test_all_junk_leaves_no_cluster_until_it_is_undone():
    junk = {"op": "junk", "images": NAMES}
    result = corrected(junk)
    assert found(result) == [JUNK] * 6
    assert (result.clusters, result.names(), result.prototypes.vectors.shape) == ((), {}, (0, 2))
    assert result.table.distance.tolist() == [0.25] * 6  # as they were found
    assert corrected(junk, undo(0)).prototypes.ids.tolist() == [0, 1, 2, 3]


def test_images_are_confirmed_by_name_and_by_cluster_until_they_are_junk():
    result = corrected(
        {"op": "confirm", "images": ["a.png"]},
        merge(1, 2),
        {"op": "confirm", "cluster": 2},  # part of 1 by now
        {"op": "junk", "images": ["f.png"]},
        {"op": "confirm", "images": ["f.png"]},
    )
    assert result.confirmed.tolist() == [True, True, True, False, False, False]


def test_undone_edits_take_no_part_and_redone_ones_take_their_old_place():
    edits = [merge(0, 1), move(1, "d.png"), rename(1, "both")]
    assert found(corrected(*edits)) == [0, 0, 2, 0, 0, 0]
    undone = corrected(*edits, undo(0))
    assert found(undone) == [0, 1, 2, 1, 0, 1]
    assert undone.names() == {0: None, 1: "both", 2: None}
    assert found(corrected(*edits, undo(0), undo(0), redo(0))) == [0, 0, 2, 0, 0, 0]


def test_edits_of_a_cluster_whose_splitting_was_undone_have_no_effect():
    edits = [split(9, "a.png"), move(9, "b.png"), rename(9, "x"), merge(9, 1), {"op": "junk", "cluster": 9}, undo(0)]
    result = corrected(*edits, embeddings=unread)
    assert found(result) == CLUSTER.tolist()
    assert not result.regrouped
    assert not result.confirmed.any()


def test_merging_in_a_circle_ends():
    assert found(corrected(merge(1, 0), merge(0, 1), merge(0, 2))) == [1, 1, 1, 3, 1, 1]


def test_images_that_are_gone_are_listed_and_the_others_moved():
    result = corrected(move(3, "gone.png", "a.png"), {"op": "confirm", "images": ["gone.png", "lost.png"]})
    assert found(result) == [3, 1, 2, 3, 0, 1]
    assert result.gone == ("gone.png", "lost.png")


def test_images_that_cancel_out_have_no_prototype_and_no_nan():
    result = corrected(split(9, "a.png", "c.png"))
    np.testing.assert_array_equal(result.prototypes.vectors[-1], [0, 0])
    assert np.isfinite(result.table.confidence).all()
