"""Cuts through a tree of clusters; expected values are worked out by hand."""

import json
import random

import numpy as np
import pytest

from helpers.trees import random_tree
from propos.common.errors import InputError
from propos.runs import ImageTable, Prototypes, Tree, parse_edits
from propos.runs.corrections import WRONG, correct, replay
from propos.runs.edits import Known
from propos.runs.tree import TREE, read_tree

# Clusters 0 (leaves 3 and 4) and 1, which is a leaf, are merged into 6; that and cluster 2 are all images, 7.
TREE_OF_THREE = Tree((3, 4, 1, 2), ((0, 3, 4), (6, 0, 1), (7, 6, 2)), np.array([0, 0, 1, 2, 2, 3]))
CLUSTER = np.array([0, 0, 0, 1, 1, 2])
NAMES = ["a", "b", "c", "d", "e", "f"]


def after(*edits, tree=TREE_OF_THREE):
    lines = [json.dumps({"v": 1, "id": f"e{number}", **edit}) for number, edit in enumerate(edits)]
    parsed = [edit for _, edit in parse_edits("\n".join(lines).encode(), "given")[0]]
    return replay(NAMES, CLUSTER, np.arange(3), parsed, tree)


def cut(node, *opened):
    return {"op": "cut", "node": node, "open": opened}


def move(into, *images):
    return {"op": "move", "images": images, "into": into}


def rename(cluster, name):
    return {"op": "rename", "cluster": cluster, "name": name}


def confirm(cluster):
    return {"op": "confirm", "cluster": cluster}


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([], [0, 0, 0, 1, 1, 2]),  # the run's own cut
        ([cut(7)], [7] * 6),
        ([cut(7, 7)], [6, 6, 6, 6, 6, 2]),
        ([cut(7, 7, 6, 0)], [3, 3, 4, 1, 1, 2]),
        ([cut(7, 0)], [7] * 6),  # what is below a closed node is closed
        ([cut(0, 0)], [3, 3, 4, 1, 1, 2]),  # one branch
        ([cut(7, 7), cut(6, 6)], [0, 0, 0, 1, 1, 2]),
        ([cut(7, 7, 6, 0), {"op": "undo", "edit": "e0"}], [0, 0, 0, 1, 1, 2]),
        ([cut(7), cut(0, 0), {"op": "undo", "edit": "e1"}], [7] * 6),
    ],
)
def test_a_cut_chooses_the_clusters_of_its_branch(edits, expected):
    found = after(*edits)
    assert found.cluster.tolist() == expected
    assert set(expected) <= found.standing


def test_images_stay_where_a_person_put_them_whatever_the_cut():
    # f is put into cluster 0, whose larger child is 3; a is junk; then 0 is divided, and later all is joined.
    put = [move(0, "f"), {"op": "junk", "images": ["a"]}]
    assert after(*put, cut(0, 0)).cluster.tolist() == [-1, 3, 4, 1, 1, 3]
    assert after(*put, cut(0, 0), cut(7, 7)).cluster.tolist() == [-1, 6, 6, 6, 6, 6]
    assert after(*put, cut(0, 0), cut(7, 7, 6)).cluster.tolist() == [-1, 0, 0, 1, 1, 0]


def test_what_was_split_off_or_merged_goes_with_its_cluster():
    split = {"op": "split", "images": ["e"], "into": 9}
    merge = {"op": "merge", "clusters": [9], "into": 1}
    assert after(split, cut(7, 7)).cluster.tolist() == [6, 6, 6, 6, 9, 2]
    assert after(split, merge, cut(7, 7)).cluster.tolist() == [6, 6, 6, 6, 6, 2]
    # A merge of two of the tree's clusters is replaced by a cut of their branch, and stays at one of another branch.
    merged = {"op": "merge", "clusters": [2], "into": 1}
    assert after(merged, cut(0, 0)).cluster.tolist() == [3, 3, 4, 1, 1, 1]
    assert after(merged, cut(7, 7, 6)).cluster.tolist() == [0, 0, 0, 1, 1, 2]


def test_images_confirmed_in_a_cluster_are_not_confirmed_in_its_parts():
    assert after(confirm(0), cut(0, 0)).how.astype(bool).tolist() == [False] * 6
    assert after(confirm(1), cut(0, 0)).how.astype(bool).tolist() == [False, False, False, True, True, False]
    assert after(confirm(0), cut(7, 7)).how.astype(bool).tolist() == [True, True, True, False, False, False]
    undone = after(confirm(0), cut(0, 0), {"op": "undo", "edit": "e1"})
    assert undone.how.astype(bool).tolist() == [True, True, True, False, False, False]


def test_an_image_that_was_wrong_may_be_right_in_a_larger_cluster_but_not_in_a_part():
    wrong = {"op": "wrong", "images": ["a"]}
    assert after(wrong, cut(0, 0)).how.tolist() == [WRONG, 0, 0, 0, 0, 0]
    assert after(wrong, cut(7, 7)).how.tolist() == [0] * 6


def test_a_divided_cluster_keeps_its_name_and_gets_it_back():
    named = [rename(0, "dogs"), rename(6, "animals")]  # 6 is divided at the run's own cut
    assert after(*named).names == {0: "dogs", 6: "animals"}
    assert after(*named, cut(0, 0), rename(3, "spaniels")).names == {0: "dogs", 6: "animals", 3: "spaniels"}
    joined = after(*named, cut(7, 7))
    assert joined.names[6] == "animals"
    # A cluster that is part of another by now is named with it, as after a merge.
    assert after(cut(7, 7), rename(0, "all of it")).names == {6: "all of it"}


def test_without_a_tree_cuts_have_no_effect():
    assert after(cut(7), tree=None).cluster.tolist() == CLUSTER.tolist()


def test_a_split_without_the_tree_gives_way_to_its_ids():
    known = Known(range(3))
    known.add_tree(TREE_OF_THREE.ids)
    line = b'{"v":1,"id":"s","op":"split","images":["a"],"into":3}'
    (edit,) = known.add_new(parse_edits(line, "theirs")[0], "theirs", others=True)
    assert edit.into == 8
    with pytest.raises(InputError, match="unknown cluster 99"):
        known.add_new(parse_edits(b'{"v":1,"id":"c","op":"cut","node":99,"open":[]}', "mine")[0], "mine")


def test_a_tree_is_read_as_it_was_written(tmp_path):
    for seed in range(20):
        rng = random.Random(seed)
        cluster = np.array([rng.randrange(4) for _ in range(30)])
        tree = random_tree(rng, cluster, range(4))
        tree.write(tmp_path)
        again = read_tree(tmp_path, cluster, np.arange(4))
        assert (again.leaves, again.merges, again.leaf.tolist()) == (tree.leaves, tree.merges, tree.leaf.tolist())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda file: file | {"leaf": "#"}, "cannot be read"),
        (lambda file: file | {"leaf": file["leaf"][:4]}, "cannot be read|its images are not"),
        (lambda file: file | {"merges": file["merges"][:-1]}, "its nodes do not form a tree"),
        (lambda file: file | {"merges": [file["merges"][0]] * 3}, "its nodes do not form a tree"),
        (lambda file: file | {"leaves": [3, 4, 1, 9]}, "its nodes do not form a tree"),
        (lambda file: file | {"v": 2}, "cannot be read"),
        (lambda file: file | {"leaf": "AAAAAAAAAAAAAAAA"}, "its clusters are not the run's"),
    ],
)
def test_a_damaged_tree_is_refused(tmp_path, change, words):
    TREE_OF_THREE.write(tmp_path)
    path = tmp_path / TREE
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(InputError, match=words):
        read_tree(tmp_path, CLUSTER, np.arange(3))


def test_a_tree_of_other_clusters_is_refused(tmp_path):
    TREE_OF_THREE.write(tmp_path)
    for cluster, ids in ((CLUSTER[:5], 3), (1 - CLUSTER.clip(max=1), 3), (CLUSTER, 30)):
        with pytest.raises(InputError, match="restore it"):
            read_tree(tmp_path, cluster, np.arange(ids))


def test_clusters_know_the_names_above_them():
    table = ImageTable(NAMES, CLUSTER.astype(np.int32), np.ones(6, np.float32), np.zeros(6, np.float32))
    points = np.eye(3, dtype=np.float32)
    lines = [rename(7, "all"), rename(6, "animals"), rename(0, "dogs"), cut(0, 0), rename(3, "spaniels")]
    text = "\n".join(json.dumps({"v": 1, "id": f"e{number}", **edit}) for number, edit in enumerate(lines))
    edits = [edit for _, edit in parse_edits(text.encode(), "given")[0]]
    found = correct(table, Prototypes.in_order(points), lambda: points[CLUSTER], edits, TREE_OF_THREE)
    above = {each.id: [name for _, name in each.above] for each in found.clusters}
    assert above == {3: ["all", "animals", "dogs"], 4: ["all", "animals", "dogs"], 1: ["all", "animals"], 2: ["all"]}
    assert TREE_OF_THREE.coarsest(1) == ()
    assert TREE_OF_THREE.coarsest(3) == (6, 7)
