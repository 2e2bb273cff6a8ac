import numpy as np

from propos.review.report.groups import describe_groups
from propos.runs import ImageTable, Prototypes
from propos.runs.clusters import gather_clusters

PROTOTYPES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], dtype=np.float32)


def table(label=None):
    return ImageTable(
        images=["a", "b", "c", "d"],
        cluster=np.array([0, 0, 0, 1], np.int32),
        confidence=np.array([0.9, 0.2, 0.7, 0.5], np.float32),
        distance=np.array([0.3, 0.1, 0.2, 0.4], np.float32),
        label=label,
    )


def described(images):
    prototypes = Prototypes.in_order(PROTOTYPES)
    return describe_groups(gather_clusters(prototypes, images.cluster), images, prototypes)


def test_images_come_from_the_middle_outwards_and_by_doubt():
    first = described(table())[0]
    assert first.size == 3
    assert first.typical == [1, 2, 0]
    assert first.odd == [0, 2, 1]
    assert first.borderline == [1, 2, 0]
    assert np.isclose(first.tightness, 0.8)


def test_nearest_clusters_are_ordered_by_the_cosine_of_prototypes():
    groups = described(table())
    assert [number for number, _ in groups[0].nearest] == [2, 1]
    assert np.isclose(groups[0].nearest[0][1], 0.6)
    assert [number for number, _ in groups[1].nearest] == [2, 0]


def test_an_empty_cluster_has_a_card_too():
    empty = described(table())[2]
    assert (empty.size, empty.typical, empty.tightness, empty.label) == (0, [], 0.0, None)


def test_the_commonest_label_names_a_cluster():
    first = described(table(np.array(["cat", "dog", "cat", "dog"])))[0]
    assert first.label == "cat"
    assert np.isclose(first.share, 2 / 3)
