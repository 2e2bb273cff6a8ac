"""The settings that cut across methods, on ProPos: each trains, and resumes to the bit."""

import pytest

from helpers.small import quick_config, quick_train, same_weights, without_times
from propos.common.errors import Interrupted
from propos.runner.recipes import build_recipe
from propos.runs import RunFolder

VARIANTS = {
    "a queue of prototypes": {"queue_size": 100},
    "a queue longer than the images": {"queue_size": 10_240},
    "a queue shorter than a batch": {"queue_size": 50},
    "clusters seen equally often": {"train__balanced": True},
    "momentum that rises to 1": {"network__momentum_schedule": "cosine"},
    "both views in one pass": {"network__joint_views": True},
    "E-steps every 8 epochs": {"estep__every": 8},
    "a narrow projection": {"network__dimension": 3},
    "LARS": {"train__optimiser": "lars", "train__decay_norms": False, "train__lr": 10.0},
    "no decay of biases and batch norm": {"train__decay_norms": False},
    "fewer clusters than classes": {"clusters": 3},
}


@pytest.mark.full
@pytest.mark.parametrize("variant", VARIANTS)
def test_propos_trains_and_resumes_in_every_variant(tmp_path, variant):
    settings = VARIANTS[variant]
    whole = quick_train(**settings)
    run = RunFolder.create(tmp_path / "run", {"status": "running"}, quick_config(**settings))
    asked = iter(range(7))
    with pytest.raises(Interrupted):
        quick_train(run=run, stop=lambda: next(asked, None) is None, **settings)
    resumed = quick_train(run=run, **settings)
    assert same_weights(resumed.model.method, whole.model.method)
    assert without_times(resumed.history) == without_times(whole.history)


def test_the_papers_propos_has_two_losses_and_a_small_recipes_four():
    small = ("digits", "small-grey", "small-colour", "photos")
    own = {name: build_recipe(name).sections.get("propos", {}) for name in ("cifar-10", *small)}
    assert not own["cifar-10"].get("contrast_weight")
    assert not own["cifar-10"].get("pull_weight")
    assert {own[name][weight] for name in small for weight in ("contrast_weight", "pull_weight")} == {1.0}


@pytest.mark.full
def test_a_small_recipe_pulls_images_together_in_the_last_quarter_instead_of_contrasting_them():
    history = quick_train(train__epochs=8, contrast_weight=1.0, pull_weight=1.0).history[:-1]
    assert ["contrast" in record["losses"] for record in history] == [True] * 6 + [False] * 2
    assert ["pull" in record["losses"] for record in history] == [False] * 6 + [True] * 2
