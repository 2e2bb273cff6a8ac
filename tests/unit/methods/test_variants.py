"""ProPos's ablations: ProPos with other settings, whatever a recipe adds to ProPos."""

import pytest

from helpers.small import quick_train, same_weights
from propos.methods import find_method, settings_of
from propos.runner.recipes import build_recipe

ABLATIONS = {
    "propos-no-psl": {"psl_weight": 0.0},
    "propos-no-psa": {"sigma": 0.0},
    "propos-alignment-only": {"prototypes": "aligned"},
    "propos-uniformity-only": {"prototypes": "uniform"},
}


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_is_propos_with_one_setting_changed(name):
    kind, propos = find_method(name), find_method("propos")
    changed = {**propos.Settings().model_dump(), **ABLATIONS[name]}
    assert kind.Settings().model_dump() == changed
    assert kind.__doc__ != propos.__doc__
    assert (kind.year, kind.reference) == (2022, "ProPos's ablation (arXiv 2111.11821)")


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_takes_what_a_recipe_says_of_propos_except_what_is_not_the_papers(name):
    ours, theirs = (settings_of(build_recipe("digits", method)) for method in (name, "propos"))
    assert theirs.contrast_weight == theirs.pull_weight == 1.0
    assert ours.model_dump() == {
        **theirs.model_dump(),
        "contrast_weight": 0.0,
        "pull_weight": 0.0,
        **ABLATIONS[name],
    }
    assert ours.psl_start == 50


def test_an_ablation_of_a_released_recipe_has_its_weight():
    assert settings_of(build_recipe("cifar-10-r18-released", "propos-no-psa")).psl_weight == 0.1 / 4
    assert settings_of(build_recipe("cifar-10-r18-released", "propos-no-psl")).psl_weight == 0.0


def test_an_ablations_settings_have_propos_bounds():
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        find_method("propos-no-psl").Settings(psl_weight=-1.0)


def test_an_ablation_learns_from_images_alone():
    for name in ABLATIONS:
        assert (find_method(name).inputs, find_method(name).tunes) == (("images",), False)


@pytest.mark.full
def test_propos_without_its_parts_is_byol_to_the_bit():
    """Without scattering and without noise nothing of ProPos is left but BYOL."""
    plain = quick_train(method="propos-no-psl", sigma=0.0)
    byol = quick_train(method="byol")
    assert same_weights(plain.model.method, byol.model.method)
    quiet = quick_train(sigma=0.0)
    assert same_weights(quiet.model.method, quick_train(method="propos-no-psa").model.method)
