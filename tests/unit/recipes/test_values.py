"""The values of recipes, against those the paper and its authors' code have."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from propos.data import Sample, UnopenedSource
from propos.data.arrays import ArraySource
from propos.methods import build_method, dccm, method_names, settings_of, stages_of
from propos.runner.recipes import PAPER, RECIPES, SYSTEMS, build_recipe, choose_recipe, continue_with_method
from propos.training import clusters_needed, stage_epochs

SYNC = {"imagenet-1k-released"}
SMALL = [name for name in RECIPES if name not in PAPER and name not in SYSTEMS]


def built(config):
    """Return a recipe's networks, but for the width of the backbone."""
    return build_method(config.with_settings({"network.width": 1 / 16}), channels=3)


def widths(module):
    """Return the numbers of outputs of a module's linear layers."""
    return tuple(layer.out_features for layer in module.modules() if isinstance(layer, nn.Linear))


def lengths(config):
    """Return the epochs of each stage."""
    return [len(span) for span in stage_epochs(stages_of(config), config.train.epochs)]


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


def test_other_systems_have_the_settings_they_were_published_with():
    names = ("scan-cifar-10", "nnm-cifar-10", "temi-dino", "dcboost-cifar-10", "conr-cifar-10", "idfd-cifar-10")
    configs = [build_recipe(name).with_settings({"clusters": 10}) for name in names]
    scan, nnm, temi, boost, conr, idfd = configs
    scans, nnms, temis, _, conrs, idfds = (settings_of(config) for config in configs)
    assert lengths(scan) == [500, 200, 100]
    assert scans.heads_lr * scan.train.batch_size / 256 == pytest.approx(1e-4)
    assert scan.train.lr * scan.train.batch_size / 256 == pytest.approx(0.4)
    assert scan.sections["simclr"]["temperature"] == 0.1
    assert (scans.neighbours, scans.balance_weight, scans.confidence) == (20, 5.0, 0.99)
    # 100 epochs in batches of 200 are 25,000 steps, as 257 of 97.
    assert lengths(nnm) == [500, 257]
    assert nnms.heads_lr * nnm.train.batch_size / 256 == pytest.approx(1e-4)
    assert (nnms.heads, nnms.neighbours, nnms.balance_weight) == (3, 20, 5.0)
    assert nnm.train == scan.train.model_copy(update={"epochs": 757})
    assert (temis.heads, temis.neighbours, temi.network.momentum) == (16, 50, 0.996)
    assert temis.heads_lr * temi.train.batch_size / 256 == pytest.approx(4e-4)
    assert lengths(boost) == [800, 200]
    assert stages_of(boost)[1].train["lr"] == pytest.approx(0.005)
    assert (conrs.pretext, conr.network.backbone, conrs.neighbours) == ("byol", "resnet18", 10)
    assert conr.train.lr * conr.train.batch_size / 256 == pytest.approx(0.1)
    refining = stages_of(conr)[1]
    assert refining.train["lr"] == pytest.approx(0.05 * 0.1 * (1 + math.cos(0.75 * math.pi)) / 2, rel=0.03)
    assert idfd.train.lr * idfd.train.batch_size / 256 == pytest.approx(0.03)
    assert [share * idfd.train.epochs for share in idfd.train.milestones] == pytest.approx([600, 950, 1300, 1650])
    assert (idfd.train.weight_decay, idfd.train.warmup, idfd.train.schedule) == (5e-4, 0, "steps")
    assert (idfds.bank_momentum, idfds.temperature, idfds.decorrelation_temperature) == (0.5, 1.0, 2.0)
    assert (idfd.views.crop_scale, idfd.views.flip, idfd.views.hue) == ((0.2, 1.0), 0.0, 0.0)


def test_systems_that_learn_clusters_from_the_start_have_theirs():
    names = ("iic-cifar-10", "pica-cifar-10", "idfd-cifar-10")
    iic, pica, idfd = (build_recipe(name).with_settings({"clusters": 10}) for name in names)
    for config, heads in ((iic, 5), (pica, 1)):
        networks = built(config)
        assert (widths(networks.heads), widths(networks.over_heads)) == ((10,) * heads, (70,) * heads)
        train = config.train
        assert (train.optimiser, train.schedule, train.weight_decay, train.warmup) == ("adam", "constant", 0.0, 0)
        assert train.lr * train.batch_size / 256 == pytest.approx(1e-4)
    views = {
        name: (config.views.crop_scale, config.views.jitter, config.views.hue, config.views.grey)
        for name, config in (("iic", iic), ("pica", pica), ("idfd", idfd))
    }
    assert views == {
        "iic": ((0.39, 0.39), 1.0, 0.125, 0.0),
        "pica": ((0.2, 1.0), 1.0, 0.4, 0.2),
        "idfd": ((0.2, 1.0), 1.0, 0.0, 0.2),
    }
    assert settings_of(pica).balance_weight == 2.0


def test_localagg_has_its_own_settings():
    local = build_recipe("localagg-imagenet-1k").with_settings({"clusters": 1000})
    own = settings_of(local)
    assert own.overclustering * 1000 == 30_000
    assert [stage.first_clusters for stage in stages_of(local)] == [10]
    assert local.train.lr * local.train.batch_size / 256 == pytest.approx(0.03)
    assert [share * local.train.epochs for share in local.train.milestones] == pytest.approx([160, 190])
    assert (own.bank_momentum, own.temperature, local.train.weight_decay) == (0.5, 0.07, 1e-4)
    assert (local.network.backbone, local.views.crop_scale, local.views.hue) == ("resnet18", (0.2, 1.0), 0.4)


@pytest.mark.parametrize(("method", "weights"), [("dec", (1.0, 0.0)), ("idec", (0.1, 1.0))])
def test_autoencoders_have_their_own_settings(method, weights):
    config = build_recipe("cifar-10-r18", method).with_settings({"clusters": 7})
    networks, train, own = built(config), config.train, settings_of(config)
    assert (own.sharpening_weight, own.reconstruction_weight) == weights
    assert lengths(config) == [500, 500]
    assert (train.optimiser, train.lr, train.schedule, train.weight_decay) == ("adam", 1e-3, "constant", 0.0)
    assert networks.assign(networks.online.backbone(torch.zeros(2, 3, 32, 32))).shape == (2, 7)
    assert (own.spread, widths(networks.decoder)) == (0.1, (4096, 3 * 32**2))
    larger, smaller = (built(config.with_settings({"views.size": size})) for size in (224, 8))
    assert (larger.decoder.side, smaller.decoder.side) == (32, 8)


def test_dccm_has_its_own_settings():
    config = build_recipe("dccm-cifar-10").with_settings({"clusters": 10})
    networks, train, views = built(config), config.train, config.views
    assert (dccm.LABELS, dccm.GRAPH, dccm.LOCAL) == (5.0, 1.0, 0.05)
    assert (settings_of(config).confidence, dccm.SIMILAR) == (0.9, 0.95)
    assert (widths(networks.online.projector), widths(networks.head)) == ((64,), (10,))
    assert widths(networks.discriminator) == (networks.online.features, networks.online.features, 1)
    assert train.lr * train.batch_size / 256 == pytest.approx(1e-4)
    assert (train.batch_size, train.epochs, train.schedule, train.weight_decay) == (32, 2000, "constant", 0.0)
    assert train.optimiser == "adam"
    assert (views.rotation, views.flip, views.crop_scale, views.crop_ratio) == (20.0, 0.5, (0.72, 1.0), (1.0, 1.0))
    assert (views.jitter, views.brightness, views.contrast) == (1.0, 0.1, 0.0)
    assert (views.saturation, views.hue, views.grey) == (0.0, 0.0, 0.0)


def test_secu_has_its_own_settings():
    secu = build_recipe("secu-cifar-10").with_settings({"clusters": 10})
    own = settings_of(secu)
    assert built(secu).centres.sizes == tuple(range(10, 101, 10))
    rate = secu.train.lr * secu.train.batch_size / 256
    assert (rate, rate * stages_of(secu)[0].rates["centres"].scale) == pytest.approx((0.2, 1.2))
    assert (secu.train.warmup, secu.train.epochs, secu.train.weight_decay) == (11, 401, 1e-4)
    assert (own.dual_step, own.temperature, own.centre_temperature) == (0.1, 0.05, 0.05)
    assert (secu.views.crop_scale, secu.views.saturation, secu.views.hue) == ((0.3, 1.0), 0.2, 0.1)


def test_mice_has_its_own_settings():
    config = build_recipe("mice-cifar-10").with_settings({"clusters": 10})
    networks, own, train, views = built(config), settings_of(config), config.train, config.views
    assert (widths(networks.online.projector), networks.experts) == ((10 * 128,), 10)
    assert (widths(networks.gate)[0], own.gate_temperature) == (128, 1.0)
    assert (own.temperature, config.network.momentum, own.queue_size) == (1.0, 0.999, 16384)
    assert train.lr * train.batch_size / 256 == pytest.approx(1.0)
    assert (train.batch_size, train.epochs, train.warmup, train.weight_decay) == (256, 1000, 10, 1e-4)
    assert [share * train.epochs for share in train.milestones] == pytest.approx([480, 640, 800])
    assert (train.schedule, config.network.backbone, config.network.bn_groups) == ("steps", "resnet34", 1)
    assert (views.crop_scale, views.flip, views.jitter, views.hue, views.grey) == ((0.2, 1.0), 0.5, 1.0, 0.4, 0.2)
    assert (views.brightness, views.contrast, views.saturation) == (0.4, 0.4, 0.4)


def test_spice_has_its_own_settings():
    config = build_recipe("spice-cifar-10").with_settings({"clusters": 10})
    own, moco, train = settings_of(config), config.sections["moco"], config.train
    assert lengths(config) == [1000, 240, 480]
    assert (own.pretext, config.network.backbone, own.heads) == ("moco", "resnet18", 10)
    assert train.lr * train.batch_size / 256 == pytest.approx(0.015)
    assert (train.batch_size, train.warmup, train.weight_decay, train.schedule) == (128, 0, 1e-4, "cosine")
    assert (moco["temperature"], config.network.momentum, moco["queue_size"]) == (0.2, 0.999, 12800)
    heads, network = stages_of(config)[1:]
    assert (heads.train["optimiser"], heads.train["weight_decay"]) == ("adam", 0.0)
    assert heads.train["lr"] * train.batch_size / 256 == pytest.approx(0.005)
    networks = built(config)
    assert widths(networks.heads) == (networks.online.features, 10) * 10
    assert network.train["lr"] * train.batch_size / 256 == pytest.approx(0.03)
    assert (network.train["weight_decay"], network.train["decay_norms"]) == (5e-4, False)
    assert (own.neighbours, own.confidence) == (100, 0.99)


def test_tcl_has_its_own_settings():
    config = build_recipe("tcl-cifar-10").with_settings({"clusters": 10})
    networks, own = built(config), settings_of(config)
    features = networks.online.features
    assert lengths(config) == [1000, 200]
    assert widths(networks.online.projector) == (features, features, 128)
    assert widths(networks.head) == (features, features, 10)
    train, views = config.train, config.views
    assert (train.optimiser, train.schedule, train.weight_decay, train.warmup) == ("adam", "constant", 1e-4, 0)
    # Four devices of 256 images, each normalising its own, at 1e-4.
    assert (train.batch_size, config.network.bn_groups) == (1024, 4)
    assert train.lr * train.batch_size / 256 == pytest.approx(1e-4)
    assert (own.temperature, own.cluster_temperature, own.confidence) == (0.5, 1, 0.99)
    assert (views.size, views.plain, views.blur, views.crop_scale) == (224, "centre", (1.0, 0.0), (0.2, 1.0))
    assert (views.brightness, views.contrast, views.saturation, views.hue) == (0.4, 0.4, 0.2, 0.1)
    assert (config.strong.operations, config.strong.cutout * 224) == (4, 75)


def test_swav_has_its_own_settings():
    config = build_recipe("swav-imagenet-1k").with_settings({"clusters": 1000})
    networks, own, train, views = built(config), settings_of(config), config.train, config.views
    assert widths(networks.online.projector) == (2048, 128)
    assert networks.prototypes(torch.zeros(2, 128)).shape == (2, 3000)
    assert (own.temperature, own.queue_size) == (0.1, 0)
    assert (train.optimiser, train.batch_size, train.epochs, train.warmup) == ("lars", 4096, 400, 10)
    assert train.lr * train.batch_size / 256 == pytest.approx(4.8)
    assert (train.weight_decay, train.decay_norms, train.schedule) == (1e-6, True, "cosine")
    assert (config.network.bn_groups, config.network.backbone) == (1, "resnet50")
    assert (views.size, views.crop_scale, views.blur, views.grey) == (224, (0.08, 1.0), (0.5, 0.5), 0.2)
    assert (views.brightness, views.contrast, views.saturation, views.hue, views.jitter) == (0.8, 0.8, 0.8, 0.2, 0.8)


def test_gcc_has_its_own_settings():
    config = build_recipe("gcc-cifar-10").with_settings({"clusters": 10})
    networks, own, train, views = built(config), settings_of(config), config.train, config.views
    assert lengths(config) == [50, 950]
    assert (widths(networks.online.projector)[-1], widths(networks.head)) == (128, (10,))
    assert (train.optimiser, train.lr, train.batch_size, train.weight_decay) == ("sgd", 0.4, 256, 1e-4)
    assert [stage.train for stage in stages_of(config)] == [{"schedule": "constant", "warmup": 0}, {"warmup": 0}]
    assert (own.temperature, own.neighbours, config.network.backbone) == (0.1, 5, "resnet18")
    assert own.balance_weight == 2.0
    assert (views.crop_scale, views.jitter, views.hue, views.grey, views.blur) == (
        (0.2, 1.0), 0.8, 0.1, 0.2, (0.0, 0.0),
    )  # fmt: skip
