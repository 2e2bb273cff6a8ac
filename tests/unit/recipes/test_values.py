"""The values of recipes, against those the paper and its authors' code have."""

import numpy as np
import pytest

from propos.data import Sample, UnopenedSource
from propos.data.arrays import ArraySource
from propos.methods import method_names, settings_of, stages_of
from propos.runner.recipes import PAPER, RECIPES, SYSTEMS, build_recipe, choose_recipe, continue_with_method
from propos.training import clusters_needed

SYNC = {"imagenet-1k-released"}
SMALL = [name for name in RECIPES if name not in PAPER and name not in SYSTEMS]


def test_the_papers_recipes_are_its_rows():
    """Backbone, side, epochs and warm-up as the paper's set-up lists them."""
    rows = {
        "cifar-10": ("resnet34", "small", 32, 1000, 50),
        "cifar-20-r18": ("resnet18", "small", 32, 1000, 50),
        "stl-10": ("resnet34", "imagenet", 96, 1000, 50),
        "imagenet-10": ("resnet34", "imagenet", 96, 1000, 50),
        "imagenet-dogs-224": ("resnet34", "imagenet", 224, 1000, 50),
        "tiny-imagenet": ("resnet18", "imagenet", 224, 1000, 50),
        "imagenet-1k": ("resnet50", "imagenet", 224, 200, 10),
        "tiny-imagenet-queue": ("resnet18", "imagenet", 224, 200, 50),
        "imagenet-50": ("resnet50", "imagenet", 224, 300, 50),
        "imagenet-200": ("resnet50", "imagenet", 224, 300, 50),
        "cifar-10-lt": ("resnet18", "small", 32, 1000, 50),
    }
    for name, row in rows.items():
        config = build_recipe(name)
        network, train = config.network, config.train
        assert (network.backbone, network.stem, config.views.size, train.epochs, train.warmup) == row, name
        assert (network.hidden, network.dimension, network.momentum) == (4096, 256, 0.996)
        own = settings_of(config)
        assert (own.psl_weight, own.temperature, own.sigma, own.predictor_rate) == (0.1, 0.5, 0.001, 10.0)
        assert (train.lr, train.batch_size, train.weight_decay) == (0.05, 256, 5e-4)


def test_the_released_imagenet_recipe_steps_as_the_authors_did():
    config = build_recipe("imagenet-1k-released")
    assert config.train.batch_size * config.train.accumulate == 4096
    assert config.train.lr * 4096 / 256 == pytest.approx(4.8)
    assert (config.views.blur, config.views.solarise) == ((1.0, 0.1), (0.0, 0.2))
    assert (config.estep.every, settings_of(config).queue_size, config.train.epochs) == (10, 10_240, 200)


def test_released_weights_of_scattering_are_shared_by_four_processes():
    for name in ("cifar-10-r18-released", "cifar-20-r34-released", "imagenet-dogs-released"):
        assert settings_of(build_recipe(name)).psl_weight == pytest.approx(0.025)


def test_the_recipe_suits_the_images():
    def unopened(side, channels, colours=256):
        # Pixels are looked at where grey images are large: photographs have many levels, drawings few.
        pixels = np.random.default_rng(0).integers(0, colours, (3, 40, 40, channels), dtype=np.uint8)
        return UnopenedSource(
            100, channels, side, side, open=lambda _: ArraySource(pixels, None, "pixels"), labelled=False
        )

    on_a_cpu = {
        (8, 1): "digits",
        (28, 1): "small-grey",
        (32, 3): "small-colour",
        (500, 3): "photos",
        (500, 1): "photos",
    }
    for (side, channels), recipe in on_a_cpu.items():
        assert choose_recipe(Sample(unopened(side, channels)), "cpu")[0] == recipe
    assert choose_recipe(Sample(unopened(500, 1, colours=1)), "cpu")[0] == "small-grey"
    assert choose_recipe(Sample(unopened(32, 3)), "cuda")[0] == "paper-32"
    assert choose_recipe(Sample(unopened(500, 3)), "cuda")[0] == "paper-96"


@pytest.mark.parametrize(
    ("name", "side", "table", "small"),
    [
        ("cifar-10", 32, "tables 2 and s1", "small-colour"),
        ("stl-10", 96, "table 2", "photos"),
        ("tiny-imagenet", 64, "table 3", "small-colour"),
        ("imagenet-50", 500, "table 8", "photos"),
        ("cifar-20-lt", 32, "table 9", "small-colour"),
    ],
)
def test_a_published_set_has_the_papers_recipe_on_a_gpu_and_a_small_one_on_a_cpu(name, side, table, small):
    unopened = UnopenedSource(100, 3, side, side, open=None, labelled=True, published=name)
    assert choose_recipe(Sample(unopened), "cuda") == (name, f"{name} on cuda: {table}")
    chosen, why = choose_recipe(Sample(unopened), "cpu")
    assert chosen == small
    assert why.endswith(f"on cpu; the paper's recipe for {name} needs a GPU (--recipe {name})")


def test_published_sets_that_the_paper_does_not_have_are_chosen_for_as_others():
    unopened = UnopenedSource(70_000, 1, 28, 28, open=None, labelled=True, published="fashion-mnist")
    assert choose_recipe(Sample(unopened), "cuda") == ("small-grey", "greyscale images of 28×28 on cuda")


@pytest.mark.parametrize("name", [name for name in PAPER if name not in SYNC])
def test_batch_norm_sees_the_four_shuffled_slices_of_the_papers_gpus(name):
    network = build_recipe(name).network
    assert (network.bn_groups, network.shuffle_bn) == (4, True)


def test_the_released_imagenet_recipe_has_one_group_as_syncbn():
    network = build_recipe("imagenet-1k-released").network
    assert (network.bn_groups, network.shuffle_bn) == (1, False)


@pytest.mark.parametrize("name", SMALL)
def test_small_recipes_keep_the_statistics_of_the_whole_batch(name):
    network = build_recipe(name).network
    assert (network.bn_groups, network.shuffle_bn) == (1, False)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("method", ["moco", "pcl"])
def test_keys_are_shuffled_in_every_recipe(name, method):
    network = build_recipe(name, method).network
    assert (network.bn_groups, network.shuffle_bn) == (4, True)


def test_methods_without_a_target_have_nothing_to_shuffle():
    groups = {"simsiam": 4, "simclr": 1, "cc": 1, "cc-psl": 1}
    for method, expected in groups.items():
        network = build_recipe("cifar-10", method).network
        assert (network.bn_groups, network.shuffle_bn) == (expected, False)


@pytest.mark.parametrize(("name", "start"), [("cifar-10", 50), ("imagenet-1k", 10), ("digits", 50), ("small-grey", 10)])
def test_cc_scatters_prototypes_only_after_as_long_as_a_warm_up(name, start):
    config = build_recipe(name, "cc-psl")
    assert config.train.warmup == 0
    assert [stage.first_clusters for stage in stages_of(config)] == [start]


@pytest.mark.parametrize("method", [name for name in method_names() if name.startswith("propos-")])
def test_ablations_are_propos_as_the_recipe_has_it_but_for_what_they_take_away(method):
    for name in ("digits", "imagenet-1k-released"):
        recipe, ablation = build_recipe(name), build_recipe(name, method)
        theirs, ours = settings_of(recipe).model_dump(), settings_of(ablation).model_dump()
        differ = {key for key in theirs if theirs[key] != ours[key]}
        assert differ <= {"psl_weight", "sigma", "prototypes", "contrast_weight", "pull_weight"}
        assert ablation.with_settings({"sections": {}}) == recipe.with_settings({"sections": {}, "method": method})


@pytest.mark.parametrize("method", [name for name in method_names() if name != "propos"])
def test_what_a_recipe_adds_to_propos_is_propos_alone(method):
    sections = build_recipe("digits", method).sections
    assert set(sections) <= {method, settings_of(build_recipe("digits", method)).model_dump().get("pretext")}
    assert not sections.get("propos", {}).get("pull_weight")  # of what builds on it, no end of its own


def test_a_recipe_for_its_own_method_is_itself():
    for name in RECIPES:
        recipe = build_recipe(name)
        assert build_recipe(name, recipe.method) == recipe


def test_a_method_on_top_of_a_run_builds_on_the_runs_own_network():
    run = build_recipe("digits").with_settings({"propos.sigma": 0.01, "train.epochs": 7})
    boosted = continue_with_method(run, "dcboost")
    assert boosted.sections == {
        "propos": run.sections["propos"],
        "dcboost": {"pretext_share": 0.0, "pretext": "propos"},
    }
    assert (boosted.method, boosted.train) == ("dcboost", run.train)
    again = continue_with_method(boosted, "temi")
    assert again.sections == {
        "propos": run.sections["propos"],
        "temi": {"pretext_share": 0.0, "pretext": "propos"},
    }
    assert continue_with_method(run, "byol").sections == {}


def test_released_recipes_are_the_released_settings():
    """Batch, momentum's schedule, balance and rate's schedule, as the authors' files of settings have them."""
    rows = {
        "cifar-10-r18-released": (512, "constant", False, "cosine-of-all"),
        "cifar-20-r18-released": (256, "cosine", True, "cosine-of-all"),
        "cifar-20-r34-released": (256, "cosine", True, "cosine-by-epoch"),
        "byol-released": (512, "cosine", False, "cosine-of-all"),
        "imagenet-dogs-released": (256, "cosine", True, "cosine-of-all"),
        "imagenet-1k-released": (256, "cosine", False, "cosine-of-all"),
    }
    for name, row in rows.items():
        config = build_recipe(name)
        train = config.train
        assert (train.batch_size, config.network.momentum_schedule, train.balanced, train.schedule) == row, name


def test_released_recipes_draw_from_every_cluster_as_often_from_the_first_epoch_on():
    config = build_recipe("cifar-20-r18-released").with_settings({"clusters": 20})
    assert config.train.balanced
    assert clusters_needed(config) == 0
    assert [stage.first_clusters for stage in stages_of(config)] == [50]


def test_photographs_keep_their_shape_and_are_tested_on_their_middle_at_full_size():
    small = {name: build_recipe(name) for name in SMALL}
    for name, config in ((name, build_recipe(name)) for name in PAPER):
        size = config.views.size
        assert (config.views.keep == "shapes") is (size > 32), name
        assert (config.views.plain == "centre") is (size == 224), name
    own = {(config.views.keep, config.views.plain) for name, config in small.items() if name != "pretrained"}
    assert own == {("squares", "whole")}
    views = small["pretrained"].views  # as the weights were tested: shorter side 256, the middle 224
    assert (views.keep, views.plain, views.size) == ("shapes", "centre", 224)


def test_the_papers_colours_change_in_turn_and_those_of_small_recipes_at_once():
    assert {build_recipe(name).views.colours for name in PAPER} == {"in-turn"}
    assert {build_recipe(name).views.colours for name in SMALL} == {"at-once"}
