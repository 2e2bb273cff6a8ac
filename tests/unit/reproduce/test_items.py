"""The cells of tables and figures, counted by hand, and how budgets train them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from propos.common.errors import InputError
from propos.config import Config, method_names
from propos.study.reproduce.budgets import Budget, list_scaled_settings, task
from propos.study.reproduce.cells import Cell, Setup
from propos.study.reproduce.items import ITEMS, find_items, varied
from propos.study.reproduce.paper import PaperNumber, paper, paper_number
from propos.study.reproduce.reproduction import ReproduceRequest

FACTS = Path(__file__).parents[4] / "shared" / "facts" / "paper-results.json"


def here(*methods):
    """How many of these methods there are."""
    return len(set(methods) & set(method_names()))


HEADS = ("tcc", "iic", "dccm", "pica", "scan", "nnm", "cc", "mice", "gcc", "tcl")
IMAGES = ("moco", "simsiam", "byol", "idfd", "pcl", "propos")
PROBED = (
    *("localagg", "simclr", "moco", "pcl", "byol", "simsiam", "propos"),
    *("instdisc", "moco-v1", "cmc", "ifnd", "jigsaw", "cpc"),
)
LONGER = ("deepcluster", "rotnet", "sela", "pirl", "simclr", "byol", "swav")  # or shorter


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("table-1", 0),
        ("table-2", here(*HEADS, *IMAGES) * 5 * 3),
        ("table-3", here("dccm", "pica", "cc", "gcc", "moco", "pcl", "simsiam", "byol", "propos") * 3),
        ("table-4", here("deepcluster", "moco", "pcl", "propos") * 3),
        ("table-5", (here(*PROBED) + here(*LONGER)) * 3),
        ("table-6", 11 * 2 * 3),
        ("table-8", here("moco", "scan", "propos") * 3 * 3),
        ("table-9", 4 * 2 * 3),
        ("table-s1", 2 * 4 * 3),
        ("figure-3", 2 * 3),
        ("figure-4", 1),
        ("figure-5", 4),
        ("figure-6", (6 + 1) * 2 * 3),
        ("figure-7a", 4 * 2 * 3),
        ("figure-7d", 4 * 2 * 2 * 3),
        ("figure-8", 5 * 3),
        ("figure-s4", 1),
    ],
)
def test_an_item_has_as_many_cells_as_its_table_has_places(name, cells):
    assert len(ITEMS[name].cells(3)) == cells


def test_cells_that_items_share_are_one():
    both = ReproduceRequest(find_items(["table-6", "figure-3", "figure-s1", "figure-5"]), Budget("tiny"), 3)
    assert len(both.cells()) == 66  # the figures look at cells of the table
    # λ = 0.1 is ProPos itself, λ = 0 ProPos without the loss: of 6 values on 2 sets 4 are new.
    assert len(ReproduceRequest(find_items(["table-6", "figure-7c"]), Budget("tiny"), 3).cells()) == 66 + 4 * 2 * 3
    assert varied("cifar-10", propos__psl_weight=0.0) == Setup("cifar-10", "cifar-10-r18", "propos-no-psl")
    assert varied("cifar-20", clusters=20) == Setup("cifar-20", "cifar-20-r18")


def test_figure_7_is_its_six_parts_and_unknown_items_are_refused():
    assert [item.id for item in find_items(["figure-7", "figure-7b"])] == [f"figure-7{part}" for part in "abcdef"]
    assert {item.id for item in find_items(["all"])} == ITEMS.keys() - {"study"}  # which the paper does not have
    with pytest.raises(InputError, match="did you mean table-6"):
        find_items(["tabel-6"])
    with pytest.raises(InputError, match=r'unknown item "figure-2": .* are figure-3$'):
        find_items(["figure-2"])


def test_a_cell_is_known_by_what_is_trained_not_by_where_images_lie(tmp_path):
    setup = Setup("cifar-10", "cifar-10-r18")
    here, there = (task(Cell(setup, 0), Budget("paper"), root) for root in (None, tmp_path))
    assert here.key == there.key
    keys = {
        here.key,
        task(Cell(setup, 1), Budget("paper"), None).key,
        task(Cell(setup, 0), Budget("small"), None).key,
        task(Cell(Setup("cifar-20", "cifar-10-r18"), 0), Budget("paper"), None).key,
        task(Cell(Setup("cifar-10", "cifar-10-r18", "byol"), 0), Budget("paper"), None).key,
    }
    assert len(keys) == 5


def test_the_paper_budget_is_the_papers_recipe_and_others_say_what_they_scale():
    cell = Cell(varied("cifar-10", network__dimension=512), 2)
    full = task(cell, Budget("paper"), None)
    assert (full.config.train.epochs, full.config.network.dimension, full.config.seed) == (1000, 512, 2)
    assert full.scaled == {}
    small = task(cell, Budget("small"), None)
    assert small.config.network.dimension == 256  # twice the usual width, as 512 is twice the paper's 256
    assert small.scaled["train.epochs"] == (1000, 20)
    assert "train.epochs: 1,000 → 20" in list_scaled_settings([small])


def test_the_paper_budget_as_released_has_the_authors_configurations():
    released = Budget("paper", "released")
    cifar = task(Cell(Setup("cifar-10", "cifar-10-r18"), 0), released, None)
    assert cifar.scaled == {
        "train.batch_size": (256, 512),
        "train.schedule": ("cosine", "cosine-of-all"),
        "propos.psl_weight": (0.1, 0.025),
    }
    assert task(Cell(varied("cifar-10", propos__psl_weight=0.5), 0), released, None).config.sections["propos"][
        "psl_weight"
    ] == pytest.approx(0.125)  # acts as λ/4 on the four processes of the released configurations
    dogs = task(Cell(Setup("imagenet-dogs", "imagenet-dogs-224"), 0), released, None).config
    assert (dogs.train.balanced, dogs.network.joint_views, dogs.network.momentum_schedule) == (True, True, "cosine")
    assert task(Cell(Setup("cifar-10", "cifar-10-r18", "byol"), 0), released, None).config.estep.every == 10
    assert task(Cell(Setup("stl-10", "stl-10"), 0), released, None).scaled == {}  # none was released
    with pytest.raises(InputError, match="use --budget paper"):
        Budget("small", "released")


@pytest.mark.parametrize("size", ["tiny", "small", "paper"])
def test_precisions_do_not_share_cells_and_are_listed(size):
    cell = Cell(Setup("cifar-10", "cifar-10-r18"), 0)
    single, half = (task(cell, Budget(size, precision=each), None) for each in ("float32", "bfloat16"))
    assert single.config.train.precision == "float32"  # on every device
    assert single.key != half.key
    assert "train.precision: float32 → bfloat16" in list_scaled_settings([half])


def test_absent_images_have_a_stand_in_on_the_tiny_budget_alone(tmp_path):
    cell = Cell(Setup("stl-10", "stl-10"), 0)
    assert task(cell, Budget("tiny"), tmp_path).images.stand_in
    assert task(cell, Budget("tiny"), tmp_path).available
    assert not task(cell, Budget("small"), tmp_path).available
    assert not task(cell, Budget("paper"), tmp_path).available


def test_queues_and_large_images_stay_in_proportion():
    changes = (("propos.queue_size", 4096),)
    queue = task(Cell(Setup("tiny-imagenet", "tiny-imagenet-queue", changes=changes), 0), Budget("small"), None)
    assert queue.config.sections["propos"]["queue_size"] == 4096 * 64 // 256
    moco = task(Cell(Setup("cifar-10", "cifar-10", "moco"), 0), Budget("small"), None)
    assert moco.config.sections["moco"]["queue_size"] == 4096 * 64 // 256
    assert moco.scaled["moco.queue_size"] == (4096, 1024)
    usual, large = (
        task(Cell(Setup("imagenet-10", name), 0), Budget("small"), None) for name in ("imagenet-10", "imagenet-10-224")
    )
    assert large.config.views.size == 2 * usual.config.views.size


def test_shares_divide_the_cells():
    whole = ReproduceRequest(find_items(["table-6"]), Budget("tiny"), 3)
    tasks = whole.tasks(None)
    parts = [ReproduceRequest(whole.items, Budget("tiny"), 3, (number, 4)).own(tasks) for number in (1, 2, 3, 4)]
    assert sorted(each.key for part in parts for each in part) == sorted(each.key for each in tasks)


def test_numbers_are_those_the_paper_prints():
    assert paper_number("table-6", "ProPos", "CIFAR-10", "NMI") == PaperNumber(85.1, 0.5)
    assert paper_number("table-2", "PCL", "STL-10", "ACC") == PaperNumber(41.0)
    assert paper_number("table-2", "IIC", "CIFAR-20", "NMI") is None


@pytest.mark.skipif(not FACTS.is_file(), reason="no transcript of the paper next to the project")
def test_the_transcript_in_the_package_is_whole():
    theirs = json.loads(FACTS.read_text())
    assert paper()["notes"] == theirs.pop("notes")
    for name, rows in theirs.items():
        assert paper()[name.partition(" ")[0]] == rows


class Later(Config):
    """The settings as they may be one day."""

    later: int = 0


def test_cells_that_were_finished_before_there_was_a_setting_are_found_again():
    now = task(Cell(Setup("cifar-10", "cifar-10-r18"), 0), Budget("small"), None)
    assert replace(now, config=Later(**now.config.model_dump())).key == now.key
    assert replace(now, config=Later(**now.config.model_dump(), later=1)).key != now.key
