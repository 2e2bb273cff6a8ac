import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

from propos.common.errors import InputError
from propos.evaluation.classes import Classes
from propos.evaluation.neighbours import nearest_classes
from propos.evaluation.preservation import Bank, preservation_rates


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    classes = rng.integers(5, size=300)
    return torch.tensor(rng.normal(size=(5, 12))[classes] + rng.normal(size=(300, 12))), torch.tensor(classes)


def scikit(neighbours):
    def weights(distances):
        return np.exp((1 - distances) / 0.07)

    return KNeighborsClassifier(neighbours, metric="cosine", algorithm="brute", weights=weights)


@pytest.mark.parametrize("neighbours", [1, 5, 20, 200])
def test_votes_are_scikit_learns(blobs, neighbours):
    points, classes = blobs
    theirs = scikit(neighbours).fit(points[:200], classes[:200]).predict(points[200:])
    ours = nearest_classes(points[:200], classes[:200], points[200:], neighbours)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("neighbours", [1, 7])
def test_leaving_one_out_is_a_classifier_without_that_image(blobs, neighbours):
    points, classes = blobs[0][:60], blobs[1][:60]
    ours = nearest_classes(points, classes, points, neighbours, leave_one_out=True)
    for place in range(60):
        rest = np.arange(60) != place
        theirs = scikit(neighbours).fit(points[rest], classes[rest]).predict(points[place : place + 1])
        assert ours[place] == theirs[0]


def test_an_image_twice_in_the_bank_is_its_own_twins_neighbour():
    points = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.1, 1.0]])
    found = nearest_classes(points, torch.tensor([0, 1, 2, 2]), points, 1, leave_one_out=True)
    assert found.tolist() == [1, 0, 2, 2]


def test_many_chunks_give_what_one_gives(blobs, monkeypatch):
    points, classes = blobs
    whole = nearest_classes(points, classes, points, 9, leave_one_out=True)
    monkeypatch.setattr("propos.clustering.neighbours.COSINES_AT_A_TIME", 7 * 300)
    assert torch.equal(nearest_classes(points, classes, points, 9, leave_one_out=True), whole)


@pytest.mark.parametrize("neighbours", [0, 300])
def test_more_neighbours_than_there_are_is_refused(blobs, neighbours):
    points, classes = blobs
    with pytest.raises(InputError, match="299 other images"):
        nearest_classes(points, classes, points, neighbours, leave_one_out=True)


def test_labels_of_any_kind_become_numbers_alike():
    classes = Classes.from_labels(np.array([3, 10, 3]))
    assert classes.numbers(np.array(["10", "3", "4"])).tolist() == [0, 1, -1]
    assert Classes.from_labels(np.array(["cat", "ant"], dtype=object)).numbers(np.array(["ant", "cat"])).tolist() == [
        0,
        1,
    ]


def test_labels_that_tell_nothing_apart_are_refused():
    with pytest.raises(InputError, match="same label"):
        Classes.from_labels(np.array(["a", "a"]))
    with pytest.raises(InputError, match="none of the run's"):
        Classes.from_labels(np.array(["a", "b"])).numbers(np.array([1, 2]))


def test_preservation_is_the_share_of_noisy_projections_that_keep_their_predicted_class(blobs):
    points, classes = blobs
    rates = preservation_rates(
        Bank(points[:200], classes[:200]), points[200:], 0.8, 5, torch.Generator().manual_seed(3)
    )
    knn = scikit(5).fit(points[:200], classes[:200])
    same = torch.Generator().manual_seed(3)
    for rate in rates:
        noisy = points[200:] + 0.8 * torch.randn((100, 12), generator=same)
        assert rate.item() == pytest.approx(np.mean(knn.predict(noisy) == knn.predict(points[200:])))
    assert len(rates) == 10
    assert 0.3 < rates.mean() < 1
    assert rates.std() > 0


def test_without_noise_everything_is_preserved(blobs):
    points, classes = blobs
    draws = torch.Generator().manual_seed(0)
    assert preservation_rates(Bank(points, classes), points, 0.0, 5, draws, leave_one_out=True).tolist() == [1.0] * 10


def test_noise_is_added_to_the_raw_projection_so_longer_ones_keep_their_class_better(blobs):
    points, classes = blobs
    rates = [
        preservation_rates(Bank(points, classes), length * points, 1.0, 5, torch.Generator().manual_seed(0)).mean()
        for length in (1.0, 10.0)
    ]
    assert rates[1] > rates[0] + 0.05
