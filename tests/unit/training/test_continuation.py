import numpy as np
import pytest
import torch

from helpers.oracle import best_agreement
from helpers.small import CPU, finished_run, same_weights, some_digits
from propos.common.errors import InputError
from propos.runs import Run, RunFolder
from propos.training import Silent, WarmStart, continuation_config, start_from, train
from propos.training.continuation import known_images


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """A finished run on the first 150 digits."""
    return Run.open(finished_run(tmp_path_factory.mktemp("runs") / "earlier", some_digits(np.arange(150))))


def test_the_settings_are_a_quarter_as_long_and_scatter_at_once(earlier):
    config = continuation_config(earlier)
    assert (config.train.epochs, config.sections["propos"]["psl_start"], config.clusters) == (1, 0, 10)
    assert config.pixels == earlier.config.pixels


def test_an_unfinished_run_is_refused(earlier, tmp_path):
    run = RunFolder.create(tmp_path / "run", {"status": "interrupted"}, earlier.config)
    with pytest.raises(InputError, match="is not finished"):
        continuation_config(Run.open(run.path))


def test_images_are_known_again_under_any_name(earlier):
    old = earlier.table.cluster
    order = np.random.default_rng(1).permutation(200)
    start = start_from(earlier, some_digits(order), CPU)
    expected = np.where(order < 150, old[np.minimum(order, 149)], -1)
    new = order >= 150
    assert start.labels.numpy()[~new].tolist() == expected[~new].tolist()
    assert (start.labels.numpy()[new] == -1).mean() > 0.9  # the digits hold a few all but identical images
    assert start.shared == int((start.labels >= 0).sum())


def test_a_changed_image_under_an_old_name_is_new(earlier):
    embeddings = earlier.embeddings.copy()
    embeddings[3] = -embeddings[3]
    found = known_images(earlier, earlier.table.images, embeddings)
    assert found[3] == -1
    assert (np.delete(found, 3) == np.delete(np.arange(150), 3)).all()


def test_where_no_image_is_shared_each_has_the_cluster_it_would_be_put_into(earlier):
    negative = some_digits(np.arange(150, 200))
    negative.images = 255 - negative.images
    start = start_from(earlier, negative, CPU)
    assert start.shared == 0
    assert (start.labels >= 0).all()


@pytest.mark.parametrize("clusters", [10, 8, 12])
def test_old_images_keep_their_numbers_whatever_the_number_of_clusters(earlier, clusters):
    source = some_digits(np.arange(200))
    config = continuation_config(earlier).with_settings({"clusters": clusters, "train.lr": 1e-4})
    fitted = train(config, source, CPU, Silent(), start=start_from(earlier, source, CPU))
    old, now = earlier.table.cluster, fitted.table.cluster[:150]
    assert (old == now).sum() == best_agreement(old, now, clusters)
    assert fitted.history[0]["measures"]["churn"] is not None


def test_a_start_is_read_back_as_it_was_written(earlier, tmp_path):
    start = start_from(earlier, some_digits(np.arange(200)), CPU)
    run = RunFolder.create(tmp_path / "run", {"status": "running", "from": "earlier"}, earlier.config)
    with pytest.raises(InputError, match="start a new run with another --out"):
        WarmStart.read(Run.open(run.path))
    start.write(run)
    again = WarmStart.read(Run.open(run.path))
    assert again is not None
    assert torch.equal(again.labels, start.labels)
    assert torch.equal(again.prototypes, start.prototypes)
    assert again.shared == start.shared
    assert all(torch.equal(again.weights[name], tensor) for name, tensor in start.weights.items())
    assert WarmStart.read(earlier) is None


def test_training_begins_with_the_earlier_weights(earlier):
    from propos.training.learner import build_learner
    from propos.training.model import Model
    from propos.training.state import State

    source = some_digits(np.arange(200))
    start = start_from(earlier, source, CPU)
    learner, state = build_learner(continuation_config(earlier), source, CPU), State()
    start.apply(learner, state)
    assert same_weights(learner.method, Model.from_run(earlier, CPU).method)
    assert state.partition is not None
