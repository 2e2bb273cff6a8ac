"""Every method, on one small fixture: it trains, resumes to the bit, predicts, and survives awkward numbers."""

import json
from itertools import pairwise

import numpy as np
import pytest

from helpers.small import CPU, digits, quick_config, quick_train, same_weights, without_times
from propos.config import Config
from propos.errors import InputError, Interrupted
from propos.evaluation import nmi
from propos.methods import METHODS, build_method, check_method
from propos.recipes import RECIPES, build_recipe, for_method
from propos.runs import Run, RunFolder
from propos.training import Model

BASELINES = {"kmeans-pixels", "kmeans-random"}
OF_IMAGES = [name for name in METHODS if name != "kmeans-features"]
TRAINED = [name for name in OF_IMAGES if name not in BASELINES]
PAPERS = [
    "propos", "propos-no-psl", "propos-no-psa", "propos-alignment-only", "propos-uniformity-only", "byol",
    "simsiam", "simclr", "moco", "pcl", "cc", "cc-psl", "byol-cc", "byol-pcl",
    "kmeans-features", "kmeans-pixels", "kmeans-random",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained():
    """Return each method's short run, trained when first asked for."""
    runs = {}

    def of(method):
        if method not in runs:
            runs[method] = quick_train(**settings_of(method))
        return runs[method]

    return of


def settings_of(method):
    """Return what a short run of a method is made with: longer and faster ones where several new heads answer."""
    if build_method(quick_config(method=method)).answer == "k-means":
        return {"method": method}
    return {"method": method, "train__epochs": 12, "heads__count": 3, "heads__lr": 0.02}


def test_all_the_papers_methods_are_here():
    assert [name for name in METHODS if name in PAPERS] == PAPERS


@pytest.mark.parametrize("method", OF_IMAGES)
def test_it_learns_something_and_writes_strict_history(trained, method):
    fitted = trained(method)
    config = fitted.model.config
    assert len(fitted.history) == (1 if method in BASELINES else config.train.epochs + 1)
    json.dumps(fitted.history, allow_nan=False)
    if build_method(config).answer == "k-means":
        assert sorted(set(fitted.table.cluster.tolist())) == list(range(10))
    # Three epochs on 200 digits are few; guessing gives an NMI near 0.08.
    assert nmi(digits().labels, fitted.table.cluster) > 0.2


@pytest.mark.parametrize("method", TRAINED)
def test_every_term_counts_once_it_has_started(trained, method):
    fitted = trained(method)
    config = fitted.model.config
    built = build_method(config)
    for stage, span in zip(built.stages, built.spans(config.train.epochs), strict=True):
        last = fitted.history[span[-1]]["losses"]
        counting = [term.name for term in stage.terms if term.counts_at(len(span) - 1)]
        assert counting
        assert [name for name in counting if not last[name]] == []


@pytest.mark.parametrize("method", OF_IMAGES)
def test_it_resumes_to_the_same_bits(tmp_path, trained, method):
    settings = settings_of(method)
    config = quick_config(**settings)
    run = RunFolder.create(tmp_path / "run", {"status": "running"}, config)
    # An epoch asks four times, when it opens and after each step: in the second epoch, in the first of later stages.
    later = [4 * span.start + 3 for span in build_method(config).spans(config.train.epochs)[1:]]
    for before, question in () if method in BASELINES else pairwise([0, 8, *(each for each in later if each > 8)]):
        asked = iter(range(question - before - 1))
        with pytest.raises(Interrupted):
            quick_train(run=run, stop=lambda asked=asked: next(asked, None) is None, **settings)
    resumed = quick_train(run=run, **settings)
    assert same_weights(resumed.model.network, trained(method).model.network)
    assert without_times(resumed.history) == without_times(trained(method).history)
    assert (resumed.embeddings == trained(method).embeddings).all()


@pytest.mark.parametrize("method", OF_IMAGES)
def test_a_saved_run_predicts_its_own_images_where_it_put_them(tmp_path, trained, method):
    run = RunFolder.create(tmp_path / "run", {"status": "finished"}, trained(method).model.config)
    trained(method).write(run)
    found = Model.from_run(Run.open(run.path), CPU).predict(digits())
    assert (found.cluster == trained(method).table.cluster).mean() > 0.99


@pytest.mark.parametrize("method", OF_IMAGES)
def test_it_survives_more_clusters_than_a_batch_has_images(method):
    """500 clusters at a batch of 128: most are absent from every batch, and the last batch is dropped."""
    built = build_method(quick_config(method=method))
    config = {"clusters": 500, "train__batch_size": 128, "estep__restarts": 1, "heads__count": 2}
    config["overclustering__times"] = 2
    config["train__epochs"] = max(2, len(built.stages))
    fitted = quick_train(digits(600), method=method, **config)
    json.dumps(fitted.history, allow_nan=False)
    if built.answer == "k-means":
        assert len(np.unique(fitted.table.cluster)) == 500
    assert fitted.table.cluster.max() < 500


def test_a_cluster_head_is_scored_beside_k_means(trained):
    for method in OF_IMAGES:
        config = trained(method).model.config
        head = build_method(config).parts.cluster_head
        of_as_many = head is not None and head.widths[-1] == config.clusters  # not DeepCluster's, of ten times as many
        assert ("head_accuracy" in trained(method).history[-1]["measures"]) is of_as_many


def test_nothing_is_trained_for_the_baselines(trained):
    fresh = quick_train(method="kmeans-random", train__epochs=1)
    assert same_weights(fresh.model.network, trained("kmeans-random").model.network)
    pixels = digits().batch(np.arange(200)).reshape(200, -1) / 255.0
    config = trained("kmeans-pixels").model.config
    pixels = (pixels - config.pixels.mean[0]) / config.pixels.std[0]
    expected = pixels / np.linalg.norm(pixels, axis=1, keepdims=True)
    np.testing.assert_allclose(trained("kmeans-pixels").embeddings, expected, atol=1e-5)


def test_propos_without_its_parts_is_byol_to_the_bit(trained):
    """Without scattering and without noise nothing of ProPos is left but BYOL."""
    plain = quick_train(method="propos-no-psl", psa__sigma=0.0)
    assert same_weights(plain.model.network, trained("byol").model.network)
    quiet = quick_train(method="propos", psa__sigma=0.0)
    assert same_weights(quiet.model.network, trained("propos-no-psa").model.network)


# What each method is made of, as METHODS.md lists it.


def at_scale(method):
    return build_recipe("paper-32", method).with_settings({"clusters": 10})


def shapes(head):
    return head.widths, head.norm, head.norm_last


def test_simsiam_at_the_papers_scale():
    config = at_scale("simsiam")
    method = build_method(config)
    assert shapes(method.parts.projector) == ((2048, 2048), True, True)
    assert shapes(method.parts.predictor) == ((512, 2048), True, False)
    assert method.parts.target == "stop-gradient"
    assert method.stages[0].predictor_constant
    assert not method.parts.predictor_starts_small
    assert config.train.lr * config.train.batch_size / 256 == pytest.approx(0.06)
    large = build_method(build_recipe("paper-96", "simsiam"))
    assert large.parts.projector.widths == (2048, 2048, 2048)


def test_moco_and_pcl_at_the_papers_scale():
    for name in ("moco", "pcl"):
        config = at_scale(name)
        method = build_method(config)
        assert shapes(method.parts.projector) == ((512, 256), False, False)
        assert (config.train.batch_size, config.train.weight_decay, config.network.momentum) == (512, 1e-4, 0.99)
        assert config.train.lr * config.train.batch_size / 256 == pytest.approx(0.1)
        assert (method.stages[0].queue.size, method.stages[0].queue.random_start, config.contrast.temperature) == (
            4096,
            True,
            1.0,
        )
        assert method.embeds == "target"
    assert build_method(at_scale("pcl")).stages[0].further.clusters == (250, 500, 1000)
    assert [term.weight for term in build_method(at_scale("pcl")).terms] == [1.0, 0.01]


def test_cc_at_the_papers_scale():
    config = at_scale("cc")
    method = build_method(config)
    assert shapes(method.parts.projector) == ((512, 128), False, False)
    assert shapes(method.parts.cluster_head) == ((512, 10), False, False)
    train = config.train
    assert (train.optimiser, train.lr, train.schedule, train.weight_decay) == ("adam", 3e-4, "constant", 0.0)
    assert (config.contrast.temperature, config.contrast.cluster_temperature) == (0.5, 1.0)


def test_a_small_recipe_keeps_its_own_sizes_whatever_the_method():
    recipe = RECIPES["digits"]()
    for name in METHODS:
        config = build_recipe("digits", name)
        assert config.train.batch_size == recipe.train.batch_size
        assert config.network.dimension == recipe.network.dimension
    assert for_method(Config(), "byol", at_scale=True) == Config(method="byol")


def test_the_papers_propos_tells_no_images_apart_and_a_small_recipes_does():
    weights = {
        name: {term.name: term.weight for term in build_method(build_recipe(name)).terms}
        for name in ("cifar-10", "digits")
    }
    of_small = {"psa": 1.0, "psl": 0.1, "contrast": 1.0, "pull": 1.0}
    assert weights == {"cifar-10": {"psa": 1.0, "psl": 0.1}, "digits": of_small}


@pytest.mark.parametrize(("epochs", "last"), [(60, 45), (20, 15), (7, 5), (1, 1)])
def test_a_small_recipe_pulls_images_together_in_the_last_quarter_instead_of_telling_them_apart(epochs, last):
    terms = {term.name: term for term in build_method(build_recipe("digits").with_epochs(epochs)).terms}
    assert [terms["contrast"].counts_at(epoch) for epoch in range(epochs)] == [epoch < last for epoch in range(epochs)]
    assert [terms["pull"].counts_at(epoch) for epoch in range(epochs)] == [epoch >= last for epoch in range(epochs)]


def test_without_a_pull_images_are_told_apart_to_the_end():
    terms = {term.name: term for term in build_method(build_recipe("digits").with_settings({"pull.weight": 0.0})).terms}
    assert "pull" not in terms
    assert all(terms["contrast"].counts_at(epoch) for epoch in range(100))


@pytest.mark.parametrize("method", [name for name in METHODS if name != "propos"])
def test_what_a_recipe_adds_to_propos_is_no_part_of_other_methods(method):
    """But of one that has ProPos learn the images first."""
    config = build_recipe("digits", method)
    assert (config.contrast.weight == 0.0) is (config.pretext.method != "propos")
    assert config.pull.weight == 0.0


@pytest.mark.parametrize("method", ["moco", "pcl", "mice"])
def test_a_method_that_needs_a_queue_says_so(method):
    with pytest.raises(InputError, match=r"queue\.size = 0: .* set it to 1 or more"):
        quick_config(method=method, queue__size=0)


def test_further_clusterings_must_fit_the_images():
    with pytest.raises(InputError, match=r"pcl\.clusters makes 400 clusters: only 200 images differ"):
        quick_config(method="pcl", pcl__clusters=(8, 400))


def test_what_clusters_many_times_as_finely_from_the_start_asks_for_their_number():
    with pytest.raises(InputError, match="localagg needs the number of clusters from the start"):
        build_method(build_recipe("digits", "localagg"))


def test_a_misspelt_method_is_named():
    with pytest.raises(InputError, match="--method simclear: there is none of this name: did you mean simclr"):
        check_method("simclear")


# The settings that cut across methods.

VARIANTS = {
    "a queue of prototypes": {"queue__size": 100},
    "a queue longer than the images": {"queue__size": 10_240},
    "a queue shorter than a batch": {"queue__size": 50},
    "clusters seen equally often": {"train__balanced": True},
    "momentum that rises to 1": {"network__momentum_schedule": "cosine"},
    "both views in one pass": {"network__joint_views": True},
    "E-steps every 8 epochs": {"estep__every": 8},
    "a narrow projection": {"network__dimension": 3},
    "LARS": {"train__optimiser": "lars", "train__decay_norms": False, "train__lr": 10.0},
    "no decay of biases and batch norm": {"train__decay_norms": False},
    "fewer clusters than classes": {"clusters": 3},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_propos_trains_and_resumes_in_every_variant(tmp_path, variant):
    settings = VARIANTS[variant]
    whole = quick_train(**settings)
    run = RunFolder.create(tmp_path / "run", {"status": "running"}, quick_config(**settings))
    asked = iter(range(7))
    with pytest.raises(Interrupted):
        quick_train(run=run, stop=lambda: next(asked, None) is None, **settings)
    resumed = quick_train(run=run, **settings)
    assert same_weights(resumed.model.network, whole.model.network)
    assert without_times(resumed.history) == without_times(whole.history)
