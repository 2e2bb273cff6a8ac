"""Every method, on one small fixture: it trains, resumes to the bit and predicts."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch

from helpers.methods import OF_IMAGES, TRAINED, each
from helpers.small import CPU, digits, quick_config, quick_train, same_weights, without_times
from propos.common.errors import InputError, Interrupted
from propos.evaluation import nmi
from propos.methods import check_method, find_method, method_names, stages_of
from propos.runs import Run, RunFolder
from propos.training import Model, stage_epochs

PAPERS = {
    "propos", "propos-no-psl", "propos-no-psa", "propos-alignment-only", "propos-uniformity-only", "byol",
    "simsiam", "simclr", "moco", "pcl", "cc", "cc-psl", "byol-cc", "byol-pcl",
    "kmeans-features", "kmeans-pixels", "kmeans-random",
}  # fmt: skip


@pytest.fixture(scope="module")
def trained():
    """Return each method's short run, trained when first asked for."""
    runs = {}

    def of(method):
        if method not in runs:
            runs[method] = quick_train(**settings_of(method))
        return runs[method]

    return of


def decides(config):
    """Return what assigns images to clusters at the end of a run."""
    stages = stages_of(config)
    return stages[-1].decides if stages else "k-means"


def settings_of(method):
    """Return the settings of a short run: longer and faster ones where several new heads decide."""
    if decides(quick_config(method=method)) == "k-means":
        return {"method": method}
    own = find_method(method).Settings.model_fields
    heads = {key: value for key, value in {"heads": 3, "heads_lr": 0.02}.items() if key in own}
    return {"method": method, "train__epochs": 12, **heads}


def test_all_the_papers_methods_are_here():
    assert set(method_names()) >= PAPERS
    assert method_names()[0] == "propos"


@pytest.mark.parametrize("name", method_names())
def test_every_method_says_what_it_is_and_where_it_is_from(name):
    kind = find_method(name)
    assert (kind.__doc__ or "").strip()
    assert kind.reference
    assert kind.verified


@pytest.mark.parametrize("method", each(OF_IMAGES))
def test_it_learns_something_and_writes_strict_history(trained, method):
    fitted = trained(method)
    config = fitted.model.config
    assert len(fitted.history) == (config.train.epochs if find_method(method).trains else 0) + 1
    json.dumps(fitted.history, allow_nan=False)
    if decides(config) == "k-means":
        assert sorted(set(fitted.table.cluster.tolist())) == list(range(10))
    # Three epochs on 200 digits are few; guessing gives an NMI near 0.08.
    assert nmi(digits().labels, fitted.table.cluster) > 0.2


@pytest.mark.parametrize("method", each(TRAINED))
def test_the_total_is_the_sum_of_terms_none_of_which_is_idle(trained, method):
    for record in trained(method).history[:-1]:
        terms = {name: loss for name, loss in record["losses"].items() if name != "total"}
        assert terms
        assert sum(terms.values()) == pytest.approx(record["losses"]["total"], rel=1e-5, abs=1e-6)
    assert all(terms.values())  # at the end


@pytest.mark.parametrize("method", each(OF_IMAGES))
def test_it_resumes_to_the_same_bits(tmp_path, trained, method):
    settings = settings_of(method)
    config = quick_config(**settings)
    run = RunFolder.create(tmp_path / "run", {"status": "running"}, config)
    # An epoch asks four times, when it opens and after each step: in the second epoch, in the first of later stages.
    stages = stages_of(config)
    later = [4 * span.start + 3 for span in (stage_epochs(stages, config.train.epochs) if stages else ())[1:]]
    for before, question in pairwise([0, 8, *(asked for asked in later if asked > 8)]) if stages else ():
        asked = iter(range(question - before - 1))
        with pytest.raises(Interrupted):
            quick_train(run=run, stop=lambda asked=asked: next(asked, None) is None, **settings)
    resumed = quick_train(run=run, **settings)
    assert same_weights(resumed.model.method, trained(method).model.method)
    assert without_times(resumed.history) == without_times(trained(method).history)
    assert (resumed.embeddings == trained(method).embeddings).all()


@pytest.mark.parametrize("method", each(OF_IMAGES))
def test_a_saved_run_predicts_its_own_images_where_it_put_them(tmp_path, trained, method):
    run = RunFolder.create(tmp_path / "run", {"status": "finished"}, trained(method).model.config)
    trained(method).write(run)
    found = Model.from_run(Run.open(run.path), CPU).predict(digits())
    assert (found.cluster == trained(method).table.cluster).mean() > 0.99


@pytest.mark.parametrize("method", each(OF_IMAGES))
def test_a_cluster_head_is_scored_next_to_k_means(trained, method):
    measures = trained(method).history[-1]["measures"]
    assert ("head_accuracy" in measures) is find_method(method).has_head


@pytest.mark.full
def test_nothing_is_trained_for_the_baselines(trained):
    fresh = quick_train(method="kmeans-random", train__epochs=1)
    assert same_weights(fresh.model.method, trained("kmeans-random").model.method)
    pixels = digits().batch(np.arange(200)).reshape(200, -1) / 255.0
    config = trained("kmeans-pixels").model.config
    pixels = (pixels - config.pixels.mean[0]) / config.pixels.std[0]
    expected = pixels / np.linalg.norm(pixels, axis=1, keepdims=True)
    np.testing.assert_allclose(trained("kmeans-pixels").embeddings, expected, atol=1e-5)


def test_propos_without_its_parts_is_byol_to_the_bit():
    """Without scattering and without noise nothing of ProPos is left but BYOL."""
    byol = quick_train(method="byol").model.method.state_dict()
    plain = quick_train(method="propos-no-psl", sigma=0.0).model.method.state_dict()
    assert all(torch.equal(plain[name], value) for name, value in byol.items())


def test_a_misspelt_method_is_named():
    with pytest.raises(InputError, match='--method simclear: unknown method "simclear": did you mean "simclr"'):
        check_method("simclear")
