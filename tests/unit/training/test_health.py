import torch

from propos.training.e_step import Assignment
from propos.training.health import measure, warnings


def record(spread=0.9, largest=20, clusters=10):
    return {
        "uniformity_std": spread / 4,
        "uniformity_reference": 1 / 4,
        "largest_cluster": largest,
        "n_clusters": clusters,
    }


def line(measures):
    return {"epoch": 0, "measures": measures}


def test_a_healthy_run_has_no_warning():
    assert warnings(record(), [line(record())], images=100, past_warmup=True) == []


def test_a_collapse_is_said_with_what_to_try():
    (warning,) = warnings(record(spread=0.1), [], images=100, past_warmup=True)
    assert warning["code"] == "collapse"
    assert "collapse towards one point" in warning["text"]
    assert "train.lr" in warning["text"]


def test_a_falling_spread_is_said_before_it_reaches_zero():
    assert warnings(record(spread=0.4), [line(record(spread=0.9))], images=100, past_warmup=True)
    assert not warnings(record(spread=0.4), [line(record(spread=0.5))], images=100, past_warmup=True)


def test_overlapping_clusters_are_said_though_nothing_is_trained():
    (warning,) = warnings({"neighbours_together": 0.71}, [], images=100, past_warmup=False)
    assert warning["code"] == "weak"
    assert "71% of an image's nearest neighbours" in warning["text"]
    assert not warnings({"neighbours_together": 0.81}, [], images=100, past_warmup=False)


def test_one_cluster_holding_most_images_is_said():
    (warning,) = warnings(record(largest=60), [], images=100, past_warmup=True)
    assert warning["code"] == "imbalance"
    assert "60% of the images" in warning["text"]
    assert not warnings(record(largest=60, clusters=2), [], images=100, past_warmup=True)


def test_each_warning_is_said_once():
    bad = record(spread=0.1)
    said = {**line(bad), "warnings": warnings(bad, [], images=100, past_warmup=True)}
    assert warnings(bad, [said], images=100, past_warmup=True) == []


def test_an_untrained_network_is_not_warned_of():
    assert warnings(record(spread=0.1), [], images=100, past_warmup=False) == []


def test_measures_by_hand():
    embeddings = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assignment = Assignment(torch.tensor([0, 0, 0, 1]), torch.eye(2), embeddings, churn=0.25)
    found = measure(assignment, None)
    assert found["uniformity_std"] == 0.5
    assert found["imbalance_ratio"] == 1 / 3
    assert (found["smallest_cluster"], found["largest_cluster"], found["churn"]) == (1, 3, 0.25)
    assert "nmi" not in found
    assert measure(assignment, embeddings[:, 1].numpy().astype(int))["accuracy"] == 0.75
