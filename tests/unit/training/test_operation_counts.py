"""How many operations a step asks of a device, recipe by recipe: each has a ceiling, a little above its count.

The table is in docs/notebook/speed.md. A count that falls far below its ceiling deserves a lower one.
"""

import numpy as np
import pytest
import torch

from helpers.awkward import picture
from helpers.operations import META, Operations, processes
from propos.data import from_array, open_folder
from propos.methods import complete_sections
from propos.runner.recipes import RECIPES, SYSTEMS, build_recipe
from propos.training import prepare
from propos.training.estimate import late_state
from propos.training.learner import build_learner
from propos.training.m_step import m_step

BATCH = 32
# What changes shapes and nothing else: the network's depth, groups, losses and views are the recipe's.
SMALL = {
    "train.batch_size": BATCH,
    "network.width": 1 / 16,
    "network.hidden": 8,
    "network.dimension": 4,
    "clusters": 4,
}


# Of each kind of recipe, the first; of those, `make test` takes the largest on one process and on eight.
CEILINGS = {
    ("cifar-10-r18", 1): 1_100,
    ("imagenet-1k", 8): 2_300,
    ("imagenet-1k-released", 8): 2_350,  # one of the sixteen batches of a step
}
MORE_CEILINGS = {
    ("cifar-10-r18", 8): 1_120,
    ("cifar-10", 1): 1_660,
    ("paper-96", 1): 1_700,
    ("tiny-imagenet", 1): 1_140,
    ("tiny-imagenet-queue", 1): 1_170,
    ("imagenet-1k", 1): 2_280,
    ("imagenet-1k-released", 1): 1_350,
    ("cifar-20-r18-released", 1): 840,
    ("cifar-20-r34-released", 1): 1_200,
    ("imagenet-dogs-released", 1): 1_290,
    ("digits", 1): 670,
    ("small-grey", 1): 640,
    ("small-colour", 1): 650,
    ("photos", 1): 650,
    ("scan-cifar-10", 1): 450,
    ("nnm-cifar-10", 1): 450,
    ("spice-cifar-10", 1): 1_010,
    ("dcboost-cifar-10", 1): 1_660,
    ("conr-cifar-10", 1): 1_000,
    ("idfd-cifar-10", 1): 580,
    ("secu-cifar-10", 1): 1_930,
    ("mice-cifar-10", 1): 1_500,
    ("localagg-imagenet-1k", 1): 920,
    ("dccm-cifar-10", 1): 900,
    ("iic-cifar-10", 1): 1_070,
    ("pica-cifar-10", 1): 790,
    ("tcl-cifar-10", 1): 2_100,
    ("swav-imagenet-1k", 1): 1_080,
    ("pcl-imagenet-1k", 1): 2_600,
    ("cdc-cifar-10", 1): 1_580,
    ("lfss-cifar-10", 1): 1_430,
    ("gcc-cifar-10", 1): 450,
}
GREY = ("digits", "small-grey")


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Return photographs that keep their shape."""
    folder = tmp_path_factory.mktemp("photographs")
    for number in range(BATCH):
        picture(*((48, 40) if number % 2 else (40, 48)), 3, seed=number).save(folder / f"{number:02d}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROPOS_CACHE", str(tmp_path_factory.mktemp("caches")))
        yield open_folder(folder, 40, workers=0, shaped=True)


def squares(side, channels):
    """Return square images."""
    pixels = np.random.default_rng(0).integers(256, size=(BATCH, side, side, channels), dtype=np.uint8)
    return from_array(pixels, list(range(4)) * (BATCH // 4))


def operations_of(recipe, source, count=1, **settings):
    """Return the operations of a step of a recipe on the first of several processes, by name."""
    size = {"views.size": 32} if source.aspects is not None else {}
    few = {"pcl.clusters": (4, 8, 12)} if recipe == "pcl-imagenet-1k" else {}  # of 32 images there are no 100,000
    config = build_recipe(recipe).with_settings({**SMALL, "train.accumulate": 1, **size, **few, **settings})
    with processes(count):
        learner = build_learner(prepare(complete_sections(config), source), source, META)
        state = late_state(learner)
        for _ in range(2):  # the first step also puts constants on the device
            with Operations() as operations:
                m_step(learner, source, torch.arange(BATCH), state)
    return operations.counts


def kind(recipe):
    """Return what decides how many operations a step of a recipe has."""
    config = RECIPES[recipe]()
    views, network, train = config.views, config.network, config.train
    return (
        *(config.method, views.preset, views.keep, views.colours, any(views.blur), any(views.solarise), views.rotation),
        *(network.backbone, network.stem, network.joint_views, network.bn_groups, network.shuffle_bn),
        *(train.optimiser, train.decay_norms, recipe in SYSTEMS and recipe),
        *(bool(config.sections.get("propos", {}).get(key)) for key in ("queue_size", "contrast_weight", "pull_weight")),
    )


def test_every_recipe_that_trains_a_network_on_images_is_of_a_kind_that_has_a_ceiling():
    kinds = {
        kind(recipe) for recipe, _ in CEILINGS | MORE_CEILINGS if recipe in RECIPES
    }  # a method's file may be deleted
    assert [name for name in RECIPES if kind(name) not in kinds and RECIPES[name]().start.network is None] == []


@pytest.mark.parametrize(
    ("recipe", "count", "ceiling"),
    [
        *((*case, ceiling) for case, ceiling in CEILINGS.items()),
        *(
            pytest.param(*case, most, marks=pytest.mark.full)
            for case, most in MORE_CEILINGS.items()
            if case[0] in RECIPES
        ),
    ],
)
def test_a_step_stays_below_its_ceiling(recipe, count, ceiling, photographs):
    in_shape = RECIPES[recipe]().views.keep == "shapes"
    source = photographs if in_shape else squares(32, 1 if recipe in GREY else 3)
    operations = operations_of(recipe, source, count)
    assert operations.total() <= ceiling, operations.most_common(12)


def test_what_is_counted():
    x, weight = torch.empty(4, 3, 2, 2, device=META), torch.empty(3, device=META)
    with Operations() as found:
        x.view(4, -1)[:2].T.expand(2, 12, 2)  # views cost nothing, nor does memory
        torch.empty_like(x)
        y = x.flatten(1).add(1).relu_()
        torch.ones(3).to(META)
        torch._foreach_add_([x, y], 1)
        torch.nn.functional.batch_norm(x, None, None, weight, weight, training=True)
    assert found.counts == {
        "aten::add": 1,
        "aten::relu_": 1,
        "aten::_to_copy": 1,
        "aten::_foreach_add_": 1,
        "aten::native_batch_norm": 1,
    }
