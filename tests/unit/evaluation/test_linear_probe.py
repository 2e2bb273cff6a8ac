import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from propos.common.errors import InputError
from propos.training.linear_probe import ProbeSettings, held_out, probe_accuracy, train_probe


@pytest.fixture(scope="module")
def features():
    """Positive features, as a backbone's are, of four classes that overlap a little."""
    rng = np.random.default_rng(0)
    classes = rng.integers(4, size=800)
    values = np.maximum(rng.normal(size=(4, 16))[classes] + 0.9 * rng.normal(size=(800, 16)), 0)
    return torch.tensor(values, dtype=torch.float32), torch.tensor(classes)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("optimiser", ["sgd", "lars"])
def test_it_does_about_as_well_as_scikit_learns_logistic_regression(features, optimiser):
    values, classes = features
    probe = train_probe(values[:600].__getitem__, 16, classes[:600], seeded(), ProbeSettings(optimiser))
    ours = probe_accuracy(probe, values[600:].split(64), classes[600:])
    images, kinds = values.numpy(), classes.numpy()
    theirs = LogisticRegression(max_iter=1000).fit(images[:600], kinds[:600]).score(images[600:], kinds[600:])
    assert theirs < 0.99
    assert ours > theirs - 0.03


def test_the_same_seed_trains_the_same_probe_and_another_another(features):
    few = ProbeSettings(epochs=2)
    values, classes = features
    first, again, other = (train_probe(values.__getitem__, 16, classes, seeded(seed), few) for seed in (0, 0, 1))
    assert torch.equal(first.weight, again.weight)
    assert not torch.equal(first.weight, other.weight)


def test_it_starts_from_small_random_weights_and_no_bias(features):
    values, classes = features
    probe = train_probe(values.__getitem__, 16, classes, seeded(), ProbeSettings(lr=0.0, epochs=1))
    assert probe.weight.std().item() == pytest.approx(0.01, rel=0.2)
    assert not probe.bias.any()


def test_one_step_is_the_papers_by_hand():
    values, classes = torch.tensor([[1.0, 2.0]]), torch.tensor([1])
    start = 0.01 * torch.randn((2, 2), generator=seeded())
    probe = train_probe(values.__getitem__, 2, classes, seeded(), ProbeSettings(epochs=1))
    # One image: a batch of one at 0.1 / 256, and the gradient of cross entropy is (softmax − one-hot) xᵀ.
    error = torch.softmax(start @ values[0], dim=0) - torch.tensor([0.0, 1.0])
    torch.testing.assert_close(probe.weight.detach(), start - 0.1 / 256 * error[:, None] * values)
    torch.testing.assert_close(probe.bias.detach(), -0.1 / 256 * error)


def test_classes_never_learnt_are_wrong():
    values = torch.eye(2)
    probe = train_probe(values.__getitem__, 2, torch.tensor([0, 1]), seeded())
    assert probe_accuracy(probe, [values], torch.tensor([-1, -1])) == 0


@pytest.mark.parametrize(("count", "test"), [(2, 1), (4, 1), (11, 2), (100, 20)])
def test_a_fifth_is_held_out_and_nothing_is_in_both(count, test):
    learnt, tested = held_out(count, seeded())
    assert len(tested) == test
    assert sorted([*learnt.tolist(), *tested.tolist()]) == list(range(count))


def test_features_that_cannot_be_used_are_refused():
    with pytest.raises(InputError, match="one image"):
        held_out(1, seeded())
    with pytest.raises(InputError, match="NaN"):
        train_probe(torch.tensor([[torch.nan], [1.0]]).__getitem__, 1, torch.tensor([0, 1]), seeded())
