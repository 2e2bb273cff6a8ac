"""How many clusters are suggested, on mixtures whose number is known."""

import numpy as np
import pytest
import torch
from sklearn import metrics

from helpers.quick import quick_cases
from propos.clustering.silhouette import cosine_silhouette
from propos.clustering.suggestion import _best_first, numbers_to_try, suggest_clusters
from propos.common.errors import InputError


def mixture(clusters, seed, points=40, noise=0.05, dimension=24):
    """Return unit vectors around directions drawn at random, `points` around each."""
    draw = np.random.default_rng(seed)
    middles = draw.normal(size=(clusters, dimension))
    middles /= np.linalg.norm(middles, axis=1, keepdims=True)
    vectors = np.repeat(middles, points, axis=0) + noise * draw.normal(size=(clusters * points, dimension))
    return torch.from_numpy(vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).float()


def suggest(embeddings, lowest=2, highest=16, seed=0, **options):
    return suggest_clusters(embeddings, lowest, highest, torch.Generator().manual_seed(seed), **options)


@pytest.mark.parametrize(
    ("clusters", "seed"),
    quick_cases((2, 0), (5, 1), (13, 0), rest=[(3, 0), (5, 0), (9, 0), (2, 1), (3, 1), (9, 1), (13, 1)]),
)
def test_well_separated_mixtures_give_their_number(clusters, seed):
    found = suggest(mixture(clusters, seed), seed=seed)
    assert found.chosen == clusters
    best = found.tried.index(clusters)
    assert found.scores["stability"][best] == pytest.approx(1.0)
    assert found.scores["silhouette"][best] == max(found.scores["silhouette"])


def test_groups_of_unlike_size_give_their_number():
    middles = mixture(6, seed=4, points=120)
    keep = torch.cat(
        [torch.arange(120 * group, 120 * group + size) for group, size in enumerate([120, 90, 60, 40, 30, 20])]
    )
    assert suggest(middles[keep]).chosen == 6


def test_the_silhouette_is_that_of_scikit_learn():
    points = mixture(5, seed=0, noise=0.3)
    labels = np.random.default_rng(0).integers(0, 4, len(points))
    labels[0] = 4  # a point alone
    expected = metrics.silhouette_score(points.numpy(), labels, metric="cosine")
    assert cosine_silhouette(points.double(), torch.from_numpy(labels), 5) == pytest.approx(expected, abs=1e-6)


def test_empty_clusters_and_identical_points_take_no_part_in_the_silhouette():
    points = torch.eye(2).repeat_interleave(3, dim=0)
    labels = torch.tensor([0, 0, 0, 3, 3, 3])
    assert cosine_silhouette(points, labels, 5) == 1.0
    assert cosine_silhouette(points[:3], torch.zeros(3, dtype=torch.long), 1) == 0.0
    assert cosine_silhouette(points[:3], torch.tensor([0, 0, 1]), 2) == 0.0


def test_only_numbers_of_the_range_are_tried_and_reported():
    waiting = []
    found = suggest(mixture(4, seed=0), 6, 9, before_each=waiting.append)
    assert found.tried == (6, 7, 8, 9) == tuple(waiting)
    assert 6 <= found.chosen <= 9
    assert len(found.scores["silhouette"]) == len(found.scores["stability"]) == 4


@pytest.mark.parametrize(
    ("merits", "order"),
    [
        ([0.10, 0.30, 0.37, 0.36, 0.38], [2, 4, 3, 1, 0]),  # 0.37 is within 3% of 0.38, 0.30 is not
        ([0.10, 0.30, 0.20], [1, 2, 0]),
        ([0.0, 0.0], [0, 1]),
    ],
)
def test_the_least_number_that_is_as_good_as_the_best_is_taken(merits, order):
    assert _best_first(merits) == order


def test_why_is_two_lines_and_names_the_range_and_the_scores():
    found = suggest(mixture(5, seed=0), 3, 8)
    first, second = found.why.split("\n")
    assert first.startswith("5 clusters suggested, of 3 to 8")
    assert "stability 1.00" in first
    assert second in ("Next best: 4 and 6.", "Next best: 6 and 4.")


@pytest.mark.parametrize(
    ("lowest", "highest", "words"),
    [
        (2, 4, "largest number tried: look further with -k 4..8"),
        (9, 12, "smallest number tried: look lower with -k 2..9"),
        (7, 7, "the only number"),
    ],
)
def test_a_choice_at_the_edge_of_the_range_is_said(lowest, highest, words):
    assert words in suggest(mixture(7, seed=0), lowest, highest).why


def test_a_choice_of_two_clusters_is_reported_as_doubtful():
    assert suggest(mixture(2, seed=0)).why.endswith("if you expect more, use -k 5..16.")


def test_groups_that_other_images_do_not_give_again_are_weak_evidence():
    # Points spread evenly about a circle split anywhere: well apart, and never twice in the same place.
    angles = torch.arange(400) * 2 * torch.pi / 400
    circle = torch.stack([angles.cos(), angles.sin()], dim=1)
    found = suggest(circle, 3, 6)
    assert found.scores["silhouette"][0] > 0.15
    assert "depend on the sample of images" in found.why


def test_points_without_groups_are_said_to_be_weak_evidence():
    points = torch.nn.functional.normalize(torch.randn(400, 24, generator=torch.Generator().manual_seed(0)), dim=1)
    assert "evidence is weak" in suggest(points).why


@pytest.mark.full
def test_the_same_seed_gives_the_same_suggestion_and_length_does_not_matter():
    embeddings = mixture(4, seed=2, noise=0.2)
    assert suggest(embeddings).plain() == suggest(embeddings).plain()
    assert suggest(3 * embeddings).chosen == suggest(embeddings).chosen


@pytest.mark.full
def test_numbers_above_the_root_of_twice_the_images_are_not_chosen():
    # Thirty tight groups of four: without the rule 27 are found, of which each half knows two images. √240 is 15.5.
    found = suggest(mixture(30, seed=0, points=4, noise=0.01), 2, 40)
    assert found.tried == tuple(range(2, 41))
    assert found.chosen <= 15
    assert "So few images cannot support more than 15." in found.why


def test_doubtful_numbers_are_chosen_if_the_range_has_no_others():
    found = suggest(mixture(30, seed=0, points=4, noise=0.01), 20, 40)
    assert 25 <= found.chosen <= 32  # halves of two images each know the groups only nearly
    assert "too many" not in found.why


def test_identical_points_get_an_answer():
    found = suggest(torch.ones(20, 8), 2, 5)
    assert 2 <= found.chosen <= 5
    assert "evidence is weak" in found.why


def test_more_clusters_than_half_the_images_are_refused():
    with pytest.raises(InputError, match="2 to 11 clusters of 20 images: choose from 2 to 10"):
        suggest(torch.eye(20), 2, 11)


def test_a_long_range_is_thinned_out_and_keeps_its_ends():
    numbers = numbers_to_try(2, 1000)
    assert (numbers[0], numbers[-1]) == (2, 1000)
    assert len(numbers) <= 40
    assert list(numbers) == sorted(set(numbers))
    assert numbers_to_try(2, 40) == tuple(range(2, 41))


def test_plain_values_are_what_the_run_folder_holds():
    plain = suggest(mixture(3, seed=0), 2, 4).plain()
    assert list(plain) == ["range", "scores", "chosen", "why"]
    assert plain["range"] == [2, 3, 4]
    assert list(plain["scores"]) == ["silhouette", "stability"]
    assert all(isinstance(value, float) for values in plain["scores"].values() for value in values)
