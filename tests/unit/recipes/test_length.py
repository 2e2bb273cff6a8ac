"""How long a recipe trains on so many images."""

import pytest

from propos.runner.recipes import RECIPES, build_recipe, fit_length
from propos.runner.recipes.length import FOUND_ON


@pytest.mark.parametrize("name", FOUND_ON)
def test_the_images_a_recipe_was_found_on_get_its_own_length(name):
    assert fit_length(build_recipe(name), FOUND_ON[name]) == build_recipe(name)


@pytest.mark.parametrize("name", FOUND_ON)
def test_four_times_the_images_have_about_one_and_a_half_times_the_steps(name):
    recipe, images = build_recipe(name), FOUND_ON[name]
    longer = fit_length(recipe, 4 * images)
    assert 4 * longer.train.epochs == pytest.approx(2**0.5 * recipe.train.epochs, abs=2)
    half = recipe.sections["propos"]["psl_start"] / recipe.train.epochs
    assert longer.sections["propos"]["psl_start"] == pytest.approx(half * longer.train.epochs, abs=0.5)


def test_few_images_are_seen_more_often_up_to_five_times():
    own = build_recipe("photos").train.epochs
    assert fit_length(build_recipe("photos"), 600).train.epochs == round(own * 2**0.75)
    assert fit_length(build_recipe("photos"), 3).train.epochs == 5 * own


def test_four_times_ten_clusters_have_twice_the_steps_and_fewer_than_ten_as_many():
    recipe = build_recipe("small-grey")
    assert fit_length(recipe, 3_000, clusters=40).train.epochs == 2 * recipe.train.epochs
    assert fit_length(recipe, 5_200, clusters=26).train.epochs == 21  # 20 · (3,000 / 5,200)^0.75 · 2.6^0.5 = 21.3
    assert fit_length(recipe, 3_000, clusters=2) == recipe
    assert fit_length(recipe, 3_000, clusters=10_000).train.epochs == 5 * recipe.train.epochs


def test_any_number_of_images_leaves_a_start_a_middle_and_an_end():
    assert fit_length(build_recipe("small-grey"), 10**7).train.epochs == 4


@pytest.mark.parametrize("name", [name for name in RECIPES if name not in FOUND_ON])
def test_other_recipes_keep_their_length(name):
    assert fit_length(build_recipe(name), 50) == build_recipe(name)
